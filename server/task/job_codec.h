#ifndef HONE_SERVER_TASK_JOB_CODEC_H_
#define HONE_SERVER_TASK_JOB_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/task/job_types.h"

namespace hone::task {

// How a job is kept in store::JobRow: the request and the last summary, as JSON. Unknown fields are
// ignored and missing ones have their default, so that a newer program reads older rows.
std::string EncodeSpec(const JobSpec& spec);
// DataLoss: not JSON of a spec.
absl::StatusOr<JobSpec> DecodeSpec(absl::string_view text);

// Everything but the spec.
std::string EncodeSnapshot(const JobSnapshot& snapshot);
absl::StatusOr<JobSnapshot> DecodeSnapshot(absl::string_view text);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_CODEC_H_
