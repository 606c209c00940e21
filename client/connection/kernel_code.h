#ifndef HONE_CLIENT_CONNECTION_KERNEL_CODE_H_
#define HONE_CLIENT_CONNECTION_KERNEL_CODE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/record/artifact.h"

namespace hone::client {

// Returns the code of a schedule in readable form: assembly, or source for targets that compile it
// themselves. Runs `hone-builder code`. `trace` is the text of a trace file with decisions, and
// `target` the text form of a target; the device is not needed. `program_dir` is the folder of
// Hone's programs; "": that of this program. FailedPrecondition: hone-builder is not there.
// InvalidArgument: the trace or the target is wrong, or the code would exceed a limit. Aborted: the
// code cannot be generated. Other errors: hone-builder cannot be started.
absl::StatusOr<std::string> KernelCode(const std::string& trace, const std::string& target,
                                       const std::string& program_dir = "");

// Builds the kernel of such a schedule as a worker would, but neither runs nor checks it. Errors
// are those of KernelCode.
absl::StatusOr<record::Artifact> BuildKernel(const std::string& trace, const std::string& target,
                                             const std::string& program_dir = "");

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_KERNEL_CODE_H_
