#ifndef HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_
#define HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/target/module_caller.h"
#include "common/target/target.h"

namespace hone::opencl {

// Uses the device of this machine that has a target. NotFound: there is no OpenCL device.
// FailedPrecondition: none has the target. Unavailable: the device fails.
absl::StatusOr<std::unique_ptr<target::ModuleCaller>> MakeModuleCaller(
    const target::Target& target);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_
