#ifndef HONE_SERVER_TASK_COMPILER_ENVIRONMENT_H_
#define HONE_SERVER_TASK_COMPILER_ENVIRONMENT_H_

#include <memory>

#include "server/task/task_environment.h"

namespace hone::task {

// The real rooms: workloads of common/ir, spaces of server/space, features of server/feature, the
// registered models and strategies.
// `threads`: that one proposal may use.
std::unique_ptr<TaskEnvironment> MakeCompilerEnvironment(int threads);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_COMPILER_ENVIRONMENT_H_
