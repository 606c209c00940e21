#ifndef HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_
#define HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "common/target/target.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_types.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

namespace hone::job {

// The model that a server learns from the results of all tasks of a target, and that ranks
// candidates before a task has results of its own (server/tuner/cost_model/models.h).
inline constexpr char kLearnedDraft[] = "residual";

// Returns the row of the learned draft of a target that is in use, which may be imported
// (store::ModelKey), or 0 if the target has none. Errors are those of the store.
absl::StatusOr<int64_t> NewestDraft(store::Store& store, const std::string& target_key);

// Returns the saved draft that comes with the program and that a target begins with, learned from
// the development tasks of a sample (server/research/lab/README.md); "" if there is none. Only
// targets like those on which it was measured to help begin with it: x86-64 CPUs with vectors of
// 256 bits (tests/bench/results/judge.md).
absl::string_view ShippedDraft(const target::Target& target);

// Loads a learned draft by its row; 0: the shipped one. Returns null, which stands for the
// constants of the target, if there is none, and, with a warning in the log, if the row is gone or
// this version of the program cannot read it. `target_text`: of the task. `store` is only needed
// for rows.
std::shared_ptr<const cost_model::CostModel> LoadDraft(store::Store* store,
                                                       const TaskEnvironment& environment,
                                                       int64_t id, const std::string& target_text);

// Returns the saved drafts that were learned from results of other machines, or imported, for the
// architecture of a target: at most four, those of the most similar targets first, and the one that
// is shipped for the architecture. Two targets are similar if the logarithms of what their workers
// measured, and of their cores, vectors and caches, are close. A target with few results may begin
// with one of them (CostModelOptions::foreign).
std::vector<std::string> ForeignDrafts(store::Store& store, const std::string& target_key,
                                       const std::string& target_text);

// A schedule for a workload that was never tuned, adapted from the nearest tuned workload.
struct NearestBest {
  store::BestRow source;        // the best of the other workload
  double distance = 0;          // between the two workloads
  double flops = 0;             // of the source's workload
  record::Candidate candidate;  // adapted to the requested workload
  std::string space;            // the text of its design space
};

// Makes schedules that nobody has measured, for workloads that clients send. Measures and stores
// nothing. Thread-safe. Must outlive its work.
class DraftWork {
 public:
  DraftWork(const JobServices& services, const JobOptions& options)
      : services_(services), options_(options) {}

  static constexpr int kMaxAtOnce = 16;

  // Finds the schedule that a job would measure as its first trial, if nothing is known of its
  // task. Makes the design spaces and the first Propose as a job does, and discards them. Works on
  // the executor's threads. Holds the host's timing lock in shared mode, as searches do.
  // `done` gets the text of a trace file with decisions. InvalidArgument: the workload has no
  // design space on the target. FailedPrecondition: the search has no legal candidate. Internal:
  // an exception was thrown. ResourceExhausted: kMaxAtOnce drafts are in progress. Unavailable: the
  // server is shutting down.
  // `check` is asked now and then unless it is null; the draft ends with the error that it returns,
  // such as Cancelled once the caller has gone.
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::string>) &&>;
  void Draft(JobSpec spec, StopCheck check, Done done);

  // Adapts the schedule of the nearest workload. Tries the bests with the workload's name, target
  // and tolerance, nearest first: the published ones and, for workloads without one, the fastest
  // confirmed records (imports bring such records). If the rules make a design space with the
  // structure of the source's trace, the candidate belongs to that space and satisfies its
  // constraints; otherwise it belongs to the source's own trace. It is replayed, but not built,
  // checked or timed. Works on the caller's thread, usually for tens of milliseconds.
  // The workload may be hostile, and its design spaces are made in the server. It is therefore
  // checked first, and gets only kNearestLimit. InvalidArgument: it is malformed or has more than
  // kMostNearestBytes. ResourceExhausted: it takes too long. NotFound: no known best has this name
  // and form, or none could be adapted. Unavailable: the server is shutting down. Other errors are
  // those of the store and of `check`, which is asked now and then unless it is null.
  static constexpr size_t kMostNearestBytes = 64 << 10;
  static constexpr absl::Duration kNearestLimit = absl::Seconds(10);
  absl::StatusOr<NearestBest> Nearest(const WorkloadInfo& workload, const std::string& target_key,
                                      const std::string& target_text, double tolerance,
                                      const StopCheck& check) const;

  // Refuses new drafts, and ends the others.
  void Stop() { stopped_ = true; }

 private:
  absl::StatusOr<std::string> FirstTrace(const JobSpec& spec, StopCheck check) const;

  const JobServices services_;
  const JobOptions options_;
  std::atomic<int> in_progress_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_
