#ifndef HONE_SERVER_RESEARCH_LAB_RUN_H_
#define HONE_SERVER_RESEARCH_LAB_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "server/job/actor/task_environment.h"
#include "server/job/search/transfer.h"
#include "server/research/lab/recorded_set.h"
#include "server/tuner/search/search_strategy.h"

namespace hone::lab {

// A recorded set with its parsed design spaces, shared by all runs on it. Immutable and
// thread-safe.
class Bench {
 public:
  // InvalidArgument: a design space of the set does not replay, or the spaces belong to several
  // workloads.
  static absl::StatusOr<std::unique_ptr<Bench>> Open(RecordedSet set);

  const RecordedSet& set() const { return set_; }
  const job::TaskSpaces& spaces() const { return *spaces_; }
  double best_latency_ns() const { return best_latency_ns_; }
  // Number of builders of the device, which work in parallel.
  int builders() const { return builders_; }
  // Returns the index of the candidate's measurement; -1: not recorded.
  int Find(const record::Candidate& candidate) const;
  // Returns every program once, with its first vector, for transfer to other workloads.
  std::vector<search::Measured> Results() const;
  // Returns the text of a design space. NotFound: the set has no space with that digest.
  absl::StatusOr<std::string> SpaceText(const std::string& digest) const;

 private:
  Bench() = default;

  RecordedSet set_;
  std::unique_ptr<job::TaskSpaces> spaces_;
  std::vector<std::string> digests_;  // of the spaces, in the set's order
  absl::flat_hash_map<Digest, int> measurements_;
  double best_latency_ns_ = 0;
  int builders_ = 1;
};

struct RunOptions {
  std::string strategy;
  std::string cost_model;
  std::string feature_set;  // "": the model's default
  uint64_t seed = 0;
  int64_t trials = 256;
  int batch = 0;  // candidates per Propose; 0: an eighth of the trials, 4 to 32, as in a job
  // Another workload whose results the run starts from, as a task starts from its store: adapted
  // candidates are among the first trials, and a model of these results complements the run's own
  // model. null: none.
  const Bench* related = nullptr;
  bool related_seeds = true;  // false: transfer only the model, as in AutoTVM
  // Stop at the best known candidate, because no later one can be better.
  bool stop_at_best = true;
};

// A trial of a run. The times of a recorded run are those of the recorded device, so they are the
// same on every machine.
struct RunTrial {
  record::Outcome outcome = record::Outcome::kOk;
  double latency_ns = 0;
  double build_ms = 0;
  double run_ms = 0;
  double brain_ms = 0;  // proposing and training since the previous trial; not reproducible
  // Live run: from the job's creation to this result, everything included. Recorded run: 0.
  double elapsed_ms = 0;
};

struct RunResult {
  std::vector<RunTrial> trials;
  int64_t duplicates = 0;  // proposals whose candidate or program was proposed before
  int64_t outside = 0;     // refused proposals, which are not recorded and thus illegal
  int64_t failures = 0;    // trials that failed
  bool exhausted = false;  // the strategy had nothing new to propose
  // CPU time of this process, one thread.
  double propose_ms = 0;
  double train_ms = 0;
  double confirmed_ns = 0;  // live run: latency of the published best; 0: none
};

// Number of results of another workload that a run may use; as many as AutoTVM requires for a
// global model.
inline constexpr size_t kRelatedResults = 500;

// Returns `count` randomly drawn results, or all if there are no more.
std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed);

// Returns what a task with these spaces would transfer from a store with kRelatedResults randomly
// drawn results of another recorded set (job::TransferFrom).
job::Transfer TransferFromSet(const Bench& related, const job::TaskSpaces& spaces, uint64_t seed);

// Searches a recorded set as a job does (server/job): with the same batches, with the same amount
// of work in progress while the next batch is proposed, and training after the same numbers of
// results. Results arrive in the order of the proposals, and trained models are available at once.
// Deterministic. NotFound: unknown strategy, model or feature set; the message lists the names.
// InvalidArgument: they cannot be combined, or trials < 1.
absl::StatusOr<RunResult> RunSearch(const Bench& bench, const RunOptions& options);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_RUN_H_
