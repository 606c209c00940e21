#ifndef HONE_SERVER_LAB_RUN_H_
#define HONE_SERVER_LAB_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "server/lab/recorded_set.h"
#include "server/search/search_strategy.h"
#include "server/task/task_environment.h"

namespace hone::lab {

// A recorded set with its design spaces open, shared by all runs on it. Immutable and thread-safe.
class Bench {
 public:
  // InvalidArgument: a design space of the set does not replay, or they are not of one workload.
  static absl::StatusOr<std::unique_ptr<Bench>> Open(RecordedSet set);

  const RecordedSet& set() const { return set_; }
  const task::TaskSpaces& spaces() const { return *spaces_; }
  double best_latency_ns() const { return best_latency_ns_; }
  // Of the device, where builders work side by side.
  int builders() const { return builders_; }
  // Distinct programs: no search has more trials.
  int64_t programs() const { return static_cast<int64_t>(set_.measurements.size()); }
  // Index of the measurement; -1: it was not recorded.
  int Find(const record::Candidate& candidate) const;
  // Every program once, with its first vector: what a search of another workload may know before
  // it begins.
  std::vector<search::Measured> Results() const;
  // The text of a design space. NotFound: none of the set has that digest.
  absl::StatusOr<std::string> SpaceText(const std::string& digest) const;

 private:
  Bench() = default;

  RecordedSet set_;
  std::unique_ptr<task::TaskSpaces> spaces_;
  std::vector<std::string> digests_;  // of the spaces, in the order of the set
  absl::flat_hash_map<Digest, int> measurements_;
  double best_latency_ns_ = 0;
  int builders_ = 1;
};

struct RunOptions {
  std::string strategy;
  std::string cost_model;
  std::string feature_set;  // "": the model's own
  uint64_t seed = 0;
  int64_t trials = 256;
  int batch = 0;  // candidates per Propose; 0: an eighth of the trials, 4 to 32, as a job
  // Another workload whose results (related_set.h) the run starts from, as a task does from its
  // store: adapted candidates among the first trials, and a model of them beside its own; null:
  // none.
  const Bench* related = nullptr;
  bool related_seeds = true;  // false: the model alone, as in AutoTVM's transfer
  // Ends with the best known candidate: what follows could not be better.
  bool stop_at_best = true;
};

// A trial of a run. Times of recorded runs are of the device, so they are the same on every
// machine.
struct RunTrial {
  record::Outcome outcome = record::Outcome::kOk;
  double latency_ns = 0;
  double build_ms = 0;
  double run_ms = 0;
  double brain_ms = 0;  // spent since the trial before, proposing and training; not reproducible
  // Of a live run: from the job's creation to this result, everything included; 0: recorded.
  double elapsed_ms = 0;
};

struct RunResult {
  std::vector<RunTrial> trials;
  int64_t duplicates = 0;  // proposals that were proposed before, or whose program was
  int64_t outside = 0;     // proposals that are not recorded, so not legal; refused
  int64_t failures = 0;    // trials that failed
  bool exhausted = false;  // the strategy had nothing new left
  // CPU time of this process, one thread.
  double propose_ms = 0;
  double train_ms = 0;
  double confirmed_ns = 0;  // of a live run: the latency of the published best; 0: there is none
};

// Searches a recorded set the way a job does (server/task): batches, what is under way while the
// next one is proposed, when a model is trained. Results come in the order of the proposals, and a
// trained model is there at once. The same arguments give the same trials.
// NotFound: no such strategy, model or feature set; lists the names. InvalidArgument: they do not
// go together, or trials < 1.
absl::StatusOr<RunResult> RunSearch(const Bench& bench, const RunOptions& options);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_RUN_H_
