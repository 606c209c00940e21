#ifndef HONE_COMMON_TARGET_OPENCL_TARGETS_H_
#define HONE_COMMON_TARGET_OPENCL_TARGETS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

// The part of detect.h that programs can use without OpenCL's headers.
namespace hone::opencl {

// Returns the target of this machine's OpenCL device "opencl" or "opencl:N". Loads its driver.
// Errors are those of FindDevice and LoadedApi.
absl::StatusOr<target::Target> TargetOf(absl::string_view name);

// Makes TargetByName accept "opencl" and "opencl:N". Called at the start of a program.
void AddTargets();

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_TARGETS_H_
