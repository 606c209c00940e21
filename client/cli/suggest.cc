#include "client/cli/suggest.h"

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/operator/operator.h"

namespace hone::cli {
namespace {

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  return names;
}

const CLI::App* CommandNamed(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command :
       app.get_subcommands([&](const CLI::App* c) { return c->get_name() == name; }))
    return command;
  return nullptr;
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = op::Nearest(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

}  // namespace

std::string ExplainCommandLine(const CLI::App& app, const std::vector<std::string>& arguments,
                               const std::string& parser_says) {
  const CLI::App* command = &app;
  std::string path = "hone";
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (absl::StartsWith(word, "--")) {
      const std::string name = word.substr(0, word.find('='));
      const CLI::Option* option = command->get_option_no_throw(name);
      if (option == nullptr) {
        return absl::StrCat("unknown option ", name, " of '", path, "'",
                            DidYouMean(name, OptionNames(*command)));
      }
      if (option->get_items_expected() > 0 && name == word) {
        if (++i == arguments.size()) {
          return absl::StrCat(name, " needs a value (see ", path, " --help)");
        }
      }
      continue;
    }
    const std::vector<std::string> names = CommandNames(*command);
    if (names.empty()) continue;  // words of the command itself
    const CLI::App* next = CommandNamed(*command, word);
    if (next == nullptr) {
      return absl::StrCat("unknown command '", word, "' of '", path, "'", DidYouMean(word, names),
                          "; the commands are ", absl::StrJoin(names, ", "));
    }
    command = next;
    absl::StrAppend(&path, " ", word);
  }
  const std::vector<std::string> names = CommandNames(*command);
  if (!names.empty())
    return absl::StrCat("'", path, "' needs a command: ", absl::StrJoin(names, ", "));
  return absl::StrCat(parser_says, " (see ", path, " --help)");
}

}  // namespace hone::cli
