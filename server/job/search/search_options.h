#ifndef HONE_SERVER_JOB_SEARCH_SEARCH_OPTIONS_H_
#define HONE_SERVER_JOB_SEARCH_SEARCH_OPTIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_types.h"
#include "server/job/search/task_search.h"

namespace hone::job {

// Returns the search options that the job's request determines. The others depend on stored
// results.
TaskSearchOptions SearchOptionsOf(const JobSpec& spec);

// Returns the part of a time limit that is reserved for the confirmation. `step`: how long one
// measurement takes now. On a busy machine, the usual reserve may suffice for none.
absl::Duration ConfirmationTime(absl::Duration max_time, absl::Duration step);
// If nothing was measured when the time of a job is over, the job waits this much longer for a
// first result, unless no worker takes its work: for that of its search, or that of a finalist.
inline constexpr absl::Duration kFirstResultGrace = absl::Milliseconds(1200);
// The same if the time was over before the job submitted its first work.
inline constexpr absl::Duration kLateResultGrace = absl::Seconds(10);
// The limit of the confirmation of a cancelled job, for all its tasks together. It is short because
// the user who cancelled the job waits for its end.
inline constexpr absl::Duration kConfirmationAfterCancel = absl::Seconds(30);
// Returns how long the confirmation of `tasks` tasks may take, all together, in a job without a
// time limit or in a cancelled one, after a search that took `searched`.
absl::Duration ConfirmationLimit(absl::Duration searched, bool cancelled, int64_t tasks = 1);

// Returns the number of candidates of each Propose, unless fewer trials are left.
int BatchSizeOf(const JobSpec& spec, const JobOptions& options);
// Returns the number of candidates of the next Propose, after `proposed` trials.
int NextBatchOf(const JobSpec& spec, const JobOptions& options, int64_t proposed);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_SEARCH_OPTIONS_H_
