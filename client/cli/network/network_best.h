#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_BEST_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_BEST_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"

namespace hone::cli {

// Prints what the store knows of a network: the schedule of each task and where it comes from, as
// FindSchedules finds it; the share of the network's FLOPs in tasks with a best; and the sum of the
// latencies. Prints nothing but the error if it knows nothing. `report`: an HTML file to write; "":
// none. NothingKnownError: nothing of the network was ever tuned. Other errors as for ReadNetwork
// and WriteReport.
absl::Status ShowNetworkBest(const Globals& globals, const NetworkWords& words, double tolerance,
                             const std::string& report);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_BEST_H_
