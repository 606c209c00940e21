#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_KERNELS_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_KERNELS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/output/json_output.h"
#include "client/cli/session.h"
#include "client/network/plan/network_kernel.h"

namespace hone::cli {

// Where the schedule of a task comes from.
enum class ScheduleSource {
  kConfirmed,  // a published best
  kMeasured,   // the fastest measured candidate of a search that confirmed none
  kDraft,      // the schedule that a search would begin with; not measured
};
// "confirmed", "measured", "draft".
absl::string_view ScheduleSourceName(ScheduleSource source);

// The schedule that a task of a network uses.
struct TaskSchedule {
  ScheduleSource source = ScheduleSource::kDraft;
  std::optional<v1::Best> best;  // nullopt: the draft's
  std::string job;               // for a task that is not confirmed, as Unconfirmed::job
};

// How many tasks have a schedule from each source.
struct ScheduleCounts {
  int64_t confirmed = 0;
  int64_t measured = 0;
  int64_t draft = 0;
  // Kernels whose output was not checked: those of the draft, and those that differ from the kernel
  // that was measured, because another version of the compiler built them.
  int64_t unchecked = 0;

  void Add(ScheduleSource source);
  void Add(const ScheduleCounts& others);
  bool AnyMeasured() const { return confirmed + measured > 0; }
};
// "52 of 134 tasks have no confirmed schedule: 31 use the best measured one, 21 the draft's; the
// output of 21 of them was not checked"; "" if all are confirmed.
std::string UnconfirmedText(const ScheduleCounts& counts);
// The value of "schedule_count" in JSON.
Json ToJson(const ScheduleCounts& counts);

// Finds the schedule of each task: its best, else the fastest candidate that was measured, else the
// draft's. With --locked, all are the locked ones. Errors as for VisitBests.
absl::StatusOr<std::vector<TaskSchedule>> FindSchedules(Session& session,
                                                        const std::vector<WorkloadArgument>& tasks,
                                                        double tolerance);
// Without `unchecked`, because nothing is built yet.
ScheduleCounts CountSchedules(absl::Span<const TaskSchedule> schedules);

// Which kernels a network runs with.
struct NetworkKernelOptions {
  double tolerance = 0;
  bool draft = false;           // also if nothing of the network was ever tuned
  std::string hint;             // added to the message if schedules are unknown
  bool only_confirmed = false;  // each task needs a best
  // How tensors between kernels are stored; see bf16_choice.h.
  std::string between = "auto";
  // Kernels that are not stored are built here until then.
  absl::Time deadline = absl::InfiniteFuture();
};

// Adds --draft to a command. The hint of such a command is kDraftHint.
inline constexpr char kDraftHint[] = "; --draft uses schedules that are not tuned";
void AddDraft(Command& command, bool& draft);

// The kernels of a network's tasks, in their order.
struct NetworkKernels {
  std::vector<network::NetworkKernel> list;
  ScheduleCounts counts;
};

// Loads the kernels of the schedules that FindSchedules finds. Those that are not stored are built
// here, with the progress on standard error, and are not timed. NothingKnownError: nothing of the
// network was ever tuned, unless the options say that drafts suffice; or a task has no best, and
// only bests are wanted. FailedPrecondition: the file of the network was changed since it was read.
// DeadlineExceeded: there was no time to build all of them. Other errors as for ArtifactOf,
// client::Connection::DraftSchedule, client::BuildKernel and network::LoadKernel.
absl::StatusOr<NetworkKernels> LoadNetworkKernels(Session& session, const NetworkArgument& network,
                                                  const NetworkKernelOptions& options);

// The same for some tasks, also if nothing of them was ever tuned.
absl::StatusOr<NetworkKernels> LoadOrDraftKernels(Session& session,
                                                  const std::vector<WorkloadArgument>& tasks,
                                                  double tolerance,
                                                  absl::Time deadline = absl::InfiniteFuture());

// Tells the user on standard error how many tasks have no confirmed schedule, if any.
void PrintUnconfirmed(const ScheduleCounts& counts);

// The sum of the latencies of a network's kernels in all of its steps; 0 if one is not known.
double SumOfKernels(const NetworkArgument& network,
                    absl::Span<const network::NetworkKernel> kernels);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_KERNELS_H_
