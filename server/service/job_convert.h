#ifndef HONE_SERVER_SERVICE_JOB_CONVERT_H_
#define HONE_SERVER_SERVICE_JOB_CONVERT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/target/target.h"
#include "hone/v1/tuning.pb.h"
#include "server/fleet/fleet.h"
#include "server/fleet/worker.h"
#include "server/job/actor/job_types.h"
#include "server/job/actor/task_environment.h"
#include "server/job/search/draft_work.h"

namespace hone::service {

// Limits of requests of clients. common/rpc limits the size of messages.
inline constexpr size_t kMaxIdBytes = 256;
inline constexpr int kDefaultPage = 100;
inline constexpr int kMaxPage = 1000;
inline constexpr int kMaxRevalidated = 64;
// The requested target that stands for the only target of all workers.
inline constexpr char kNativeTarget[] = "native";

// Converts the request to a spec, with defaults filled in and the workload in its printed form. The
// caller must resolve the target. InvalidArgument: a field violates the limits above or those of
// tuning.proto; the message names the field.
absl::StatusOr<job::JobSpec> ToSpec(const v1::CreateJobRequest& request,
                                    const job::TaskEnvironment& environment);
// Returns the spec of a job with default settings, for a draft. Otherwise as above.
absl::StatusOr<job::JobSpec> ToSpec(const v1::DraftScheduleRequest& request,
                                    const job::TaskEnvironment& environment);
v1::Job ToProto(const job::JobSnapshot& snapshot);
v1::JobState ToProto(job::JobState state);
// Returns the name, or the default if the name is "". InvalidArgument: it is not one of the names.
absl::StatusOr<std::string> Choose(absl::string_view field, const std::string& asked,
                                   const std::string& standard,
                                   const std::vector<std::string>& names);
// Returns the names of all cost models, including those that this build cannot make.
std::vector<std::string> AllModelNames(const job::TaskEnvironment& environment);
v1::Best ToProto(const job::Best& best);
// Without the trace.
v1::Best ToProto(const job::NearestBest& nearest, const job::WorkloadInfo& workload);
v1::WorkerInfo ToProto(const fleet::WorkerInfo& worker, absl::Time now);
// Adds the constants of a target's estimate, and which of them were measured; none for a GPU.
void AddConstants(const target::Target& target,
                  google::protobuf::RepeatedPtrField<v1::MachineConstant>& constants);
v1::FeatureTable ToProto(const job::FeatureTable& table);

// Returns the page size for the requested one; 0 requests the default. InvalidArgument: the size is
// negative.
absl::StatusOr<int> PageSize(int asked);
// InvalidArgument: the token is too long to be a page token.
absl::Status CheckPageToken(const std::string& token);

// The workers of one target measure slightly different peaks. Shares of the peak can be compared
// only if they refer to the same one, so every answer has the largest peak that is known: that of
// the registered workers of the target, the one that is stored with the job, or the rate of a
// kernel that is faster than these (job::LeastPeakOf). A result without a peak keeps none, because
// its workload has no known peak.

// Sets the peaks of all results of a job.
void SetPeaks(const fleet::Fleet& fleet, v1::Job& job);
// Sets the peaks of a stored result of a workload.
void SetPeaks(const fleet::Fleet& fleet, const job::WorkloadInfo& workload, v1::Best& best);

inline constexpr int kMostNetworkTasks = 1024;
inline constexpr int kMostNetworks = 64;

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_JOB_CONVERT_H_
