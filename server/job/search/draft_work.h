#ifndef HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_
#define HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_

#include <atomic>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_types.h"

namespace hone::job {

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
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::string>) &&>;
  void Draft(JobSpec spec, Done done);

  // Refuses new drafts and those that have not begun.
  void Stop() { stopped_ = true; }

 private:
  absl::StatusOr<std::string> FirstTrace(const JobSpec& spec) const;

  const JobServices services_;
  const JobOptions options_;
  std::atomic<int> in_progress_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_DRAFT_WORK_H_
