#include "client/cli/network_argument.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/model_argument.h"
#include "client/cli/shell_word.h"
#include "client/cli/target_argument.h"
#include "common/base/status_macros.h"
#include "common/graph/pass/passes.h"

namespace hone::cli {
namespace {

// "conv2d_relu -> f32[1, 64, 56, 56]".
std::string TitleOf(const ir::Workload& workload) {
  return absl::StrCat(workload.name, " -> ",
                      absl::StrJoin(workload.Outputs(), ", ", [&](std::string* out, int tensor) {
                        const ir::Tensor& each = workload.tensors[tensor];
                        absl::StrAppend(out, ir::TypeText(each.dtype, each.shape));
                      }));
}

std::optional<std::filesystem::file_time_type> TimeOf(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? std::nullopt : std::make_optional(time);
}

}  // namespace

void AddShapes(Command& command, std::vector<std::string>& shapes) {
  command.Add("--shape", shapes, kShapeHelp, {NotEmpty()});
}

bool NamesNetwork(absl::Span<const std::string> words) {
  return words.size() == 1 && NamesModel(words[0]);
}

absl::StatusOr<NetworkArgument> ReadNetwork(const NetworkWords& words) {
  NetworkArgument network{.path = words.path, .written = TimeOf(words.path)};
  HONE_ASSIGN_OR_RETURN(network.graph, ReadModelArgument(words.path, words.shapes));
  HONE_RETURN_IF_ERROR(graph::Optimize(network.graph));
  HONE_ASSIGN_OR_RETURN(network.partition, graph::MakePartition(network.graph));
  for (const graph::Task& task : network.partition.tasks) {
    network.tasks.push_back({task.workload, task.workload.ToText(), TitleOf(task.workload)});
  }
  return network;
}

absl::Status CheckNetworkTarget(const Globals& globals) {
  if (!TargetArgument{.given = globals.target}.IsGpu()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "networks run on CPUs only, and --target ", globals.target,
      " is a GPU; tune its operators one by one (hone tune matmul m=512 n=512 k=512 --target ",
      globals.target, "), or omit --target"));
}

absl::Status CheckUnchanged(const NetworkArgument& network) {
  if (TimeOf(network.path) == network.written) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(network.path, " was changed while this command used it; run the command again"));
}

absl::Status CheckNetworkKnown(const NetworkArgument& network, size_t unknown,
                               const std::string& target, absl::string_view hint) {
  if (unknown == 0) return absl::OkStatus();
  return NothingKnownError(absl::StrCat(
      "no schedule is known for ", unknown, " of the ", network.tasks.size(), " tasks of ",
      network.path, " on ", target, "; find them with: hone tune ", ShellWord(network.path), hint));
}

}  // namespace hone::cli
