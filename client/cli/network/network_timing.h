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
#include "client/cli/network/network_kernels.h"
#include "client/cli/output/json_output.h"
#include "client/network/plan/runner.h"

namespace hone::cli {

// The times of repeated runs of a network, and of the steps of a typical run.
class RepeatedRuns {
 public:
  // The steps of at most this many runs are kept, because they need much more memory than the time
  // of a run.
  static constexpr size_t kMostSteps = 1000;

  void Add(double run_ns, std::vector<network::StepTime> steps);

  // The time of the run that takes longer than this share of the runs, in nanoseconds; 0.5: the
  // median. REQUIRES: a run was added.
  double At(double share) const;
  // The times of all runs together.
  double SumNs() const;
  // The steps of the run with the median time; with more than kMostSteps runs, of the first ones
  // that which is nearest to the median. REQUIRES: a run was added.
  const std::vector<network::StepTime>& MedianSteps() const;

 private:
  std::vector<double> runs_ns_;
  std::vector<std::vector<network::StepTime>> steps_;  // of the first runs
};

// How fast one step of a network ran.
struct StepSpeed {
  std::string name;    // the names of the step's nodes
  std::string kernel;  // the name of the step's workload
  double latency_ns = 0;
};

// How fast a network ran on a machine.
struct NetworkSpeed {
  // What was measured. Two speeds are compared only if these four fields are equal.
  std::string network;  // the name of the model's file, without folders, or of an operator
  std::string inputs;   // "data: f32[1, 3, 224, 224]"; for an operator, its outputs and digest, too
  std::string target;
  int threads = 0;  // 0 on a GPU

  int64_t measured_unix_ms = 0;
  double latency_ns = 0;
  // What shows that other work disturbed the measurement of a baseline; "" if nothing does.
  std::string disturbance;
  std::vector<StepSpeed> steps;
};

// Whether the two speeds may be compared.
bool MeasureTheSame(const NetworkSpeed& a, const NetworkSpeed& b);
// "resnet50.onnx (data: f32[1, 3, 224, 224]) on TARGET with 2 threads".
std::string DescribeMeasured(const NetworkSpeed& speed);

// Adds a baseline. Returns the one that it replaces, of the same network on the same machine;
// nullopt if there was none.
std::optional<NetworkSpeed> AddBaseline(const NetworkSpeed& speed,
                                        std::vector<NetworkSpeed>& baselines);

// Baselines are kept in a JSON file, which may be under version control. A file can hold baselines
// of several networks and machines.
//
// ReadBaselines: NotFound: the file does not exist. InvalidArgument: as for ParseBaselines.
// WriteBaselines: errors as for WriteFileAtomically, with the exit code kExitFailed.
absl::StatusOr<std::vector<NetworkSpeed>> ReadBaselines(const std::string& path);
absl::Status WriteBaselines(const std::string& path, const std::vector<NetworkSpeed>& baselines);

// Convert baselines to and from the text of the file. InvalidArgument: the text is malformed or
// of another version of the format.
std::string BaselinesToText(const std::vector<NetworkSpeed>& baselines);
absl::StatusOr<std::vector<NetworkSpeed>> ParseBaselines(absl::string_view text);

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
