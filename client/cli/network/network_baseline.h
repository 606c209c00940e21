#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_BASELINE_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_BASELINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::cli {

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

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_BASELINE_H_
