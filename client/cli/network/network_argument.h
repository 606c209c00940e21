#ifndef HONE_CLIENT_CLI_NETWORK_NETWORK_ARGUMENT_H_
#define HONE_CLIENT_CLI_NETWORK_NETWORK_ARGUMENT_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/tune/running_job.h"
#include "client/cli/workload_argument.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"
#include "client/network/onnx/host_tail.h"
#include "common/base/command_line.h"
#include "common/base/rng.h"

namespace hone::cli {

// The words of a command line that name a network.
struct NetworkWords {
  std::string path;
  std::vector<std::string> shapes;  // "NAME=1x3x224x224"
};

// The words quoted for a shell, for commands in messages: "net.onnx --shape x=1x3".
std::string ToText(const NetworkWords& words);

// Adds --shape to a command.
void AddShapes(Command& command, std::vector<std::string>& shapes);

// A network named on the command line, divided into tasks.
struct NetworkArgument {
  std::string path;                 // or the words that name an operator
  std::vector<std::string> shapes;  // as in NetworkWords
  graph::Graph graph;
  std::shared_ptr<const onnx::HostTail> tail = nullptr;  // null: the graph is the whole model
  graph::Partition partition;
  // The tasks of the partition, in their order. Their titles name the operator and the shapes of
  // its outputs.
  std::vector<WorkloadArgument> tasks;
  std::optional<std::filesystem::file_time_type> written;  // when the file was last changed
  bool is_operator = false;                                // see ReadOperatorAsNetwork()
  bool in_bf16 = false;  // tensors between the kernels are, see ChooseBf16()
};

// Reads an ONNX file, and, if `warns`, prints a warning for each oddity of the model.
// InvalidArgument: a shape is not of the form NAME=1x3x224x224, is given twice, or leaves nothing
// to compute. Other errors are those of onnx::ImportOnnx. A model that Hone cannot run has the exit
// code kExitUsage. If the end of the model runs on the host, the graph lacks it, which a warning
// says; `tail` gets it.
absl::StatusOr<graph::Graph> ReadGraph(const NetworkWords& words, bool warns = true,
                                       std::shared_ptr<const onnx::HostTail>* tail = nullptr);

// The same, optimized and divided into tasks for the kind of device that --target names. Errors as
// for ReadGraph.
absl::StatusOr<NetworkArgument> ReadNetwork(const Globals& globals, const NetworkWords& words,
                                            bool warns = true);

// The tasks of a partition, in their order.
std::vector<WorkloadArgument> ArgumentsOf(const graph::Partition& partition);

// Reads an operator as a network of one step, so that it can be timed or exported like a network.
// With `constants_are_inputs`, its constants become inputs; otherwise they get the values of
// SomeElements. Errors as for ReadWorkloadArgument.
absl::StatusOr<NetworkArgument> ReadOperatorAsNetwork(const Globals& globals,
                                                      absl::Span<const std::string> words,
                                                      bool constants_are_inputs = false);

// Some elements of a tensor: uniform in [-1, 1), and zeros for integers.
std::string SomeElements(const graph::TensorType& type, Rng& rng);

// FailedPrecondition: the file was changed since it was read. Weights are read when they are first
// used, so they would now come from the new file.
absl::Status CheckUnchanged(const NetworkArgument& network);

// A suggested command that tunes the tasks of a network that have no known best; with --between
// bf16 for a network in bf16.
std::string TuneMissingCommand(const NetworkArgument& network, double tolerance);

// NothingKnownError: no confirmed schedule is known for some tasks of a network. OK if `unknown` is
// 0. `running`: a job that is tuning some of them. `hint` is added to the message.
absl::Status CheckNetworkKnown(const NetworkArgument& network, size_t unknown,
                               const std::string& target, double tolerance,
                               const std::optional<RunningJob>& running = std::nullopt,
                               absl::string_view hint = "");

// "data: f32[1, 3, 224, 224]".
std::string DescribeValues(const graph::Graph& graph, const std::vector<graph::ValueId>& ids);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_NETWORK_NETWORK_ARGUMENT_H_
