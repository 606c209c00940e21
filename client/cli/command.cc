#include "client/cli/command.h"

#include <utility>

namespace hone::cli {

void AddWorkloadWords(Command& command, std::vector<std::string>& words, bool required) {
  constexpr char kHelp[] =
      "OP key=value..., such as \"matmul m=512 n=512 k=512\", or a FILE.hone; hone operators "
      "lists the operators. Commands that have --shape also take a network, FILE.onnx";
  // The argument cannot be called "workload", because hone show has an option --workload, and newer
  // releases of CLI11 refuse an argument and an option with the same name.
  if (required) {
    command.Add("operator", words, kHelp, {Required()});
  } else {
    command.Add("operator", words, kHelp);
  }
}

void Complete(Command& command, Globals& globals, const std::string& footer,
              std::function<absl::Status()> action) {
  AddGlobals(command, globals);
  command.Footer(footer);
  command.OnRun(std::move(action));
}

}  // namespace hone::cli
