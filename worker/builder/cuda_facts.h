#ifndef HONE_WORKER_BUILDER_CUDA_FACTS_H_
#define HONE_WORKER_BUILDER_CUDA_FACTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/target/gpu_module.h"
#include "common/target/target.h"

namespace hone::builder {

// What the assembler tells about a kernel.
struct CudaKernelFacts {
  int registers = 0;         // of a thread
  int64_t spill_bytes = 0;   // that a thread loads, in the code as written
  int64_t stack_bytes = 0;   // of a thread, in local memory; with arrays that are not in registers
  int64_t shared_bytes = 0;  // of a block, that the code declares itself
  friend bool operator==(const CudaKernelFacts&, const CudaKernelFacts&) = default;
};

// Reads the assembler's verbose log, by kernel. Facts that it lacks are 0.
std::map<std::string, CudaKernelFacts, std::less<>> ReadCudaFacts(absl::string_view log);

// The share of a multiprocessor's threads that are resident with a launch, in (0, 1]; 0 if not even
// one block fits. Registers are allocated for a warp in units of 256.
double Occupancy(const target::GpuLaunch& launch, const CudaKernelFacts& facts,
                 const target::GpuLimits& limits);

// InvalidArgument: a launch needs more registers or shared memory than a multiprocessor has; the
// message says which.
absl::Status CheckCudaLaunch(const target::GpuLaunch& launch, const CudaKernelFacts& facts,
                             const target::GpuLimits& limits);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CUDA_FACTS_H_
