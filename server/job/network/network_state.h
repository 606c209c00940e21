#ifndef HONE_SERVER_JOB_NETWORK_NETWORK_STATE_H_
#define HONE_SERVER_JOB_NETWORK_NETWORK_STATE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_types.h"
#include "server/store/store.h"

// How the state of a job of networks is made and changed.
namespace hone::job {

// Returns the state of a new job, with the stored results of its tasks. InvalidArgument: a workload
// is malformed.
absl::StatusOr<NetworkState> NewNetworkState(const JobSpec& spec, const JobServices& services);
// Opens the tasks that were closed when the job ended, for a job that is resumed.
void ReopenTasks(const NetworkSpec& spec, NetworkState& state);

// Returns the number of trials in a batch: an eighth of a task's share of the limit, within the
// bounds of the options.
int64_t TrialsAtATime(const JobSpec& spec, const JobOptions& options);

// Updates a task with the progress of its job. `in_flight`: the number of trials that are granted
// but not yet measured. `batch`: the number of trials between two points of the curve.
void UpdateTask(const JobSnapshot& job, int64_t in_flight, int64_t batch, NetworkTaskState& task);
// Shows the published best of each task that has one. For a job that ends, because its results then
// agree with those of a lookup.
void ShowStoredBests(const JobSpec& spec, const JobServices& services, NetworkState& state);
// Adds an estimate if the latency has changed or another batch was measured. Keeps at most
// kMostEstimates.
inline constexpr size_t kMostEstimates = 512;
void AddEstimate(NetworkEstimate now, int64_t batch, NetworkState& state);
// Returns whether the last `patience` trials have improved the estimate by less than 0.1 %.
bool HasLostPatience(const NetworkState& state, int64_t patience);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_NETWORK_NETWORK_STATE_H_
