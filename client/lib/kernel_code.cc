#include "client/lib/kernel_code.h"

#include "client/lib/builder_process.h"

namespace hone::client {

absl::StatusOr<std::string> KernelCode(const std::string& trace, const std::string& target,
                                       const std::string& program_dir) {
  return RunBuilder({"code", "--target", target, "-"}, trace, program_dir);
}

}  // namespace hone::client
