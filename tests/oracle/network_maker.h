#ifndef HONE_TESTS_ORACLE_NETWORK_MAKER_H_
#define HONE_TESTS_ORACLE_NETWORK_MAKER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"

namespace hone::oracle {

// A line from the oracle's script: a network and its inputs.
struct NetworkRequest {
  std::string model;                             // the bytes of an ONNX file
  std::vector<std::vector<std::string>> inputs;  // for each run, the elements of each input
  uint64_t seed = 0;                             // for all random choices
  // Whether kernels have random schedules of their design spaces; else the default schedule.
  bool is_random = false;
};

// InvalidArgument: not a JSON object with these fields.
absl::StatusOr<NetworkRequest> ParseNetworkRequest(absl::string_view line);

// What a network computes.
struct NetworkAnswer {
  std::vector<graph::TensorType> types;           // of the outputs
  std::vector<std::vector<std::string>> outputs;  // for each run
};

// Imports a network, optimizes it, builds its kernels for this machine, and runs it, all as `hone
// run` does. `on_step` is called before each step that may crash the process.
//
// InvalidArgument, Unimplemented, FailedPrecondition: the importer refuses the model. Other errors
// are faults of Hone.
absl::StatusOr<NetworkAnswer> RunNetwork(const NetworkRequest& request,
                                         const std::function<void(const std::string&)>& on_step);

}  // namespace hone::oracle

#endif  // HONE_TESTS_ORACLE_NETWORK_MAKER_H_
