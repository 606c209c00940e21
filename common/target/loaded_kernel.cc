#include "common/target/loaded_kernel.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace hone::target {

absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadedKernel::LoadSharedObject(
    absl::string_view bytes) {
  auto kernel = std::unique_ptr<LoadedKernel>(new LoadedKernel);
  HONE_ASSIGN_OR_RETURN(kernel->file_, MemoryFile::Create(bytes));
  std::string message;
  switch (kernel->library_.Load(kernel->file_->path(), message)) {
    case KernelLibrary::Error::kNone:
      return kernel;
    case KernelLibrary::Error::kNotLoadable:
      return absl::FailedPreconditionError(message);
    case KernelLibrary::Error::kNotAKernel:
      break;
  }
  return absl::InvalidArgumentError(message);
}

absl::Status LoadedKernel::Call(void* const* buffers) const {
  const std::optional<int32_t> status = library_.Call(buffers);
  if (status.has_value()) return KernelStatusToStatus(*status);
  return absl::ResourceExhaustedError(
      absl::StrCat("out of memory for the workspace of the kernel and constants of ",
                   library_.packed_bytes(), " bytes"));
}

absl::Status KernelStatusToStatus(int32_t code) {
  switch (code) {
    case kKernelOk:
      return absl::OkStatus();
    case kKernelUnsupportedCpu:
      return absl::FailedPreconditionError(
          "the kernel uses instructions that this CPU does not have, or tile registers (AMX) that "
          "Linux refuses");
    case kKernelMisalignedBuffer:
      return absl::InternalError("the kernel was given a misaligned buffer");
    case kKernelOverlap:
      return absl::InternalError("the kernel was given an output that overlaps another buffer");
    default:
      return absl::InternalError(absl::StrCat("the kernel returned ", code));
  }
}

absl::Status CheckRunsOn(const Target& target, const Target& host) {
  if (target.arch != host.arch) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel is for ", target.arch, ", this machine is ", host.arch));
  }
  std::vector<std::string> missing;
  for (const std::string& feature : target.features) {
    if (!host.HasFeature(feature)) missing.push_back(feature);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the kernel is for ", target.Key(), "; this CPU lacks ", absl::StrJoin(missing, ", ")));
}

}  // namespace hone::target
