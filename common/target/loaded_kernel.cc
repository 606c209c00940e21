#include "common/target/loaded_kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::target {

absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadedKernel::LoadSharedObject(
    absl::string_view bytes) {
  auto kernel = std::unique_ptr<LoadedKernel>(new LoadedKernel);
  // The OpenMP runtime must stay loaded after the kernel is unloaded: its threads wait inside it.
  static const void* const openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NODELETE);
  if (openmp == nullptr) {
    return absl::FailedPreconditionError(
        "the OpenMP runtime libgomp.so.1 cannot be loaded; install libgomp1");
  }
  kernel->fd_ = memfd_create("hone-kernel", MFD_CLOEXEC);
  if (kernel->fd_ < 0) return ErrnoStatus(errno, "create a memory file");
  while (!bytes.empty()) {
    const ssize_t n = write(kernel->fd_, bytes.data(), bytes.size());
    if (n < 0) return ErrnoStatus(errno, "write a memory file");
    bytes.remove_prefix(n);
  }
  const std::string path = absl::StrCat("/proc/self/fd/", kernel->fd_);
  kernel->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (kernel->handle_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot load the kernel: ", dlerror()));
  }
  absl::Status missing;
  const auto symbol = [&](const char* name) {
    void* const address = dlsym(kernel->handle_, name);
    if (address == nullptr) {
      missing.Update(absl::InvalidArgumentError(absl::StrCat("the kernel has no symbol ", name)));
    }
    return address;
  };
  const auto abi = reinterpret_cast<AbiFunction>(symbol(kAbiSymbol));
  const auto workspace = reinterpret_cast<SizeFunction>(symbol(kWorkspaceSymbol));
  const auto packed = reinterpret_cast<SizeFunction>(symbol(kPackedSymbol));
  const auto extent = reinterpret_cast<SizeFunction>(symbol(kRangeExtentSymbol));
  kernel->prepack_ = reinterpret_cast<PrepackFunction>(symbol(kPrepackSymbol));
  kernel->run_ = reinterpret_cast<RunFunction>(symbol(kRunSymbol));
  kernel->range_ = reinterpret_cast<RangeFunction>(symbol(kRangeSymbol));
  HONE_RETURN_IF_ERROR(missing);
  if (abi() != kKernelAbiVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel's interface has version ", abi(),
                                                   ", this program knows ", kKernelAbiVersion));
  }
  kernel->workspace_bytes_ = workspace();
  kernel->packed_bytes_ = packed();
  kernel->range_extent_ = extent();
  return kernel;
}

LoadedKernel::~LoadedKernel() {
  if (handle_ != nullptr) dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}

absl::Status KernelStatusToStatus(int32_t code) {
  switch (code) {
    case kKernelOk:
      return absl::OkStatus();
    case kKernelUnsupportedCpu:
      return absl::FailedPreconditionError(
          "the kernel uses instructions that this CPU does not have");
    case kKernelMisalignedBuffer:
      return absl::InternalError("the kernel was given a misaligned buffer");
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
