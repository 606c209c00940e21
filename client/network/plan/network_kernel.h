#ifndef HONE_CLIENT_NETWORK_PLAN_NETWORK_KERNEL_H_
#define HONE_CLIENT_NETWORK_PLAN_NETWORK_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/artifact.h"
#include "common/target/gpu_module.h"
#include "common/target/loaded_kernel.h"
#include "common/target/target.h"

namespace hone::network {

// The kernel of a task of a network.
struct NetworkKernel {
  target::Target target;                               // that it was built for
  std::shared_ptr<const target::LoadedKernel> loaded;  // of a CPU, in this process
  std::shared_ptr<const target::GpuModule> module;     // of a GPU
  // The ELF object file of a kernel for a CPU, which an export needs, or the encoded
  // target::GpuSources of one for CUDA. "" if it is not known.
  std::string object;
  int64_t packed_bytes = 0;  // of its packed constants
  // Whether the kernel reads each input of the workload when it runs. The other inputs are
  // constants, of which it reads only the packed form.
  std::vector<bool> reads;
  double latency_ns = 0;  // as measured when it was tuned; 0: not known
};

// Reads the kernel of an artifact, and loads that of a CPU. InvalidArgument: it is not one.
// FailedPrecondition: the kernel is for another CPU, was built by an older version, or cannot be
// loaded.
absl::StatusOr<NetworkKernel> LoadKernel(const record::Artifact& artifact);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_NETWORK_KERNEL_H_
