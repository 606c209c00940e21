#ifndef HONE_CLIENT_LIB_KERNEL_CALL_H_
#define HONE_CLIENT_LIB_KERNEL_CALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "common/record/artifact.h"

namespace hone::client {

// Runs the kernel of an artifact in this process: checks that the CPU has what it needs, loads its
// very bytes, packs the constant inputs, and calls it once. `inputs`: the elements of the
// workload's inputs, in their order, as common/target/kernel_abi.h wants them. Returns those of its
// outputs. FailedPrecondition: it is for another CPU, or it does not load. InvalidArgument: the
// number or a size of the inputs, or no kernel. ResourceExhausted: no memory. Internal: it returned
// an error.
absl::StatusOr<std::vector<std::string>> CallKernel(const ir::Workload& workload,
                                                    const record::Artifact& artifact,
                                                    absl::Span<const absl::string_view> inputs);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_KERNEL_CALL_H_
