#ifndef HONE_WORKER_COMPILE_C_OPENCL_BACKEND_H_
#define HONE_WORKER_COMPILE_C_OPENCL_BACKEND_H_

#include "worker/compile/backend.h"

namespace hone::codegen {

// Prints OpenCL C for OpenCL targets. The driver of the device compiles it.
const Backend* OpenClBackend();

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_OPENCL_BACKEND_H_
