#ifndef HONE_WORKER_BUILDER_CUDA_TOOLCHAIN_H_
#define HONE_WORKER_BUILDER_CUDA_TOOLCHAIN_H_

#include "worker/builder/toolchain.h"

namespace hone::builder {

// Compiles CUDA C++ with NVRTC to a module with a cubin for the target's exact architecture. Needs
// no GPU. Refuses kernels that the target's multiprocessors cannot run.
const Toolchain* CudaToolchain();

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CUDA_TOOLCHAIN_H_
