#include "client/cli/command.h"

#include <utility>

namespace hone::cli {

void AddWorkloadWords(Command& command, std::vector<std::string>& words, bool required) {
  constexpr char kHelp[] =
      "OP key=value..., such as \"matmul m=512 n=512 k=512\", or a FILE.hone; hone operators "
      "lists the operators";
  if (required) {
    command.Add("workload", words, kHelp, {Required()});
  } else {
    command.Add("workload", words, kHelp);
  }
}

void Complete(Command& command, Globals& globals, const std::string& footer,
              std::function<absl::Status()> action) {
  AddGlobals(command, globals);
  command.Footer(footer);
  command.OnRun(std::move(action));
}

}  // namespace hone::cli
