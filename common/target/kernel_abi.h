#ifndef HONE_COMMON_TARGET_KERNEL_ABI_H_
#define HONE_COMMON_TARGET_KERNEL_ABI_H_

#include <cstdint>

// The C interface of every CPU kernel that Hone builds: what the builder emits, the runner loads
// and `hone export` hands out. A kernel is an ELF shared object with these symbols and nothing else
// visible. It keeps no state: calls with different buffers may run concurrently.
namespace hone::target {

inline constexpr int kKernelAbiVersion = 1;

// Alignment in bytes that buffers, packed constants and workspace must have.
inline constexpr int64_t kBufferAlignment = 64;

// Return codes.
enum KernelStatus : int32_t {
  kKernelOk = 0,
  kKernelUnsupportedCpu = 1,    // the CPU lacks a feature that the code was generated for
  kKernelMisalignedBuffer = 2,  // a pointer is null or not aligned to kBufferAlignment
};

// What the names of all these functions begin with.
inline constexpr char kFunctionPrefix[] = "hone_kernel_";

// Version of this interface: kKernelAbiVersion.
inline constexpr char kAbiSymbol[] = "hone_kernel_abi";
using AbiFunction = int32_t (*)();

// Bytes of scratch that one call of run needs, all threads together; 0: workspace may be null.
inline constexpr char kWorkspaceSymbol[] = "hone_kernel_workspace_bytes";
// Bytes of the packed constants; 0: there is nothing to prepack, and packed may be null.
inline constexpr char kPackedSymbol[] = "hone_kernel_packed_bytes";
// Iterations of the outlined parallel body, for range; 0: the kernel has none.
inline constexpr char kRangeExtentSymbol[] = "hone_kernel_range_extent";
using SizeFunction = int64_t (*)();

// Packs the constant inputs, once. `buffers`: the workload's inputs in their order, then its
// outputs (unused here).
inline constexpr char kPrepackSymbol[] = "hone_kernel_prepack";
using PrepackFunction = int32_t (*)(void* const* buffers, void* packed);

// Computes the workload. Buffers are dense, row-major, of the workload's shapes and dtypes.
inline constexpr char kRunSymbol[] = "hone_kernel_run";
using RunFunction = int32_t (*)(void* const* buffers, const void* packed, void* workspace);

// Computes iterations [begin, end) of the last parallel loop alone, on the calling thread; what
// comes before that loop (packing of operands into the workspace) is done by run only. For judging
// a slow kernel on a part of its work.
inline constexpr char kRangeSymbol[] = "hone_kernel_range";
using RangeFunction = int32_t (*)(void* const* buffers, const void* packed, void* workspace,
                                  int64_t begin, int64_t end);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_KERNEL_ABI_H_
