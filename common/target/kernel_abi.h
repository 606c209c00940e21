#ifndef HONE_COMMON_TARGET_KERNEL_ABI_H_
#define HONE_COMMON_TARGET_KERNEL_ABI_H_

#include <cstdint>

#include "common/target/hone_runtime.h"

// The C interface of every CPU kernel: the builder emits it, the runner loads it and `hone export`
// delivers it. A kernel is an ELF shared object that exports these symbols only. It has no state:
// calls with different outputs and workspaces may run concurrently. Outputs must share no element
// with another buffer of the call.
namespace hone::target {

inline constexpr int kKernelAbiVersion = 2;

// Required alignment of buffers, packed constants and workspace, in bytes. A buffer with strides
// (kStridesSymbol) needs only that of its elements.
inline constexpr int64_t kBufferAlignment = 64;

enum KernelStatus : int32_t {
  kKernelOk = 0,
  // The CPU lacks a feature that the code was generated for, or Linux refuses its tile registers.
  kKernelUnsupportedCpu = 1,
  kKernelMisalignedBuffer = 2,  // a pointer is null or not aligned
  kKernelOverlap = 3,           // an output shares memory with another buffer
};

// Prefix of the names of all kernel functions.
inline constexpr char kFunctionPrefix[] = "hone_kernel_";

// Returns the version of this interface, kKernelAbiVersion.
inline constexpr char kAbiSymbol[] = "hone_kernel_abi";
using AbiFunction = int32_t (*)();

// The largest number of threads that run can use.
inline constexpr char kThreadsSymbol[] = "hone_kernel_threads";
using ThreadsFunction = int32_t (*)();

// Workspace bytes that one call of run needs with a runtime of this many threads. If 0, workspace
// may be null.
inline constexpr char kWorkspaceSymbol[] = "hone_kernel_workspace_bytes";
using WorkspaceFunction = int64_t (*)(int32_t threads);
// Bytes of the packed constants. If 0, there is nothing to prepack and packed may be null.
inline constexpr char kPackedSymbol[] = "hone_kernel_packed_bytes";
// Number of iterations that range can compute; 0 if the kernel has no outlined parallel loop.
inline constexpr char kRangeExtentSymbol[] = "hone_kernel_range_extent";
using SizeFunction = int64_t (*)();

// The strides of a buffer in elements, outermost first, or null if it is dense and row-major. A
// buffer with strides is a slice of a larger tensor, and its pointer that of the slice's first
// element. With slices as outputs, concatenating tensors needs no copy. A kernel writes nothing
// between the rows of a slice. Two slices may share no element, but their rows may alternate in
// memory if the distance from row to row is the same in both, and a dense buffer or a single row
// may lie between the rows of a slice. Other buffers must not overlap. Kernels without this symbol
// have dense buffers only.
inline constexpr char kStridesSymbol[] = "hone_kernel_strides";
using StridesFunction = const int64_t* (*)(int32_t buffer);

// Whether run uses a buffer. If it returns 0, run neither reads the buffer nor requires a pointer:
// it is a constant of which run reads only the packed form, and its pointer may be null. Kernels
// without this symbol use all buffers.
inline constexpr char kUsesSymbol[] = "hone_kernel_uses";
using UsesFunction = int32_t (*)(int32_t buffer);

// Packs the constant inputs on the calling thread; called once. `buffers` holds the workload's
// inputs in order, then its outputs. Only constants that are packed are read, and the other
// pointers may be null.
inline constexpr char kPrepackSymbol[] = "hone_kernel_prepack";
using PrepackFunction = int32_t (*)(void* const* buffers, void* packed);

// Computes the workload. Buffers have the workload's shapes and dtypes, and are dense and row-major
// unless kStridesSymbol says otherwise.
// Without a runtime, everything runs on the calling thread. Checks the CPU first, then the
// pointers (see kUsesSymbol), so a call with null buffers only tests whether the CPU is supported.
inline constexpr char kRunSymbol[] = "hone_kernel_run";
using RunFunction = int32_t (*)(void* const* buffers, const void* packed, void* workspace,
                                const HoneRuntime* runtime);

// Computes iterations [begin, end) of the last parallel loop only, on the calling thread, as the
// thread with this number: concurrent calls with one workspace need different numbers. What
// precedes that loop (packing operands into the workspace) is done by run only, and its memory may
// be reused afterwards. This gives a time, not results: it is used to estimate the time of a slow
// kernel from a part of its work. `thread` is below the number given to kWorkspaceSymbol.
inline constexpr char kRangeSymbol[] = "hone_kernel_range";
using RangeFunction = int32_t (*)(void* const* buffers, const void* packed, void* workspace,
                                  int64_t begin, int64_t end, int64_t thread);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_KERNEL_ABI_H_
