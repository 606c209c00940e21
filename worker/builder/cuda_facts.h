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

// What NVIDIA's assembler logs about a kernel.
struct CudaKernelFacts {
  int registers = 0;         // per thread
  int64_t spill_bytes = 0;   // per thread: spill loads in the code, each counted once
  int64_t stack_bytes = 0;   // per thread: local memory, for spills and arrays not in registers
  int64_t shared_bytes = 0;  // per block, as declared in the code
  friend bool operator==(const CudaKernelFacts&, const CudaKernelFacts&) = default;
};

// Parses the assembler's verbose log. Returns the facts by kernel; those that it lacks are 0.
std::map<std::string, CudaKernelFacts, std::less<>> ReadCudaFacts(absl::string_view log);

// Returns the occupancy of a launch: the resident threads of a multiprocessor divided by the most
// that it can have, in (0, 1]; 0 if not even one block fits. Registers are allocated for a warp in
// units of 256.
double Occupancy(const target::GpuLaunch& launch, const CudaKernelFacts& facts,
                 const target::GpuLimits& limits);

// InvalidArgument: a launch needs more registers or shared memory than a multiprocessor has; the
// message says which.
absl::Status CheckCudaLaunch(const target::GpuLaunch& launch, const CudaKernelFacts& facts,
                             const target::GpuLimits& limits);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CUDA_FACTS_H_
