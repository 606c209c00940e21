#include "common/target/kernel_library.h"

#include <dlfcn.h>

#include <vector>

#include "common/target/kernel_memory.h"
#include "common/target/thread_pool.h"

namespace hone::target {

KernelLibrary::~KernelLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

KernelLibrary::Error KernelLibrary::Load(const std::string& path, std::string& message) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    message = std::string("cannot load the kernel: ") + dlerror();
    return Error::kNotLoadable;
  }
  std::string missing;
  const auto symbol = [&](const char* name) {
    void* const address = dlsym(handle_, name);
    if (address == nullptr && missing.empty()) missing = name;
    return address;
  };
  functions_.abi = reinterpret_cast<AbiFunction>(symbol(kAbiSymbol));
  if (missing.empty() && functions_.abi() != kKernelAbiVersion) {
    message = "the kernel's interface has version " + std::to_string(functions_.abi()) +
              ", this program knows " + std::to_string(kKernelAbiVersion);
    return Error::kNotAKernel;
  }
  symbol(kThreadsSymbol);
  functions_.packed_bytes = reinterpret_cast<SizeFunction>(symbol(kPackedSymbol));
  const auto extent = reinterpret_cast<SizeFunction>(symbol(kRangeExtentSymbol));
  functions_.workspace_bytes = reinterpret_cast<WorkspaceFunction>(symbol(kWorkspaceSymbol));
  strides_ = reinterpret_cast<StridesFunction>(dlsym(handle_, kStridesSymbol));
  uses_ = reinterpret_cast<UsesFunction>(dlsym(handle_, kUsesSymbol));
  prepack_ = reinterpret_cast<PrepackFunction>(symbol(kPrepackSymbol));
  functions_.run = reinterpret_cast<RunFunction>(symbol(kRunSymbol));
  range_ = reinterpret_cast<RangeFunction>(symbol(kRangeSymbol));
  if (!missing.empty()) {
    message = "the kernel has no symbol " + missing;
    return Error::kNotAKernel;
  }
  packed_bytes_ = functions_.packed_bytes();
  range_extent_ = extent();
  return Error::kNone;
}

bool KernelLibrary::SupportsCpu(size_t buffers) const {
  // A kernel checks the CPU first, and then rejects the null buffers.
  const std::vector<void*> none(buffers, nullptr);
  return Run(none.data(), nullptr, nullptr, nullptr) != kKernelUnsupportedCpu;
}

std::optional<int32_t> KernelLibrary::Call(void* const* buffers) const {
  const HoneRuntime runtime = hone_threads(0);
  const int64_t workspace_bytes = WorkspaceBytes(runtime.threads);
  KernelMemory packed, workspace;
  if (workspace_bytes > 0) {
    workspace = AllocateKernelMemory(workspace_bytes);
    if (workspace == nullptr) return std::nullopt;
  }
  if (packed_bytes_ > 0) {
    packed = AllocateKernelMemory(packed_bytes_);
    if (packed == nullptr) return std::nullopt;
    const int32_t status = Prepack(buffers, packed.get());
    if (status != kKernelOk) return status;
  }
  return Run(buffers, packed.get(), workspace.get(), &runtime);
}

}  // namespace hone::target
