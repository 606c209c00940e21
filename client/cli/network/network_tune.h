#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_TUNE_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_TUNE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/network/network_timing.h"
#include "client/connection/api.h"

namespace hone::cli {

struct NetworkTuneOptions {
  NetworkWords words;
  // Without workload, target and tasks.
  v1::CreateJobRequest request;
  bool detach = false;
  std::string report;  // an HTML file to write; "": none
  // "bf16": tunes the network whose tensors between kernels are stored so, as ChooseBf16 chooses
  // them with random inputs and the schedules that are known at the beginning; "f32": as the model
  // is.
  std::string between = "f32";
};

// Tunes the tasks of a network in one job, and prints the tasks and the latency of the network:
// estimated from its kernels and, if the target is this machine, measured as a whole. Errors as for
// ReadNetwork, ChooseBf16, RunNetworkJob and WriteReport. InvalidArgument: bf16 is not possible
// with this tolerance or target. Aborted: some tasks have no working schedule.
absl::Status TuneNetwork(const Globals& globals, const NetworkTuneOptions& options);

// Returns the tasks whose confirmed latency is more than twice what their fastest step took in the
// network itself, those that distort the sum most first. `steps`: of a measurement of the network
// on the target. `bests`: of the tasks.
std::vector<size_t> ContradictedTasks(const NetworkArgument& network,
                                      absl::Span<const StepSpeed> steps,
                                      absl::Span<const std::optional<v1::Best>> bests);

// A warning if some of the tasks of a network get no trial; "" if there are enough trials.
// `trials`: the limit; 0: none.
std::string TooFewTrialsText(int64_t trials, int64_t tasks);
// A warning if the time is so short that some tasks may get no trial; "" if it is not. `time_ms`:
// the limit; 0: none.
std::string TooLittleTimeText(int64_t time_ms, int64_t tasks);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_TUNE_H_
