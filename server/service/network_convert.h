#ifndef HONE_SERVER_SERVICE_NETWORK_CONVERT_H_
#define HONE_SERVER_SERVICE_NETWORK_CONVERT_H_

#include "absl/status/statusor.h"
#include "hone/v1/tuning.pb.h"
#include "server/job/actor/job_types.h"
#include "server/job/actor/task_environment.h"

namespace hone::service {

inline constexpr int kMostNetworkTasks = 1024;
inline constexpr int kMostNetworks = 64;

// Converts the networks of a request, with defaults filled in and workloads in their printed form.
// REQUIRES: the request has networks. InvalidArgument: a field violates tuning.proto or the limits
// above; the message names the field.
absl::StatusOr<job::NetworkSpec> ToNetworkSpec(const v1::CreateJobRequest& request,
                                               const job::TaskEnvironment& environment);
// Without the tasks.
v1::NetworkRequest RequestToProto(const job::NetworkSpec& spec);
// REQUIRES: it is a job of networks.
v1::NetworkProgress ProgressToProto(const job::JobSnapshot& job);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_NETWORK_CONVERT_H_
