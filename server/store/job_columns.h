#ifndef HONE_SERVER_STORE_JOB_COLUMNS_H_
#define HONE_SERVER_STORE_JOB_COLUMNS_H_

#include <algorithm>
#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

// The columns of the table job, in the order in which they are bound and read. Used by every
// database; see record_columns.h.
namespace hone::store {

inline constexpr char kJobColumns[] =
    "id, request_id, request, state, error, summary, created_unix_ms, updated_unix_ms, owner,"
    " priority";

// The condition for an unfinished job.
inline constexpr char kUnfinished[] = "state IN ('pending', 'running', 'confirming')";

// InvalidArgument: see Store::PutJob.
inline absl::Status CheckJob(const JobRow& job) {
  constexpr std::array<absl::string_view, 6> kStates = {"pending", "running",   "confirming",
                                                        "done",    "cancelled", "failed"};
  constexpr std::array<absl::string_view, 3> kPriorities = {"low", "normal", "high"};
  if (job.id.empty()) return absl::InvalidArgumentError("a job needs an id");
  if (std::find(kStates.begin(), kStates.end(), job.state) == kStates.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", job.state, "' is not a job's state; known: ", absl::StrJoin(kStates, ", ")));
  }
  if (std::find(kPriorities.begin(), kPriorities.end(), job.priority) == kPriorities.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", job.priority, "' is not a priority; known: ", absl::StrJoin(kPriorities, ", ")));
  }
  return absl::OkStatus();
}

inline absl::Status SameRequestError(const JobRow& job) {
  return absl::AlreadyExistsError(
      absl::StrCat("request id '", job.request_id, "' belongs to a job other than '", job.id, "'"));
}

// Returns the error for a record whose event is missing.
inline absl::Status NoEventError(const JobStep& step) {
  return absl::FailedPreconditionError(absl::StrCat("job '", step.job_id, "': event ", step.event,
                                                    " is not stored, so its results are refused"));
}

// Returns the error for an event whose number is not `next`.
inline absl::Status EventNumberError(const JobEvent& event, int64_t next) {
  const std::string message = absl::StrCat("the next event of job '", event.job_id, "' has number ",
                                           next, ", not ", event.number);
  return event.number < next ? absl::AlreadyExistsError(message)
                             : absl::FailedPreconditionError(message);
}

template <typename Binder>
void BindJob(Binder& s, const JobRow& job) {
  s.Bind(job.id).Bind(job.request_id).BindBlob(job.request).Bind(job.state).BindRaw(job.error);
  s.BindBlob(job.summary).Bind(job.created_unix_ms).Bind(job.updated_unix_ms);
  s.Bind(job.owner).Bind(job.priority);
}

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_JOB_COLUMNS_H_
