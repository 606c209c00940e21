#ifndef HONE_COMMON_TARGET_KERNEL_LIBRARY_H_
#define HONE_COMMON_TARGET_KERNEL_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/target/kernel_abi.h"

namespace hone::target {

// A kernel's shared object, loaded into this process. This class uses only the
// standard library, because applications link it as a part of libhone_lookup (client/lookup). Calls
// with different outputs and workspaces may run concurrently.
class KernelLibrary {
 public:
  enum class Error {
    kNone,
    kNotLoadable,  // the loader rejects the file
    kNotAKernel,   // a different ABI version, or a missing symbol
  };

  KernelLibrary() = default;
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // Loads a file, once. Runs only the kernel's size functions. `message` says what is wrong.
  Error Load(const std::string& path, std::string& message);

  // The methods below REQUIRE a successful Load.

  // Bytes of workspace for a runtime of this many threads.
  int64_t WorkspaceBytes(int32_t threads) const { return functions_.workspace_bytes(threads); }
  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t range_extent() const { return range_extent_; }
  // The strides of a buffer in elements, outermost first; null if it is dense (kStridesSymbol).
  const int64_t* Strides(int32_t buffer) const {
    return strides_ == nullptr ? nullptr : strides_(buffer);
  }

  // Whether run uses a buffer (kUsesSymbol). If not, its pointer may be null.
  bool Uses(int32_t buffer) const { return uses_ == nullptr || uses_(buffer) != 0; }

  PrepackFunction prepack() const { return prepack_; }
  // The functions of kernel_abi.h, for programs that call many kernels.
  struct Functions {
    AbiFunction abi = nullptr;
    WorkspaceFunction workspace_bytes = nullptr;
    SizeFunction packed_bytes = nullptr;
    RunFunction run = nullptr;
  };
  const Functions& functions() const { return functions_; }
  int32_t Prepack(void* const* buffers, void* packed) const { return prepack_(buffers, packed); }
  int32_t Run(void* const* buffers, const void* packed, void* workspace,
              const HoneRuntime* runtime) const {
    return functions_.run(buffers, packed, workspace, runtime);
  }
  int32_t Range(void* const* buffers, const void* packed, void* workspace, int64_t begin,
                int64_t end, int64_t thread) const {
    return range_(buffers, packed, workspace, begin, end, thread);
  }

  // Asks the kernel whether this CPU has every instruction that it uses. `buffers`: the number of
  // its buffers.
  bool SupportsCpu(size_t buffers) const;
  // Packs the constants and computes once, in memory that is allocated for this call. Runs on
  // the default threads of thread_pool.h. Returns the kernel's status, or nullopt if there is not
  // enough memory.
  std::optional<int32_t> Call(void* const* buffers) const;

 private:
  void* handle_ = nullptr;
  Functions functions_;
  int64_t packed_bytes_ = 0;
  int64_t range_extent_ = 0;
  StridesFunction strides_ = nullptr;  // null: all buffers are dense
  UsesFunction uses_ = nullptr;        // null: all buffers
  PrepackFunction prepack_ = nullptr;
  RangeFunction range_ = nullptr;
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_KERNEL_LIBRARY_H_
