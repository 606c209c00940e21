#include "client/cli/network_kernels.h"

#include <optional>
#include <string>
#include <vector>

#include "client/cli/known_best.h"
#include "client/cli/running_job.h"
#include "client/lib/kernel_code.h"
#include "common/base/status_macros.h"

namespace hone::cli {

void AddDraft(Command& command, bool& draft) {
  command.AddFlag("--draft", draft,
                  "Tasks of a network without a known best get the schedule that a search would "
                  "begin with; nothing is measured");
}

absl::StatusOr<std::vector<network::NetworkKernel>> LoadNetworkKernels(
    Session& session, const NetworkArgument& network, const NetworkKernelOptions& options) {
  HONE_RETURN_IF_ERROR(CheckUnchanged(network));
  HONE_ASSIGN_OR_RETURN(const std::string target, session.TargetText());
  std::vector<network::NetworkKernel> kernels;
  const auto draft = [&](const WorkloadArgument& task) -> absl::StatusOr<record::Artifact> {
    HONE_ASSIGN_OR_RETURN(const client::DraftedSchedule drafted,
                          session.connection().DraftSchedule(task.text, target, options.tolerance));
    return client::BuildKernel(drafted.trace, drafted.target);
  };
  const auto load = [&](const WorkloadArgument& task,
                        const std::optional<client::Best>& best) -> absl::Status {
    if (!best.has_value() && !options.draft) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const record::Artifact artifact,
                          best.has_value() ? ArtifactOf(session, *best) : draft(task));
    HONE_ASSIGN_OR_RETURN(kernels.emplace_back(), network::LoadKernel(artifact));
    if (best.has_value()) kernels.back().latency_ns = client::LatencyNs(*best);
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(
      const std::vector<std::string> unknown,
      VisitBests(session, network.tasks, options.tolerance, /*nearest=*/false, load));
  if (options.draft) return kernels;
  HONE_ASSIGN_OR_RETURN(const std::string key, session.TargetKey());
  HONE_RETURN_IF_ERROR(CheckNetworkKnown(network, unknown.size(), key, options.tolerance,
                                         FindRunningJob(session, unknown, key, options.tolerance),
                                         options.hint));
  return kernels;
}

double SumOfKernels(const NetworkArgument& network,
                    absl::Span<const network::NetworkKernel> kernels) {
  double sum = 0;
  for (size_t t = 0; t < kernels.size(); ++t) {
    if (!(kernels[t].latency_ns > 0)) return 0;
    sum += static_cast<double>(network.partition.tasks[t].weight) * kernels[t].latency_ns;
  }
  return sum;
}

}  // namespace hone::cli
