#ifndef HONE_CLIENT_NETWORK_EXPORT_KERNEL_CALL_H_
#define HONE_CLIENT_NETWORK_EXPORT_KERNEL_CALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "common/record/artifact.h"

namespace hone::client {

// Runs the kernel of an artifact in this process: checks that the CPU supports it, loads its shared
// object, packs the constant inputs, and calls it once. A kernel for a GPU runs on `device`
// ("opencl:1", "cuda:0") or, without a name, on the first device of this machine that has the
// target. `inputs` holds the elements of the workload's inputs in order, as
// common/target/kernel_abi.h describes. Returns the elements of the outputs. FailedPrecondition:
// the kernel is for another CPU or device, no device has its target, or it cannot be loaded or
// built. InvalidArgument: the number or a size of the inputs is wrong, or the artifact has no
// kernel. ResourceExhausted: out of memory. Internal: the kernel returned an error. NotFound: there
// is no such GPU. Unavailable, Aborted: the GPU or the kernel on it fails.
absl::StatusOr<std::vector<std::string>> CallKernel(const ir::Workload& workload,
                                                    const record::Artifact& artifact,
                                                    absl::Span<const absl::string_view> inputs,
                                                    absl::string_view device = "");

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_KERNEL_CALL_H_
