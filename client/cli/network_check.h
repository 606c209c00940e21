#ifndef HONE_CLIENT_CLI_NETWORK_CHECK_H_
#define HONE_CLIENT_CLI_NETWORK_CHECK_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/globals.h"
#include "client/cli/json_output.h"
#include "client/cli/network_argument.h"
#include "client/cli/network_baseline.h"

namespace hone::cli {

struct NetworkCheckOptions {
  NetworkWords words;
  double tolerance = 0;
  std::string baseline;          // file
  bool save = false;             // write what is measured to the file, and compare nothing
  double max_regression = 0.05;  // as a fraction of the baseline's latency
  absl::Duration time = absl::Seconds(1);  // how long to measure
};

// Some consecutive runs of a network.
struct RunWindow {
  std::vector<double> runs_ns;   // not empty
  std::vector<StepSpeed> steps;  // with their medians
  bool interrupted = false;      // other programs took cores from the network's threads
};

// What was measured of a network so far.
struct NetworkTiming {
  NetworkSpeed speed;  // of the window with the smallest median; an interrupted one counts only if
                       // all were interrupted
  double fastest_ns = std::numeric_limits<double>::infinity();  // of all runs
  int windows = 0;
  int interrupted = 0;  // windows
};
// Whether other programs took cores from a network. `interruptions`: how often its threads lost
// their cores to others while it ran for `run_ns`.
bool WasInterrupted(int64_t interruptions, int threads, double run_ns);

// Adds runs to a measurement.
void AddWindow(RunWindow window, NetworkTiming& timing);

// What shows that other work disturbed a measurement, so that the network is faster than measured
// and the result must not become a baseline; "" if nothing does. `kernels_ns`: the sum of the
// network's kernels, or 0 if it is not known.
std::string WhyDisturbed(const NetworkTiming& timing, double kernels_ns);

// Describes a measurement for --json: what was measured, how fast it was, and whether other work
// disturbed it, as `why` says.
Json TimingJson(const NetworkTiming& timing, const std::string& why);

// Times a network with the best known kernels, and compares it with a baseline. Prints the steps
// whose times changed most. If the network is too slow, it is measured again with newly allocated
// memory, up to three times in total, and the fastest time counts. So is a baseline that other work
// disturbed. A disturbed comparison counts, and the disturbance is reported.
//
// FailedPrecondition: the network is slower than allowed; every measurement for a baseline was
// disturbed. NothingKnownError: the file has no baseline for this network and machine. Other errors
// as for ReadNetwork, LoadNetworkKernels and ReadBaselines.
absl::Status CheckNetwork(const Globals& globals, const NetworkCheckOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_CHECK_H_
