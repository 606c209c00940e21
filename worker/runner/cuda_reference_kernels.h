#ifndef HONE_WORKER_RUNNER_CUDA_REFERENCE_KERNELS_H_
#define HONE_WORKER_RUNNER_CUDA_REFERENCE_KERNELS_H_

#include "worker/runner/gpu_context.h"

namespace hone::runner {

// Returns the reference kernels as PTX for Turing and newer, which the driver compiles for its
// device. The runner has no compiler for CUDA C++.
ReferenceKernels CudaReferenceKernels();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CUDA_REFERENCE_KERNELS_H_
