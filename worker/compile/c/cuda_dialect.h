#ifndef HONE_WORKER_COMPILE_C_CUDA_DIALECT_H_
#define HONE_WORKER_COMPILE_C_CUDA_DIALECT_H_

#include "worker/compile/c/dialect.h"

namespace hone::codegen {

// CUDA C++17 as NVRTC compiles it without include files. What is not plain C++ is in functions of
// the prelude, which start with "hone_"; those that contain PTX exist only `#ifdef __CUDACC__`.
// Other compilers need functions of the same names: tests/fakes/cuda/emulation.h has them for CPUs.
const CDialect& CudaDialect();

// A kernel that uses more shared memory than this declares none. It expects all of its shared
// memory to be passed at the launch.
inline constexpr int64_t kCudaStaticSharedBytes = 48 << 10;

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_CUDA_DIALECT_H_
