#ifndef HONE_COMMON_TARGET_CUDA_TARGETS_H_
#define HONE_COMMON_TARGET_CUDA_TARGETS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::cuda {

// The target of the CUDA device "cuda" or "cuda:N" of this machine. Loads its driver. Errors as for
// FindDevice and LoadedApi.
absl::StatusOr<target::Target> TargetOf(absl::string_view name);

// TargetByName knows "cuda" and "cuda:N" from now on. Called at the start of programs.
void AddTargets();

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_TARGETS_H_
