#ifndef HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_
#define HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_

#include <atomic>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_types.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

namespace hone::job {

// A schedule for a workload that was never tuned, adapted from the nearest tuned workload.
struct NearestBest {
  store::BestRow source;        // the best of the other workload
  double distance = 0;          // between the two workloads
  double flops = 0;             // of the source's workload
  record::Candidate candidate;  // adapted to the requested workload
  std::string space;            // the text of its design space
};

// Tries the bests with the workload's name, target and tolerance, nearest first: the published ones
// and, for workloads without one, the fastest confirmed records (imports bring such records). If
// the rules make a design space with the structure of the source's trace, the candidate belongs to
// that space and satisfies its constraints; otherwise it belongs to the source's own trace. It is
// replayed, but not built, checked or timed. Takes tens of milliseconds. NotFound: no known best
// has this name and form, or none could be adapted. InvalidArgument: the workload is malformed.
// Other errors are those of the store and of `check` (TaskEnvironment::Open).
absl::StatusOr<NearestBest> FindNearest(store::Store& store, const TaskEnvironment& environment,
                                        const WorkloadInfo& workload, const std::string& target_key,
                                        const std::string& target_text, double tolerance,
                                        const StopCheck& check = nullptr);

// Finds the schedule that a job would measure as its first trial, if nothing is known of its task.
// Makes the design spaces and the first Propose as a job does, and discards them. Measures and
// stores nothing. Works on the executor's threads. Holds the host's timing lock in shared mode, as
// searches do. Thread-safe. Must outlive its work.
class DraftWork {
 public:
  DraftWork(const JobServices& services, const JobOptions& options)
      : services_(services), options_(options) {}

  static constexpr int kMaxAtOnce = 16;

  // `done` gets the text of a trace file with decisions. InvalidArgument: the workload has no
  // design space on the target. FailedPrecondition: the search has no legal candidate. Internal:
  // an exception was thrown. ResourceExhausted: kMaxAtOnce drafts are in progress. Unavailable: the
  // server is shutting down.
  // `check` is asked now and then unless it is null; the draft ends with the error that it returns,
  // such as Cancelled once the caller has gone.
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::string>) &&>;
  void Draft(JobSpec spec, StopCheck check, Done done);

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
