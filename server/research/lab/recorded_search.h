#ifndef HONE_SERVER_RESEARCH_LAB_RECORDED_SEARCH_H_
#define HONE_SERVER_RESEARCH_LAB_RECORDED_SEARCH_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/job/actor/task_environment.h"
#include "server/job/search/task_search.h"
#include "server/research/lab/run.h"

namespace hone::lab {

// One search of a recorded set. The caller decides when candidates are proposed and when results
// arrive. Results arrive in the order of the proposals. Deterministic.
class RecordedSearch {
 public:
  // Uses the strategy, the model, the seed, the related set and stop_at_best of the options. The
  // benches must outlive the search. Errors as for job::TaskSearch::Create.
  static absl::StatusOr<std::unique_ptr<RecordedSearch>> Create(const Bench& bench,
                                                                const RunOptions& options);

  // Proposes up to `count` candidates; those that are recorded and new wait for their results. Does
  // nothing once the search has ended.
  absl::Status Propose(int count);
  // Tells the result of the candidate that has waited longest. REQUIRES: waiting() > 0.
  void Deliver();
  // Trains the model if that is due.
  absl::Status Train();

  int waiting() const { return static_cast<int>(waiting_.size()); }
  // Accepted proposals so far.
  int64_t proposed() const { return proposed_; }
  // Whether the best known candidate was measured, with stop_at_best.
  bool found() const { return found_; }
  const RunResult& result() const { return result_; }

 private:
  struct Waiting {
    int64_t trial = 0;
    record::Candidate candidate;
    int measurement = 0;
  };

  RecordedSearch(const Bench& bench, bool stop_at_best)
      : bench_(bench), stop_at_best_(stop_at_best) {}

  const Bench& bench_;
  const bool stop_at_best_;
  std::unique_ptr<job::TaskEnvironment> environment_;
  std::unique_ptr<job::TaskSearch> search_;
  std::deque<Waiting> waiting_;
  absl::flat_hash_set<int> programs_;
  int64_t proposed_ = 0;
  int fruitless_ = 0;
  bool found_ = false;
  double brain_ms_ = 0;
  RunResult result_;
};

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_RECORDED_SEARCH_H_
