#ifndef HONE_COMMON_TARGET_CUDA_CALL_MODULE_H_
#define HONE_COMMON_TARGET_CUDA_CALL_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/target/module_caller.h"
#include "common/target/target.h"

namespace hone::cuda {

// Uses the GPU of this machine that has a target. NotFound: there is no CUDA device.
// FailedPrecondition: none has the target. Unavailable: the device fails.
absl::StatusOr<std::unique_ptr<target::ModuleCaller>> MakeModuleCaller(
    const target::Target& target);

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_CALL_MODULE_H_
