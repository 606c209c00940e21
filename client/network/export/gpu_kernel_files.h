#ifndef HONE_CLIENT_NETWORK_EXPORT_GPU_KERNEL_FILES_H_
#define HONE_CLIENT_NETWORK_EXPORT_GPU_KERNEL_FILES_H_

#include <string>
#include <vector>

#include "common/ir/workload.h"
#include "common/target/gpu_module.h"

namespace hone::client {

// The facts about an exported GPU module that its header states in addition to the workload.
struct GpuKernelFacts {
  std::string name;  // C identifier: of the files, and in upper case of the macros
  std::string target_key;
  double latency_ns = 0;  // 0: unknown
  double gflops = 0;
  std::vector<bool> reads = {};  // as in KernelFacts
};

// A C and C++ header that goes with NAME.cl or NAME.cubin: the buffers, the sizes of packed
// constants and workspace, and the launches as a table.
std::string GpuKernelHeader(const ir::Workload& workload, const target::GpuModule& module,
                            const GpuKernelFacts& facts);

// A program in C that runs NAME.cl on the first OpenCL device, or NAME.cubin on the first GPU of
// NVIDIA, with the launches of NAME.h. It needs no headers of OpenCL or CUDA, and opens the driver
// at run time.
std::string GpuHostProgram(const ir::Workload& workload, const target::GpuModule& module,
                           const GpuKernelFacts& facts);

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_GPU_KERNEL_FILES_H_
