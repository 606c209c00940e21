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
  abi_function_ = reinterpret_cast<AbiFunction>(symbol(kAbiSymbol));
  abi_ = abi_function_ == nullptr ? 0 : abi_function_();
  if (missing.empty() && abi_ != 1 && abi_ != kKernelAbiVersion) {
    message = "the kernel's interface has version " + std::to_string(abi_) +
              ", this program knows 1 and " + std::to_string(kKernelAbiVersion);
    return Error::kNotAKernel;
  }
  // A kernel of ABI 1, or one that was written by hand, may have loaded OpenMP. Its threads wait
  // inside that library, which therefore stays when the kernel is unloaded.
  dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  if (abi_ == 1) {
    openmp_threads_ = reinterpret_cast<void (*)(int)>(dlsym(handle_, "omp_set_num_threads"));
  } else {
    symbol(kThreadsSymbol);
  }
  packed_function_ = reinterpret_cast<SizeFunction>(symbol(kPackedSymbol));
  const auto extent = reinterpret_cast<SizeFunction>(symbol(kRangeExtentSymbol));
  workspace_ = symbol(kWorkspaceSymbol);
  strides_ = reinterpret_cast<StridesFunction>(dlsym(handle_, kStridesSymbol));
  uses_ = reinterpret_cast<UsesFunction>(dlsym(handle_, kUsesSymbol));
  prepack_ = reinterpret_cast<PrepackFunction>(symbol(kPrepackSymbol));
  run_ = symbol(kRunSymbol);
  range_ = symbol(kRangeSymbol);
  if (!missing.empty()) {
    message = "the kernel has no symbol " + missing;
    return Error::kNotAKernel;
  }
  packed_bytes_ = packed_function_();
  range_extent_ = extent();
  return Error::kNone;
}

int64_t KernelLibrary::WorkspaceBytes(int32_t threads) const {
  return abi_ == 1 ? reinterpret_cast<SizeFunction>(workspace_)()
                   : reinterpret_cast<WorkspaceFunction>(workspace_)(threads);
}

int32_t KernelLibrary::Run(void* const* buffers, const void* packed, void* workspace,
                           const HoneRuntime* runtime) const {
  if (abi_ != 1) return reinterpret_cast<RunFunction>(run_)(buffers, packed, workspace, runtime);
  if (openmp_threads_ != nullptr) openmp_threads_(runtime == nullptr ? 1 : runtime->threads);
  return reinterpret_cast<RunFunction1>(run_)(buffers, packed, workspace);
}

int32_t KernelLibrary::Range(void* const* buffers, const void* packed, void* workspace,
                             int64_t begin, int64_t end, int64_t thread) const {
  return abi_ == 1
             ? reinterpret_cast<RangeFunction1>(range_)(buffers, packed, workspace, begin, end)
             : reinterpret_cast<RangeFunction>(range_)(buffers, packed, workspace, begin, end,
                                                       thread);
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
