#ifndef HONE_CLIENT_CLI_NETWORK_KERNELS_H_
#define HONE_CLIENT_CLI_NETWORK_KERNELS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/network_argument.h"
#include "client/cli/session.h"
#include "client/network/network_kernel.h"

namespace hone::cli {

// Fetches and loads the kernels of the best known schedules of a network's tasks, in their order.
// NothingKnownError: no schedule is known for some tasks. Other errors as for ArtifactOf and
// network::LoadKernel.
absl::StatusOr<std::vector<network::NetworkKernel>> LoadNetworkKernels(
    Session& session, const NetworkArgument& network, double tolerance);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_KERNELS_H_
