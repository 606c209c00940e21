#include "client/cli/suggest.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/format.h"
#include "common/base/nearest.h"

namespace hone::cli {

std::string ExplainCommandLine(const Command& app, const std::vector<std::string>& arguments,
                               absl::string_view parser_says) {
  const Command* command = &app;
  std::string path = "hone";
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (absl::StartsWith(word, "--")) {
      const std::string name = word.substr(0, word.find('='));
      const std::optional<bool> takes_value = command->TakesValue(name);
      if (!takes_value.has_value()) {
        return absl::StrCat("unknown option ", name, " of '", path, "'",
                            DidYouMean(name, command->OptionNames()));
      }
      if (*takes_value && name == word && ++i == arguments.size()) {
        return absl::StrCat(name, " needs a value (see ", path, " --help)");
      }
      continue;
    }
    const std::vector<std::string> names = command->CommandNames();
    if (names.empty()) continue;  // words of the command itself
    const Command* const next = command->Find(word);
    if (next == nullptr) {
      return absl::StrCat("unknown command '", word, "' of '", path, "'",
                          DidYouMeanOneOf(word, "commands", names));
    }
    command = next;
    absl::StrAppend(&path, " ", word);
  }
  const std::vector<std::string> names = command->CommandNames();
  if (!names.empty())
    return absl::StrCat("'", path, "' needs a command: ", absl::StrJoin(names, ", "));
  return absl::StrCat(parser_says, " (see ", path, " --help)");
}

}  // namespace hone::cli
