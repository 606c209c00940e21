#ifndef HONE_SERVER_JOB_UNFINISHED_JOB_H_
#define HONE_SERVER_JOB_UNFINISHED_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/job/actor/task_environment.h"
#include "server/job/job_manager.h"
#include "server/store/store.h"

namespace hone::job {

// Returns the id of an unfinished job that tunes the task, on this server or on another replica
// that shares the store; "" if there is none.
absl::StatusOr<std::string> FindUnfinishedJob(const JobManager& jobs, store::Store& store,
                                              const TaskEnvironment& environment,
                                              const store::TaskKey& task);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_UNFINISHED_JOB_H_
