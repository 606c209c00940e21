#ifndef HONE_CLIENT_CLI_NETWORK_BF16_CHOICE_H_
#define HONE_CLIENT_CLI_NETWORK_BF16_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/output/json_output.h"
#include "client/cli/session.h"
#include "common/base/command_line.h"

namespace hone::cli {

// Adds --between to a command: how the tensors between the kernels of a network are stored.
// Values: "auto", "bf16" and "f32".
void AddBetween(Command& command, std::string& between);

// What was decided about the tensors between the kernels of a network.
struct Bf16Choice {
  bool considered = false;  // the tolerance allows bf16, and the network runs on this CPU
  int64_t candidates = 0;   // tensors that could be in bf16
  int64_t in_bf16 = 0;
  int64_t bytes = 0, f32_bytes = 0;  // of the candidates, as they are stored, and in f32
  double error = 0;    // of the network's outputs, relative to the largest magnitude of each
  double gain = 0;     // the time with f32 over the time with bf16; 0: not measured
  std::string reason;  // why all tensors are in f32; "" if some are in bf16
  // The tasks of the network in bf16 without a confirmed schedule, and a command that tunes them.
  int64_t untuned = 0;
  std::string tune;
};
// Tells the user on standard error, unless bf16 was not considered.
void PrintBf16(const Bf16Choice& choice, double tolerance, bool given_inputs);
Json ToJson(const Bf16Choice& choice);

// Whether tensors may be in bf16 with this tolerance on the target of the session, which must be
// the CPU of this machine, because the network is run here. Errors as for Session::TargetKey.
absl::StatusOr<bool> CanChooseBf16(Session& session, double tolerance);

// Stores tensors between the kernels of a network in bf16 if `options.tolerance` allows it:
// replaces `network` and `kernels` by those of the changed network.
//
// The error is that of all outputs, against kernels without a tolerance that compute with f32, on
// `inputs`, or on random ones if there are none. First all tensors are in bf16. If the error is too
// large, those get f32 back that cause the largest errors alone, until the tolerance holds. This
// takes at most kMostRuns runs of the network; a network with more tensors is judged in groups of
// neighbours. With "auto", bf16 is only used if the network is then at least 2 % faster, measured
// alternately.
//
// The tasks of the changed network are others, which `hone tune --between bf16` tunes. Without
// that, they get the schedules of the draft.
//
// Does nothing for "f32", with --locked, for GPUs and for other machines' CPUs. Errors as for
// LoadOrDraftKernels, MakeRunner and RunTimed.
absl::StatusOr<Bf16Choice> ChooseBf16(Session& session, const NetworkKernelOptions& options,
                                      absl::Span<const absl::string_view> inputs,
                                      NetworkArgument& network, NetworkKernels& kernels);

// Loads the kernels of a network, and then does the same. With "bf16", it suffices that tasks of
// the network in bf16 were tuned. Errors as for LoadNetworkKernels and ChooseBf16.
absl::StatusOr<Bf16Choice> LoadWithBf16(Session& session, const NetworkKernelOptions& options,
                                        absl::Span<const absl::string_view> inputs,
                                        NetworkArgument& network, NetworkKernels& kernels);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_BF16_CHOICE_H_
