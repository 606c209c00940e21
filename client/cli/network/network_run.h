#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_RUN_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_RUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/numeric_error.h"

namespace hone::cli {

struct NetworkRunOptions {
  NetworkWords words;
  std::vector<std::string> in;      // .npy files
  std::vector<std::string> out;     // .npy files; may be empty
  std::vector<std::string> expect;  // .npy files that outputs are compared with; may be empty
  ErrorLimits limits;               // if an output differs by more, the command fails
  NetworkKernelOptions kernels;
  int repeat = 1;
  bool profile = false;
};

// Runs a network on NumPy files with the best known kernels, of several sizes that whose shapes the
// inputs have, and prints its latency, what shows
// that other work disturbed the runs, the error against the expected outputs, and with `profile`
// the time of each step in the run with the median latency. InvalidArgument: a file does not fit.
// Aborted: an output differs by more than `limits`.
// Other errors as for ReadNetwork and LoadNetworkKernels.
absl::Status RunNetwork(const Globals& globals, const NetworkRunOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_RUN_H_
