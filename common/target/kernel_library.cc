#include "common/target/kernel_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace hone::target {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

// Null for 0 bytes.
Memory Allocate(int64_t bytes) {
  if (bytes == 0) return nullptr;
  return Memory(std::aligned_alloc(
      kBufferAlignment, (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment));
}

}  // namespace

KernelLibrary::~KernelLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

KernelLibrary::Error KernelLibrary::Load(const std::string& path, std::string& message) {
  // The OpenMP runtime must stay loaded after the kernel is unloaded: its threads wait inside it.
  static const void* const openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NODELETE);
  if (openmp == nullptr) {
    message = "the OpenMP runtime libgomp.so.1 cannot be loaded; install libgomp1";
    return Error::kNotLoadable;
  }
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
  const auto abi = reinterpret_cast<AbiFunction>(symbol(kAbiSymbol));
  const auto workspace = reinterpret_cast<SizeFunction>(symbol(kWorkspaceSymbol));
  const auto packed = reinterpret_cast<SizeFunction>(symbol(kPackedSymbol));
  const auto extent = reinterpret_cast<SizeFunction>(symbol(kRangeExtentSymbol));
  prepack_ = reinterpret_cast<PrepackFunction>(symbol(kPrepackSymbol));
  run_ = reinterpret_cast<RunFunction>(symbol(kRunSymbol));
  range_ = reinterpret_cast<RangeFunction>(symbol(kRangeSymbol));
  if (!missing.empty()) {
    message = "the kernel has no symbol " + missing;
    return Error::kNotAKernel;
  }
  if (abi() != kKernelAbiVersion) {
    message = "the kernel's interface has version " + std::to_string(abi()) +
              ", this program knows " + std::to_string(kKernelAbiVersion);
    return Error::kNotAKernel;
  }
  workspace_bytes_ = workspace();
  packed_bytes_ = packed();
  range_extent_ = extent();
  return Error::kNone;
}

bool KernelLibrary::SupportsCpu(size_t buffers) const {
  // A kernel checks the CPU before its buffers, which it then refuses.
  const std::vector<void*> none(buffers, nullptr);
  return run_(none.data(), nullptr, nullptr) != kKernelUnsupportedCpu;
}

std::optional<int32_t> KernelLibrary::Call(void* const* buffers) const {
  const Memory packed = Allocate(packed_bytes_), workspace = Allocate(workspace_bytes_);
  if ((packed_bytes_ > 0 && packed == nullptr) || (workspace_bytes_ > 0 && workspace == nullptr)) {
    return std::nullopt;
  }
  if (packed != nullptr) {
    const int32_t status = prepack_(buffers, packed.get());
    if (status != kKernelOk) return status;
  }
  return run_(buffers, packed.get(), workspace.get());
}

}  // namespace hone::target
