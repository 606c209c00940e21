#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_CHECK_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"

namespace hone::cli {

struct NetworkCheckOptions {
  NetworkWords words;
  std::vector<std::string> operator_words;  // an operator instead of a network; empty if none
  double tolerance = 0;
  std::string baseline;            // file
  bool save = false;               // write the measured times to the file, and compare nothing
  bool even_if_disturbed = false;  // with `save`: accept a measurement that other work disturbed
  double max_regression = 0.05;    // as a fraction of the baseline's latency
  absl::Duration time = absl::Seconds(1);  // how long to measure
  std::string junit;                       // files to write about a comparison; "": none
  std::string markdown;
};

// Times a network or an operator with the best known kernels, and compares it with a baseline.
// Prints the steps whose times changed most. If the network is too slow, it is measured again with
// newly allocated memory, up to three times in total and after pauses of at most 5 s, and the
// fastest time counts. A baseline that other work disturbed is measured again in the same way. A
// disturbed comparison still counts; the report names the disturbance of this measurement, and that
// of the baseline. The files of the options are also written if the comparison fails, or is not
// made because of an error.
//
// FailedPrecondition: the network is slower than allowed. InconclusiveError: it seems to be, but
// other work disturbed the measurement; or every measurement for a baseline was disturbed, and
// even_if_disturbed is false. NothingKnownError: the file has no baseline for this
// network and machine. Other errors as for ReadNetwork, LoadNetworkKernels and ReadBaselines.
absl::Status CheckNetwork(const Globals& globals, const NetworkCheckOptions& options);

// The result of a comparison. `regression` and `max_regression`: fractions of the baseline's
// latency. `disturbance`: how other work disturbed the measurement; "" if it did not. Errors as
// above.
absl::Status ResultOf(absl::string_view name, double regression, double max_regression,
                      absl::string_view disturbance);

// A command that times a network on this machine, for messages. It saves a baseline in the current
// folder, because hone check needs one and hone run needs inputs.
std::string TimingCommand(const NetworkWords& words, double tolerance);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_CHECK_H_
