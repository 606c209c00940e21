#ifndef HONE_CLIENT_NETWORK_NETWORK_KERNEL_H_
#define HONE_CLIENT_NETWORK_NETWORK_KERNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/artifact.h"
#include "common/target/loaded_kernel.h"

namespace hone::network {

// The kernel of a task of a network, loaded into this process.
struct NetworkKernel {
  std::shared_ptr<const target::LoadedKernel> loaded;
  std::string object;  // the ELF object file, which an export links; "" if it is not known
  // Whether the kernel reads each input of the workload when it runs. The other inputs are
  // constants, of which it reads only the packed form.
  std::vector<bool> reads;
  double latency_ns = 0;  // as measured when it was tuned; 0: not known
};

// Loads the kernel of an artifact. InvalidArgument: it is not one. FailedPrecondition: the kernel
// is for another CPU, was built by an older version, or cannot be loaded.
absl::StatusOr<NetworkKernel> LoadKernel(const record::Artifact& artifact);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_NETWORK_KERNEL_H_
