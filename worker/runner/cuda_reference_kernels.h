#ifndef HONE_WORKER_RUNNER_CUDA_REFERENCE_KERNELS_H_
#define HONE_WORKER_RUNNER_CUDA_REFERENCE_KERNELS_H_

#include "worker/runner/gpu_context.h"

namespace hone::runner {

// The reference kernels in PTX of Turing, which the driver compiles for its device: the runner has
// no compiler of CUDA C++.
ReferenceKernels CudaReferenceKernels();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CUDA_REFERENCE_KERNELS_H_
