#ifndef HONE_COMMON_TARGET_OPENCL_TARGETS_H_
#define HONE_COMMON_TARGET_OPENCL_TARGETS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::opencl {

// The target of the OpenCL device "opencl" or "opencl:N" of this machine. Loads its driver. Errors
// as for FindDevice and LoadedApi.
absl::StatusOr<target::Target> TargetOf(absl::string_view name);

// TargetByName knows "opencl" and "opencl:N" from now on. Called at the start of programs.
void AddTargets();

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_TARGETS_H_
