#ifndef HONE_SERVER_SERVICE_JOB_CONVERT_H_
#define HONE_SERVER_SERVICE_JOB_CONVERT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/tuning.pb.h"
#include "server/fleet/worker.h"
#include "server/task/job_types.h"
#include "server/task/nearest.h"
#include "server/task/task_environment.h"

namespace hone::service {

// Limits of what clients send; the message size is limited by common/rpc.
inline constexpr size_t kMaxIdBytes = 256;
inline constexpr size_t kMaxTargetBytes = 4096;  // of a target's text form
inline constexpr int kDefaultPage = 100;
inline constexpr int kMaxPage = 1000;
inline constexpr int kMaxRevalidated = 64;
// A requested target that stands for the one target of all workers.
inline constexpr char kNativeTarget[] = "native";

// The request as a spec, with the defaults filled in and the workload as the printer writes it; the
// target stays to be resolved. InvalidArgument, naming the field: see tuning.proto and the limits
// above.
absl::StatusOr<task::JobSpec> ToSpec(const v1::CreateJobRequest& request,
                                     const task::TaskEnvironment& environment);
v1::Job ToProto(const task::JobSnapshot& snapshot);
v1::Best ToProto(const task::Best& best);
// Without the trace.
v1::Best ToProto(const task::NearestBest& nearest, const task::WorkloadInfo& workload);
v1::WorkerInfo ToProto(const fleet::WorkerInfo& worker, absl::Time now);
v1::FeatureTable ToProto(const task::FeatureTable& table);

// The page size to use for the one asked for; 0 is the default. InvalidArgument: negative.
absl::StatusOr<int> PageSize(int asked);
// InvalidArgument: it is too long to be a token of a page.
absl::Status CheckPageToken(const std::string& token);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_JOB_CONVERT_H_
