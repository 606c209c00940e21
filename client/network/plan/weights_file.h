#ifndef HONE_CLIENT_NETWORK_PLAN_WEIGHTS_FILE_H_
#define HONE_CLIENT_NETWORK_PLAN_WEIGHTS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/plan/network_kernel.h"
#include "client/network/plan/plan.h"

namespace hone::network {

// Writes the weights of a network to a file, and stores the file's digest in the plan. `graphs`: of
// its sizes, or one. The kernels are those of the plan, and pack the constants here. The file is on
// the disk when this returns. ResourceExhausted: the disk is full, or there is not enough memory to
// pack. Internal: a kernel fails. Other errors as for ErrnoStatus.
absl::Status WriteWeights(absl::Span<const graph::Graph* const> graphs,
                          absl::Span<const NetworkKernel> kernels, const std::string& path,
                          PlannedNetwork& planned);

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_WEIGHTS_FILE_H_
