#ifndef HONE_COMMON_TARGET_CUDA_TARGETS_H_
#define HONE_COMMON_TARGET_CUDA_TARGETS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::cuda {

// Returns the target of this machine's CUDA device "cuda" or "cuda:N". Loads the driver. Errors are
// those of FindDevice and LoadedApi.
absl::StatusOr<target::Target> TargetOf(absl::string_view name);

// Makes TargetByName accept "cuda" and "cuda:N". Called at the start of a program.
void AddTargets();

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_TARGETS_H_
