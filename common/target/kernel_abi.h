#ifndef HONE_COMMON_TARGET_KERNEL_ABI_H_
#define HONE_COMMON_TARGET_KERNEL_ABI_H_

#include <cstdint>

// The C interface of every CPU kernel: the builder emits it, the runner loads it and `hone export`
// delivers it. A kernel is an ELF shared object that exports these symbols only. It has no state:
// calls with different buffers may run concurrently.
namespace hone::target {

inline constexpr int kKernelAbiVersion = 1;

// Required alignment of buffers, packed constants and workspace, in bytes.
inline constexpr int64_t kBufferAlignment = 64;

enum KernelStatus : int32_t {
  kKernelOk = 0,
  kKernelUnsupportedCpu = 1,    // the CPU lacks a feature that the code was generated for
  kKernelMisalignedBuffer = 2,  // a pointer is null or not aligned to kBufferAlignment
};

// Prefix of the names of all kernel functions.
inline constexpr char kFunctionPrefix[] = "hone_kernel_";

// Returns the version of this interface, kKernelAbiVersion.
inline constexpr char kAbiSymbol[] = "hone_kernel_abi";
using AbiFunction = int32_t (*)();

// Workspace bytes that one call of run needs, for all threads together. If 0, workspace may be
// null.
inline constexpr char kWorkspaceSymbol[] = "hone_kernel_workspace_bytes";
// Bytes of the packed constants. If 0, there is nothing to prepack and packed may be null.
inline constexpr char kPackedSymbol[] = "hone_kernel_packed_bytes";
// Number of iterations that range can compute; 0 if the kernel has no outlined parallel loop.
inline constexpr char kRangeExtentSymbol[] = "hone_kernel_range_extent";
using SizeFunction = int64_t (*)();

// Packs the constant inputs; called once. `buffers` holds the workload's inputs in order, then its
// outputs (unused here).
inline constexpr char kPrepackSymbol[] = "hone_kernel_prepack";
using PrepackFunction = int32_t (*)(void* const* buffers, void* packed);

// Computes the workload. Buffers are dense and row-major, with the workload's shapes and dtypes.
// Checks the CPU first, then the pointers: with null buffers it only says whether the CPU is
// supported.
inline constexpr char kRunSymbol[] = "hone_kernel_run";
using RunFunction = int32_t (*)(void* const* buffers, const void* packed, void* workspace);

// Computes iterations [begin, end) of the last parallel loop only, on the calling thread. What
// precedes that loop (packing operands into the workspace) is done by run only. Used to estimate
// the time of a slow kernel from a part of its work.
inline constexpr char kRangeSymbol[] = "hone_kernel_range";
using RangeFunction = int32_t (*)(void* const* buffers, const void* packed, void* workspace,
                                  int64_t begin, int64_t end);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_KERNEL_ABI_H_
