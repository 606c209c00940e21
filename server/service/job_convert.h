#ifndef HONE_SERVER_SERVICE_JOB_CONVERT_H_
#define HONE_SERVER_SERVICE_JOB_CONVERT_H_

#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/target/target.h"
#include "hone/v1/tuning.pb.h"
#include "server/fleet/fleet.h"
#include "server/fleet/worker.h"
#include "server/job/actor/job_types.h"
#include "server/job/actor/task_environment.h"
#include "server/job/search/draft_work.h"
#include "server/store/store.h"

// How requests name things, with errors that name a field, and conversions of jobs and workers.
namespace hone::service {

// A page of a list ends after the entry with which it has this size, because texts may be long and
// a message has at most 16 MiB.
inline constexpr size_t kPageBytes = 4 << 20;
inline constexpr size_t kMaxTargetBytes = 4096;  // of a target's text form
inline constexpr size_t kMaxIdBytes = 256;       // of names and keys

// Returns a readable name of a field, such as "cost model" for "cost_model", because users know the
// options of commands but not the protocol.
inline std::string FieldWords(absl::string_view field) {
  return absl::StrReplaceAll(field, {{"_", " "}, {".", " "}});
}

// Returns InvalidArgument with the name of a request's field.
inline absl::Status FieldError(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(FieldWords(field), ": ", why));
}

// InvalidArgument: the text is longer than names and keys may be.
inline absl::Status CheckLength(absl::string_view field, absl::string_view text) {
  if (text.size() <= kMaxIdBytes) return absl::OkStatus();
  return FieldError(field, absl::StrCat("longer than ", kMaxIdBytes, " bytes"));
}

// InvalidArgument: not a finite number from 0 to 1.
inline absl::Status CheckTolerance(double tolerance) {
  if (std::isfinite(tolerance) && tolerance >= 0 && tolerance <= 1) return absl::OkStatus();
  return FieldError("tolerance", "not a number from 0 to 1");
}

// Returns the task that a request names with workload_digest, target and tolerance.
// InvalidArgument: one of them is missing or wrong; the message names the field.
template <typename Request>
absl::StatusOr<store::TaskKey> TaskOf(const Request& request) {
  if (request.workload_digest().empty()) return FieldError("workload_digest", "missing");
  if (request.target().empty()) return FieldError("target", "missing");
  if (absl::Status status = CheckTolerance(request.tolerance()); !status.ok()) return status;
  return store::TaskKey{.workload_digest = request.workload_digest(),
                        .target = request.target(),
                        .tolerance = request.tolerance()};
}

// Returns the text form of a target that a request names by its text form or by the key of a
// registered worker's target. InvalidArgument: it is too long. FailedPrecondition: no worker of
// that key is registered; the message lists the keys.
inline absl::StatusOr<std::string> DescribedTarget(const std::string& target,
                                                   const fleet::Fleet& fleet) {
  if (target.size() > kMaxTargetBytes) return FieldError("target", "too long");
  if (target.find(' ') != std::string::npos) return target;  // keys contain no spaces
  std::set<std::string> keys;
  for (const fleet::WorkerInfo& worker : fleet.Workers()) {
    const fleet::Capabilities& capabilities = worker.capabilities;
    if (capabilities.target_key == target) return capabilities.target;
    keys.insert(capabilities.target_key);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("target: no worker of '", target,
                   "' is registered, and a key alone does not describe a target; registered keys: ",
                   keys.empty() ? "none" : absl::StrJoin(keys, ", ")));
}

// Limits of requests of clients. common/rpc limits the size of messages.
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
