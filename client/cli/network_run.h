#ifndef HONE_CLIENT_CLI_NETWORK_RUN_H_
#define HONE_CLIENT_CLI_NETWORK_RUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cli/globals.h"
#include "client/cli/json_output.h"
#include "client/cli/network_argument.h"
#include "client/cli/network_kernels.h"
#include "client/network/runner.h"
#include "common/graph/graph.h"

namespace hone::cli {

// The times of repeated runs of a network, in nanoseconds.
struct NetworkTimes {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};
Json ToJson(const NetworkTimes& times);

// "data: f32[1, 3, 224, 224]".
std::string DescribeValues(const graph::Graph& graph, const std::vector<graph::ValueId>& ids);

// Runs a network `repeat` times after one run that does not count. REQUIRES: repeat ≥ 1.
absl::StatusOr<NetworkTimes> TimeNetwork(network::Runner& runner,
                                         absl::Span<const absl::string_view> inputs, int repeat);

// Whether other programs disturbed the runs of a whole network: "took 1136 times as long as its
// kernels", or "" if nothing shows that. `kernels_ns`: the sum of its kernels; 0: not known.
std::string DisturbanceOfRuns(double latency_ns, double kernels_ns);

// Makes elements for the inputs of a network, the same in every call: uniform in [-1, 1), and zeros
// for integers.
std::vector<std::string> SomeInputs(const network::Runner& runner);

struct NetworkRunOptions {
  NetworkWords words;
  std::vector<std::string> in;      // .npy files
  std::vector<std::string> out;     // .npy files; may be empty
  std::vector<std::string> expect;  // .npy files that outputs are compared with; may be empty
  NetworkKernelOptions kernels;
  int repeat = 1;
  bool profile = false;
};

// Runs a network on NumPy files with the best known kernels, and prints its latency, the error
// against the expected outputs, and with `profile` the time of each step. InvalidArgument: a file
// does not fit. Other errors as for ReadNetwork and LoadNetworkKernels.
absl::Status RunNetwork(const Globals& globals, const NetworkRunOptions& options);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_RUN_H_
