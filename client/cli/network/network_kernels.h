#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_KERNELS_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_KERNELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/session.h"
#include "client/network/plan/network_kernel.h"

namespace hone::cli {

// Which kernels a network runs with.
struct NetworkKernelOptions {
  double tolerance = 0;
  // Tasks without a known best get the schedule that a search would begin with. It is built here,
  // and neither checked nor timed.
  bool draft = false;
  std::string hint;  // added to the message if schedules are unknown
};

// Adds --draft to a command. The hint of such a command is kDraftHint.
inline constexpr char kDraftHint[] = "; --draft uses schedules that are not tuned";
void AddDraft(Command& command, bool& draft);

// Fetches and loads the kernels of the best known schedules of a network's tasks, in their order.
// NothingKnownError: no schedule is known for some tasks. FailedPrecondition: the file of the
// network was changed since it was read. Other errors as for ArtifactOf,
// client::Connection::DraftSchedule, client::BuildKernel and network::LoadKernel.
absl::StatusOr<std::vector<network::NetworkKernel>> LoadNetworkKernels(
    Session& session, const NetworkArgument& network, const NetworkKernelOptions& options);

// The same for some tasks: for those without a known best, builds the schedule that a search would
// begin with, with the progress on standard error. DeadlineExceeded: there was no time for all.
absl::StatusOr<std::vector<network::NetworkKernel>> LoadOrDraftKernels(
    Session& session, const std::vector<WorkloadArgument>& tasks, double tolerance,
    absl::Time deadline = absl::InfiniteFuture());

// The sum of the latencies of a network's kernels in all of its steps; 0 if one is not known.
double SumOfKernels(const NetworkArgument& network,
                    absl::Span<const network::NetworkKernel> kernels);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_KERNELS_H_
