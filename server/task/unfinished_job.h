#ifndef HONE_SERVER_TASK_UNFINISHED_JOB_H_
#define HONE_SERVER_TASK_UNFINISHED_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/store/store.h"
#include "server/task/job_manager.h"
#include "server/task/task_environment.h"

namespace hone::task {

// Returns the id of an unfinished job that tunes the task, on this server or on another replica
// that shares the store; "" if there is none.
absl::StatusOr<std::string> FindUnfinishedJob(const JobManager& jobs, store::Store& store,
                                              const TaskEnvironment& environment,
                                              const store::TaskKey& task);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_UNFINISHED_JOB_H_
