#include "common/target/module_caller.h"

#include "absl/strings/str_cat.h"

namespace hone::target {

absl::Status ModuleCaller::CheckNumbers(const GpuModule& module, size_t inputs, size_t outputs) {
  if (inputs + outputs == static_cast<size_t>(module.arguments)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the kernels take ", module.arguments,
                                                 " buffers, not ", inputs, " inputs and ", outputs,
                                                 " outputs"));
}

}  // namespace hone::target
