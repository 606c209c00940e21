#include "client/cli/command.h"

#include "absl/strings/str_cat.h"

namespace hone::cli {

void AddWorkloadWords(CLI::App& command, std::vector<std::string>& words, bool required) {
  CLI::Option* option =
      command.add_option("workload", words,
                         "OP key=value..., as in \"matmul m=512 n=512 k=512\", or a FILE.hone; "
                         "hone operators lists the operators");
  if (required) option->required();
}

std::string TuneFirstHint(const std::string& title) {
  return absl::StrCat("; find one with: hone tune ", title);
}

}  // namespace hone::cli
