// hone completion SHELL, and what its script asks: hone completion words WORD...

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/output/format.h"
#include "common/operator/operator.h"

namespace hone::cli {
namespace {

constexpr absl::string_view kBash = R"(# Completion of hone in bash: source <(hone completion bash)
_hone() {
  local words
  # bash divides words at "=" too, but hone's words have it inside.
  local line="${COMP_LINE:0:COMP_POINT}"
  read -r -a words <<< "$line"
  [[ "$line" == *' ' ]] && words+=("")
  mapfile -t COMPREPLY < <("${words[0]}" completion words "${words[@]:1}" 2> /dev/null)
  [[ ${#COMPREPLY[@]} == 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
  return 0
}
complete -o bashdefault -o default -F _hone hone
)";

constexpr absl::string_view kZsh = R"(#compdef hone
# Completion of hone in zsh: source <(hone completion zsh), or a file _hone in $fpath
_hone() {
  local -a found
  found=("${(@f)$("${words[1]}" completion words "${(@)words[2,CURRENT]}" 2> /dev/null)}")
  found=("${(@)found:#}")
  if (( ${#found} )); then compadd -S '' -- "${(@M)found:#*=}"; compadd -- "${(@)found:#*=}"; else _files; fi
}
if [[ "${funcstack[1]}" == _hone ]]; then _hone "$@"; else compdef _hone hone; fi
)";

constexpr absl::string_view kFish = R"(# Completion of hone in fish: hone completion fish | source
function __hone_words
  set -l words (commandline -opc) (commandline -ct)
  $words[1] completion words $words[2..-1] 2> /dev/null
end
complete -c hone -a '(__hone_words)'
)";

struct Shell {
  const char* name;
  absl::string_view script;
};
constexpr Shell kShells[] = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
// What was typed before the word that is completed.
struct Typed {
  const Command* command;
  std::vector<std::string> arguments;  // that are not options
  bool expects_value = false;          // of an option
};

Typed Read(const Command& app, absl::Span<const std::string> words) {
  Typed typed{.command = &app};
  for (const std::string& word : words) {
    if (typed.expects_value) {
      typed.expects_value = false;
    } else if (absl::StartsWith(word, "-") && word != "-") {
      typed.expects_value =
          !absl::StrContains(word, '=') && typed.command->TakesValue(word).value_or(false);
    } else if (const Command* const next = typed.command->Find(word);
               next != nullptr && typed.arguments.empty()) {
      typed.command = next;
    } else {
      typed.arguments.push_back(word);
    }
  }
  return typed;
}

// The operators, or the keys of the given one.
std::vector<std::string> OperatorWords(const std::vector<std::string>& given) {
  std::vector<std::string> words;
  if (given.empty()) {
    for (const op::OperatorInfo& info : op::Operators()) words.push_back(info.name);
    return words;
  }
  const op::OperatorInfo* const info = op::FindOperator(given[0]);
  if (info == nullptr) return {};
  for (const op::KeyInfo& key : info->keys) {
    const std::string word = key.name + "=";
    const bool is_given = std::any_of(given.begin() + 1, given.end(), [&](const std::string& each) {
      return absl::StartsWith(each, word);
    });
    if (!is_given) words.push_back(word);
  }
  return words;
}

// What the last word may become; none: a file, or a value that only the user knows.
std::vector<std::string> WordsAfter(const Command& app, absl::Span<const std::string> words) {
  const std::string last = words.empty() ? "" : words.back();
  const Typed typed = Read(app, words.first(words.empty() ? 0 : words.size() - 1));
  if (typed.expects_value) return {};
  std::vector<std::string> all;
  if (absl::StartsWith(last, "-")) {
    all = typed.command->OptionNames();
  } else if (all = typed.command->CommandNames(); !all.empty()) {
    if (!typed.arguments.empty()) return {};
  } else if (typed.command->TakesValue("operator").has_value()) {
    all = OperatorWords(typed.arguments);
  }
  std::erase_if(all, [&](const std::string& word) { return !absl::StartsWith(word, last); });
  absl::c_sort(all);
  return all;
}

absl::Status PrintScript(const std::string& name) {
  const auto* const shell =
      absl::c_find_if(kShells, [&](const Shell& each) { return each.name == name; });
  if (shell == std::end(kShells)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no completion for '", name,
                                                   "'; there is one for bash, zsh and fish"));
  }
  PrintText(shell->script);
  return absl::OkStatus();
}

}  // namespace

bool PrintCompletions(const Command& app, absl::Span<const std::string> arguments) {
  if (arguments.size() < 2 || arguments[0] != "completion" || arguments[1] != "words") return false;
  for (const std::string& word : WordsAfter(app, arguments.subspan(2)))
    std::printf("%s\n", word.c_str());
  return true;
}

void AddCompletion(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("completion", "Print a script that completes commands in bash, zsh or fish");
  auto shell = std::make_shared<std::string>();
  command.Add("shell", *shell, "bash, zsh or fish", {Required()});
  CompleteWithoutTarget(command, globals,
                        "Examples:\n"
                        "  source <(hone completion bash)    (in ~/.bashrc)\n"
                        "  source <(hone completion zsh)     (in ~/.zshrc)\n"
                        "  hone completion fish | source     (in ~/.config/fish/config.fish)",
                        [shell] { return PrintScript(*shell); });
}

}  // namespace hone::cli
