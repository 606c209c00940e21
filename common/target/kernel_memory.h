#ifndef HONE_COMMON_TARGET_KERNEL_MEMORY_H_
#define HONE_COMMON_TARGET_KERNEL_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "common/target/kernel_abi.h"

// Memory for the buffers, packed constants and workspace of a kernel. Like KernelLibrary, this uses
// only the standard library.
namespace hone::target {

constexpr int64_t AlignedBytes(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using KernelMemory = std::unique_ptr<void, FreeMemory>;

// Null if there is not enough memory.
inline KernelMemory AllocateKernelMemory(int64_t bytes) {
  return KernelMemory(
      std::aligned_alloc(kBufferAlignment, AlignedBytes(std::max<int64_t>(bytes, 1))));
}

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_KERNEL_MEMORY_H_
