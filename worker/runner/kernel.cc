#include "worker/runner/kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/record/artifact.h"

namespace hone::runner {

absl::StatusOr<std::unique_ptr<Kernel>> Kernel::Load(const std::string& artifact_path) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(artifact_path));
  const std::string name = std::filesystem::path(artifact_path).filename();
  if (DigestOf(bytes).ToHex() != name) {
    return absl::DataLossError(absl::StrCat(artifact_path, " does not hold what its name says"));
  }
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, record::DecodeArtifact(bytes));
  return LoadSharedObject(artifact.shared_object);
}

absl::StatusOr<std::unique_ptr<Kernel>> Kernel::LoadSharedObject(absl::string_view bytes) {
  auto kernel = std::unique_ptr<Kernel>(new Kernel);
  // The OpenMP runtime stays when the kernel that brought it goes: its threads wait in its code.
  static const void* const openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NODELETE);
  if (openmp == nullptr) {
    return absl::FailedPreconditionError("the OpenMP runtime libgomp.so.1 cannot be loaded; install libgomp1");
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
    return absl::FailedPreconditionError(absl::StrCat("the kernel does not load: ", dlerror()));
  }
  absl::Status missing;
  const auto symbol = [&](const char* name) {
    void* const address = dlsym(kernel->handle_, name);
    if (address == nullptr) {
      missing.Update(absl::InvalidArgumentError(absl::StrCat("the kernel has no symbol ", name)));
    }
    return address;
  };
  const auto abi = reinterpret_cast<target::AbiFunction>(symbol(target::kAbiSymbol));
  const auto workspace = reinterpret_cast<target::SizeFunction>(symbol(target::kWorkspaceSymbol));
  const auto packed = reinterpret_cast<target::SizeFunction>(symbol(target::kPackedSymbol));
  const auto extent = reinterpret_cast<target::SizeFunction>(symbol(target::kRangeExtentSymbol));
  kernel->prepack_ = reinterpret_cast<target::PrepackFunction>(symbol(target::kPrepackSymbol));
  kernel->run_ = reinterpret_cast<target::RunFunction>(symbol(target::kRunSymbol));
  kernel->range_ = reinterpret_cast<target::RangeFunction>(symbol(target::kRangeSymbol));
  HONE_RETURN_IF_ERROR(missing);
  if (abi() != target::kKernelAbiVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel's interface has version ", abi(),
                                                   ", this runner knows ",
                                                   target::kKernelAbiVersion));
  }
  kernel->workspace_bytes_ = workspace();
  kernel->packed_bytes_ = packed();
  kernel->range_extent_ = extent();
  return kernel;
}

Kernel::~Kernel() {
  if (handle_ != nullptr) dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}

}  // namespace hone::runner
