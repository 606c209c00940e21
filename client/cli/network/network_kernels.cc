#include "client/cli/network/network_kernels.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/output/progress.h"
#include "client/cli/records/known_best.h"
#include "client/cli/tune/running_job.h"
#include "client/connection/program_call.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

absl::StatusOr<network::NetworkKernel> LoadBest(Session& session, const v1::Best& best) {
  HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, ArtifactOf(session, best));
  HONE_ASSIGN_OR_RETURN(network::NetworkKernel kernel, network::LoadKernel(artifact));
  kernel.latency_ns = best.latency_ns();
  return kernel;
}

}  // namespace

void AddDraft(Command& command, bool& draft) {
  command.AddFlag("--draft", draft,
                  "Tasks of a network without a known best get the schedule that a search would "
                  "begin with; nothing is measured");
}

absl::StatusOr<std::vector<network::NetworkKernel>> LoadNetworkKernels(
    Session& session, const NetworkArgument& network, const NetworkKernelOptions& options) {
  HONE_RETURN_IF_ERROR(CheckUnchanged(network));
  if (options.draft) return LoadOrDraftKernels(session, network.tasks, options.tolerance);
  std::vector<network::NetworkKernel> kernels;
  const auto load = [&](const WorkloadArgument&,
                        const std::optional<v1::Best>& best) -> absl::Status {
    if (!best.has_value()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(kernels.emplace_back(), LoadBest(session, *best));
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(
      const std::vector<std::string> unknown,
      VisitBests(session, network.tasks, options.tolerance, /*nearest=*/false, load));
  HONE_ASSIGN_OR_RETURN(const std::string key, session.TargetKey());
  HONE_RETURN_IF_ERROR(CheckNetworkKnown(network, unknown.size(), key, options.tolerance,
                                         FindRunningJob(session, unknown, key, options.tolerance),
                                         options.hint));
  return kernels;
}

absl::StatusOr<std::vector<network::NetworkKernel>> LoadOrDraftKernels(
    Session& session, const std::vector<WorkloadArgument>& tasks, double tolerance,
    absl::Time deadline) {
  HONE_ASSIGN_OR_RETURN(const std::string target, session.TargetText());
  std::vector<network::NetworkKernel> kernels;
  ProgressLine progress;
  const auto load = [&](const WorkloadArgument& task,
                        const std::optional<v1::Best>& best) -> absl::Status {
    if (best.has_value()) {
      HONE_ASSIGN_OR_RETURN(kernels.emplace_back(), LoadBest(session, *best));
      return absl::OkStatus();
    }
    if (absl::Now() >= deadline) return absl::DeadlineExceededError("there was no time left");
    progress.Show(absl::StrCat("building a schedule for task ", kernels.size() + 1, " of ",
                               tasks.size(), ", ", task.title));
    HONE_ASSIGN_OR_RETURN(const v1::DraftedSchedule drafted,
                          session.connection().DraftSchedule(task.text, target, tolerance));
    HONE_ASSIGN_OR_RETURN(const record::Artifact artifact,
                          client::BuildKernel(drafted.trace(), drafted.target()));
    HONE_ASSIGN_OR_RETURN(kernels.emplace_back(), network::LoadKernel(artifact));
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(VisitBests(session, tasks, tolerance, /*nearest=*/false, load).status());
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
