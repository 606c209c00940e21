#ifndef HONE_WORKER_RUNNER_GPU_REFERENCE_KERNELS_H_
#define HONE_WORKER_RUNNER_GPU_REFERENCE_KERNELS_H_

#include <string>

namespace hone::runner {

// Kernels that every device can run, for probes and peaks. The first launch, "hone_fma", runs
// `amount` times kFmaChains multiply-adds of vectors of `lanes` floats in each thread. The second
// one, "hone_stream", reads `amount` elements of 16 bytes. The parameters of both are a buffer for
// 16 bytes of each thread, the buffer that is read, and `amount`.
inline constexpr int kFmaChains = 8;
struct ReferenceKernels {
  std::string code;
  int lanes = 4;
};

// Returns PTX for Turing and newer, which the driver compiles for its device. The runner has no
// compiler for CUDA C++.
ReferenceKernels CudaReferenceKernels();

// Returns the source for a device, which may be a CPU.
ReferenceKernels OpenClReferenceKernels(bool is_cpu);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_GPU_REFERENCE_KERNELS_H_
