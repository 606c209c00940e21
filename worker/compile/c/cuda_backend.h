#ifndef HONE_WORKER_COMPILE_C_CUDA_BACKEND_H_
#define HONE_WORKER_COMPILE_C_CUDA_BACKEND_H_

#include "worker/compile/backend.h"

namespace hone::codegen {

// Prints CUDA C++ for NVIDIA GPUs, which a builder compiles with NVRTC. The text includes no files.
const Backend* CudaBackend();

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_CUDA_BACKEND_H_
