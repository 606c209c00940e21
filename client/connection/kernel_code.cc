#include "client/connection/kernel_code.h"

#include "client/connection/program_call.h"
#include "common/base/status_macros.h"

namespace hone::client {

absl::StatusOr<std::string> KernelCode(const std::string& trace, const std::string& target,
                                       const std::string& program_dir) {
  return RunBuilder({"code", "--target", target, "-"}, trace, program_dir);
}

absl::StatusOr<record::Artifact> BuildKernel(const std::string& trace, const std::string& target,
                                             const std::string& program_dir) {
  HONE_ASSIGN_OR_RETURN(
      const std::string bytes,
      RunBuilder({"code", "--artifact", "--target", target, "-"}, trace, program_dir));
  return record::DecodeArtifact(bytes);
}

}  // namespace hone::client
