#include "client/cli/suggest.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/output/format.h"
#include "common/base/nearest.h"

namespace hone::cli {
namespace {

// Words a message of the parser like our own.
std::string Worded(absl::string_view parser_says) {
  // "The following argument was not expected: 2", "The following arguments were not expected: 2 3".
  constexpr absl::string_view kMark = " not expected: ";
  const size_t mark = parser_says.find(kMark);
  if (mark == absl::string_view::npos) return std::string(parser_says);
  const absl::string_view words = parser_says.substr(mark + kMark.size());
  return absl::StrCat("unexpected ", absl::StrContains(words, ' ') ? "arguments " : "argument ",
                      words);
}

}  // namespace

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
    return absl::StrCat("'", path, "' needs a command: ", absl::StrJoin(names, ", "),
                        "; \"hone help\" and \"", path, " COMMAND --help\" describe them");
  return absl::StrCat(Worded(parser_says), " (see ", path, " --help)");
}

}  // namespace hone::cli
