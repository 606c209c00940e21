#ifndef HONE_COMMON_TARGET_KERNEL_LIBRARY_H_
#define HONE_COMMON_TARGET_KERNEL_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/target/kernel_abi.h"

namespace hone::target {

// A kernel's shared object in this process. It uses the standard library alone, because it is a
// part of libhone_lookup (client/lookup), which applications link. The first kernel loads the
// OpenMP runtime, which stays. Calls with different buffers may run concurrently.
class KernelLibrary {
 public:
  enum class Error {
    kNone,
    kNotLoadable,  // the loader rejects the file, or there is no OpenMP runtime
    kNotAKernel,   // a different ABI version, or a missing symbol
  };

  KernelLibrary() = default;
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // Loads a file, once. Runs only the kernel's size functions. `message` says what is wrong.
  Error Load(const std::string& path, std::string& message);

  // The rest REQUIRES a successful Load.

  // Asks the kernel whether this CPU has every instruction that it uses. `buffers`: the number of
  // its buffers.
  bool SupportsCpu(size_t buffers) const;
  // Packs the constants and computes once, in memory that is allocated for this call. Returns the
  // kernel's status, or nullopt if there is not enough memory.
  std::optional<int32_t> Call(void* const* buffers) const;

  int64_t workspace_bytes() const { return workspace_bytes_; }
  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t range_extent() const { return range_extent_; }
  PrepackFunction prepack() const { return prepack_; }
  RunFunction run() const { return run_; }
  RangeFunction range() const { return range_; }

 private:
  void* handle_ = nullptr;
  int64_t workspace_bytes_ = 0;
  int64_t packed_bytes_ = 0;
  int64_t range_extent_ = 0;
  PrepackFunction prepack_ = nullptr;
  RunFunction run_ = nullptr;
  RangeFunction range_ = nullptr;
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_KERNEL_LIBRARY_H_
