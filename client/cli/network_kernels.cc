#include "client/cli/network_kernels.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/known_best.h"
#include "common/base/status_macros.h"

namespace hone::cli {

absl::StatusOr<std::vector<network::NetworkKernel>> LoadNetworkKernels(
    Session& session, const NetworkArgument& network, double tolerance) {
  std::vector<network::NetworkKernel> kernels;
  const auto load = [&](const WorkloadArgument&,
                        const std::optional<client::Best>& best) -> absl::Status {
    if (!best.has_value()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(session, *best));
    HONE_ASSIGN_OR_RETURN(kernels.emplace_back(), network::LoadKernel(artifact));
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(const size_t unknown,
                        VisitBests(session, network.tasks, tolerance, /*nearest=*/false, load));
  HONE_ASSIGN_OR_RETURN(const std::string target, session.TargetKey());
  HONE_RETURN_IF_ERROR(CheckNetworkKnown(network, unknown, target));
  return kernels;
}

}  // namespace hone::cli
