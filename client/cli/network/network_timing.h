#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_TIMING_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_TIMING_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/network/network_baseline.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/output/json_output.h"
#include "client/network/plan/runner.h"

namespace hone::cli {

// One run of a network.
struct TimedRun {
  double ns = 0;
  std::vector<network::StepTime> steps;
  std::vector<std::string> outputs;
};

// Some consecutive runs of a network.
struct RunWindow {
  std::vector<double> runs_ns;   // not empty
  std::vector<StepSpeed> steps;  // with their medians
  bool interrupted = false;      // other programs took cores from the network's threads
};

// What was measured of a network so far.
struct NetworkTiming {
  std::string what = "network";  // or "operator"
  NetworkSpeed speed;  // of the window with the smallest median; an interrupted one counts only if
                       // all were interrupted
  double fastest_ns = std::numeric_limits<double>::infinity();  // of all runs
  int windows = 0;
  int interrupted = 0;  // windows
  // How many cores other programs used on average, in the measurement in which they used fewest;
  // nullopt: not known.
  std::optional<double> others_cores;
  int machine_cores = 0;  // 0: not known
  int target_cores = 0;   // on which the kernels were timed; 0: not known, or not on a CPU
};

// Makes elements for the inputs of a network, the same in every call: uniform in [-1, 1), and zeros
// for integers.
std::vector<std::string> SomeInputs(const network::Runner& runner);

// Makes a runner for a network. Errors are those of Runner::Create, with the exit code kExitFailed:
// a device that cannot be reached is no server.
absl::StatusOr<std::unique_ptr<network::Runner>> MakeRunner(
    const NetworkArgument& network, absl::Span<const network::NetworkKernel> kernels,
    const network::RunnerOptions& options);

// Runs a network once. `steps`: with the times of its steps. Errors are those of Runner::Run, with
// the exit code kExitFailed.
absl::StatusOr<TimedRun> RunTimed(network::Runner& runner,
                                  absl::Span<const absl::string_view> inputs, bool steps);

// Returns a timing of this network on this machine's device for these kernels, without runs.
NetworkTiming TimingOf(const NetworkArgument& network,
                       absl::Span<const network::NetworkKernel> kernels);

// Runs a network for about `time`, with newly allocated memory and while no other Hone process on
// this machine measures, and adds what it measures. After `deadline`, it only begins the first run
// that counts. Errors as for MakeRunner and RunTimed. DeadlineExceeded: other processes measured
// until then, or the first run that counts would end much later.
absl::Status MeasureNetwork(const NetworkArgument& network,
                            absl::Span<const network::NetworkKernel> kernels,
                            const network::RunnerOptions& options, absl::Duration time,
                            NetworkTiming& timing, absl::Time deadline = absl::InfiniteFuture());

// Adds runs to a measurement.
void AddWindow(RunWindow window, NetworkTiming& timing);

// Whether other programs took cores from a network. `interruptions`: how often its threads lost
// their cores to others while it ran for `run_ns`.
bool WasInterrupted(int64_t interruptions, int threads, double run_ns);

// Returns what shows that other work disturbed a measurement, so that the network is faster than
// measured; "" if nothing does. `kernels_ns`: the sum of the network's kernels; 0: not known.
std::string WhyDisturbed(const NetworkTiming& timing, double kernels_ns);
// Tells the user of a disturbed measurement, in a sentence without a period. `why`: of
// WhyDisturbed. `what`: of NetworkTiming.
std::string DisturbanceText(absl::string_view why, absl::string_view what = "network");

// Describes a measurement for --json: its latency, and whether other work disturbed it, as `why`
// says.
Json TimingJson(const NetworkTiming& timing, const std::string& why);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_TIMING_H_
