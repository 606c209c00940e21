#ifndef HONE_SERVER_TASK_COMPILER_ENVIRONMENT_H_
#define HONE_SERVER_TASK_COMPILER_ENVIRONMENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/task/task_environment.h"

namespace hone::task {

// The compiler itself: workloads of common/ir, spaces of server/space, features of server/feature,
// the registered models and strategies. `threads`: the most that one proposal may use.
std::unique_ptr<TaskEnvironment> MakeCompilerEnvironment(int threads);

// A task whose design spaces are given as texts of open trace files, as server/lab searches it.
// InvalidArgument: no space, a malformed one, one that does not replay, or spaces of several
// workloads.
absl::StatusOr<std::unique_ptr<TaskSpaces>> OpenCompilerSpaces(
    const std::vector<std::string>& spaces, const std::string& target, int threads);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_COMPILER_ENVIRONMENT_H_
