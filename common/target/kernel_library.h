#ifndef HONE_COMMON_TARGET_KERNEL_LIBRARY_H_
#define HONE_COMMON_TARGET_KERNEL_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/target/kernel_abi.h"

namespace hone::target {

// A kernel's shared object, of ABI 2 or 1, loaded into this process. This class uses only the
// standard library, because applications link it as a part of libhone_lookup (client/lookup). Calls
// with different outputs and workspaces may run concurrently.
class KernelLibrary {
 public:
  enum class Error {
    kNone,
    kNotLoadable,  // the loader rejects the file, which may need OpenMP's library
    kNotAKernel,   // a different ABI version, or a missing symbol
  };

  KernelLibrary() = default;
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // Loads a file, once. Runs only the kernel's size functions. `message` says what is wrong.
  Error Load(const std::string& path, std::string& message);

  // The methods below REQUIRE a successful Load.

  int32_t abi() const { return abi_; }
  // Bytes of workspace for a runtime of this many threads.
  int64_t WorkspaceBytes(int32_t threads) const;
  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t range_extent() const { return range_extent_; }
  // The strides of a buffer in elements, outermost first; null if it is dense (kStridesSymbol).
  const int64_t* Strides(int32_t buffer) const {
    return strides_ == nullptr ? nullptr : strides_(buffer);
  }

  // Whether run uses a buffer (kUsesSymbol). If not, its pointer may be null.
  bool Uses(int32_t buffer) const { return uses_ == nullptr || uses_(buffer) != 0; }

  PrepackFunction prepack() const { return prepack_; }
  // The functions of a kernel of ABI 2, for programs that call many kernels.
  struct Functions {
    AbiFunction abi = nullptr;
    WorkspaceFunction workspace_bytes = nullptr;
    SizeFunction packed_bytes = nullptr;
    RunFunction run = nullptr;
  };
  // REQUIRES abi() == kKernelAbiVersion.
  Functions functions() const {
    return {abi_function_, reinterpret_cast<WorkspaceFunction>(workspace_), packed_function_,
            reinterpret_cast<RunFunction>(run_)};
  }
  // The functions of kernel_abi.h. A kernel of ABI 1 uses the runtime's number of threads only, and
  // ignores the thread.
  int32_t Prepack(void* const* buffers, void* packed) const { return prepack_(buffers, packed); }
  int32_t Run(void* const* buffers, const void* packed, void* workspace,
              const HoneRuntime* runtime) const;
  int32_t Range(void* const* buffers, const void* packed, void* workspace, int64_t begin,
                int64_t end, int64_t thread) const;

  // Asks the kernel whether this CPU has every instruction that it uses. `buffers`: the number of
  // its buffers.
  bool SupportsCpu(size_t buffers) const;
  // Packs the constants and computes once, in memory that is allocated for this call. Runs on
  // the default threads of thread_pool.h. Returns the kernel's status, or nullopt if there is not
  // enough memory.
  std::optional<int32_t> Call(void* const* buffers) const;

 private:
  using RunFunction1 = int32_t (*)(void* const* buffers, const void* packed, void* workspace);
  using RangeFunction1 = int32_t (*)(void* const* buffers, const void* packed, void* workspace,
                                     int64_t begin, int64_t end);

  void* handle_ = nullptr;
  AbiFunction abi_function_ = nullptr;
  int32_t abi_ = 0;
  SizeFunction packed_function_ = nullptr;
  int64_t packed_bytes_ = 0;
  int64_t range_extent_ = 0;
  void* workspace_ = nullptr;          // WorkspaceFunction, or SizeFunction of ABI 1
  StridesFunction strides_ = nullptr;  // null: all buffers are dense
  UsesFunction uses_ = nullptr;        // null: all buffers
  PrepackFunction prepack_ = nullptr;
  void* run_ = nullptr;                    // RunFunction, or RunFunction1 of ABI 1
  void* range_ = nullptr;                  // RangeFunction, or RangeFunction1 of ABI 1
  void (*openmp_threads_)(int) = nullptr;  // sets the number of threads of a kernel of ABI 1
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_KERNEL_LIBRARY_H_
