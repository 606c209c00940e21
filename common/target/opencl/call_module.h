#ifndef HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_
#define HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/module_caller.h"
#include "common/target/target.h"

namespace hone::opencl {

// Uses the device of this machine with this name ("opencl:1"), which must have the target; "": the
// first device that has it. NotFound: there is no such OpenCL device. FailedPrecondition: it does
// not have the target, or none has it. Unavailable: the device fails.
absl::StatusOr<std::unique_ptr<target::ModuleCaller>> MakeModuleCaller(const target::Target& target,
                                                                       absl::string_view name = "");

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_
