#include "client/cli/command.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::cli {

void AddWorkloadWords(Command& command, std::vector<std::string>& words, bool required,
                      Names names) {
  const std::string help =
      absl::StrCat("OP key=value..., such as \"matmul m=512 n=512 k=512\", or a FILE.hone",
                   names == Names::kOperatorOrNetwork ? ", or a network, FILE.onnx" : "",
                   "; hone operators lists the operators");
  // The argument cannot be called "workload", because hone show has an option --workload, and newer
  // releases of CLI11 refuse an argument and an option with the same name.
  if (required) {
    command.Add("operator", words, help, {Required()});
  } else {
    command.Add("operator", words, help);
  }
}

void Complete(Command& command, Globals& globals, const std::string& footer,
              std::function<absl::Status()> action) {
  AddGlobals(command, globals);
  command.Footer(footer);
  command.OnRun(std::move(action));
}

void CompleteWithoutTarget(Command& command, Globals& globals, const std::string& footer,
                           std::function<absl::Status()> action) {
  AddGlobals(command, globals, /*hide_target=*/true);
  command.Footer(footer);
  command.OnRun([&globals, action = std::move(action)] {
    return globals.target.empty()
               ? action()
               : absl::InvalidArgumentError("this command does not use --target; omit the option");
  });
}

}  // namespace hone::cli
