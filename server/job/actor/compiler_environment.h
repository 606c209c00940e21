#ifndef HONE_SERVER_JOB_ACTOR_COMPILER_ENVIRONMENT_H_
#define HONE_SERVER_JOB_ACTOR_COMPILER_ENVIRONMENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/job/actor/task_environment.h"

namespace hone::job {

// Returns the environment of the real compiler: workloads of common/ir, spaces of
// server/tuner/space, features of server/tuner/feature, and the registered models and strategies.
// `threads` is the maximum for one proposal.
std::unique_ptr<TaskEnvironment> MakeCompilerEnvironment(int threads);

// Opens a task whose design spaces are given as texts of open trace files, for server/research/lab.
// InvalidArgument: there is no space, a space is malformed or does not replay, or the spaces belong
// to several workloads.
absl::StatusOr<std::unique_ptr<TaskSpaces>> OpenCompilerSpaces(
    const std::vector<std::string>& spaces, const std::string& target, int threads);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_COMPILER_ENVIRONMENT_H_
