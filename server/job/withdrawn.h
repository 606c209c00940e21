#ifndef HONE_SERVER_JOB_WITHDRAWN_H_
#define HONE_SERVER_JOB_WITHDRAWN_H_

#include <memory>
#include <optional>

#include "server/job/actor/job_types.h"
#include "server/store/store.h"

// Bests that were confirmed, and withdrawn later: their records were quarantined, for example with
// "hone forget".
namespace hone::job {

// Returns whether a best is confirmed and was not withdrawn since then.
bool IsStillConfirmed(store::Store& store, const std::optional<Best>& best);

// Returns the state of a job with the quarantine of its withdrawn bests, or `job` itself if there
// are none. A job that has not ended is returned unchanged.
std::shared_ptr<const JobSnapshot> WithQuarantine(store::Store& store,
                                                  std::shared_ptr<const JobSnapshot> job);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_WITHDRAWN_H_
