#ifndef HONE_SERVER_JOB_ACTOR_JOB_CODEC_H_
#define HONE_SERVER_JOB_ACTOR_JOB_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/job/actor/job_types.h"
#include "server/store/store.h"

namespace hone::job {

// Convert a job to and from store::JobRow: its request and its last summary are stored as messages
// of proto/hone/v1/job_state.proto. DataLoss: the bytes are damaged. FailedPrecondition: a newer
// release wrote them.
std::string EncodeSpec(const JobSpec& spec);
absl::StatusOr<JobSpec> DecodeSpec(absl::string_view stored);

// Convert everything except the spec.
std::string EncodeSnapshot(const JobSnapshot& snapshot);
absl::StatusOr<JobSnapshot> DecodeSnapshot(absl::string_view stored);

// Returns the row of a job, without its claim.
store::JobRow RowOf(const JobSnapshot& snapshot, absl::Time now);
absl::StatusOr<JobSnapshot> FromRow(const store::JobRow& row);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JOB_CODEC_H_
