#ifndef HONE_WORKER_BUILDER_CUDA_TOOLCHAIN_H_
#define HONE_WORKER_BUILDER_CUDA_TOOLCHAIN_H_

#include "worker/builder/toolchain.h"

namespace hone::builder {

// NVRTC: CUDA C++ becomes a module with a cubin for the target's exact architecture. No GPU is
// needed. A kernel that no multiprocessor can run is refused before it is timed.
const Toolchain* CudaToolchain();

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CUDA_TOOLCHAIN_H_
