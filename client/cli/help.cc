// hone help [TOPIC | COMMAND].

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/terminal.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

std::string ConnectionHelp() {
  Globals unused;
  Command options("How a command reaches its server.");
  AddConnectionOptions(options, unused);
  options.Footer(
      "If no server is given, a command uses the private server of this machine, and starts it if\n"
      "necessary. The private server ends with its last client.\n\n"
      "Options that are not on the command line are taken from the environment (HONE_SERVER,\n"
      "HONE_CA, HONE_TOKEN_FILE), and then from a configuration file: --config, $HONE_CONFIG, or\n"
      "~/.config/hone/client.conf if it exists. A file for a server other than the given one is\n"
      "ignored. --local asks the private server nevertheless. hone-server init makes such a file:\n"
      "  server = \"hone.internal:7070\"\n"
      "  ca = \"/etc/hone/ca.pem\"\n"
      "  token-file = \"/home/me/token\"\n\n"
      "Connections to other machines must be encrypted, unless --insecure is given: --ca names "
      "the\n"
      "authority of the server.\n\n"
      "Examples:\n"
      "  hone --config client.conf workers list\n"
      "  hone --server hone.internal:7070 --ca ca.pem --token-file token jobs list\n"
      "  hone doctor --server hone.internal:7070");
  return options.Help("hone COMMAND");
}

std::string ExitCodesHelp() {
  std::string text = "The exit codes of every command:\n";
  for (const ExitCodeInfo& info : ExitCodes()) {
    const std::string line = absl::StrFormat("  %3d  %s", info.code, info.meaning);
    absl::StrAppend(&text, Wrapped(line, TerminalColumns(STDOUT_FILENO), "       "), "\n");
  }
  return text;
}

struct Topic {
  const char* name;
  const char* meaning;
  std::string (*text)();
};
constexpr Topic kTopics[] = {
    {"connection", "how a command reaches its server", ConnectionHelp},
    {"exit-codes", "what the exit codes mean", ExitCodesHelp},
};

// The help of a topic or of a command, whose name may have several words.
absl::StatusOr<std::string> HelpOn(const Command& app, const std::vector<std::string>& words) {
  std::vector<std::string> known = app.CommandNames();
  for (const Topic& topic : kTopics) {
    if (words.size() == 1 && words[0] == topic.name) return topic.text();
    known.push_back(topic.name);
  }
  const Command* command = &app;
  std::string name = "hone";
  for (const std::string& word : words) {
    const Command* const next = command->Find(word);
    if (next == nullptr) {
      const std::vector<std::string> names = command == &app ? known : command->CommandNames();
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no help on '", absl::StrJoin(words, " "), "'",
          names.empty() ? ""
                        : DidYouMeanOneOf(
                              word, command == &app ? "commands and topics" : "commands", names)));
    }
    command = next;
    absl::StrAppend(&name, " ", word);
  }
  return command->Help(name);
}

}  // namespace

void AddHelp(Command& app, Globals& globals) {
  Command& command = app.AddCommand("help", "Show the help of a command or on a topic");
  auto words = std::make_shared<std::vector<std::string>>();
  command.Add("topic", *words, "A command, such as \"records export\", or a topic");
  std::string topics = "Topics:\n";
  for (const Topic& topic : kTopics) {
    absl::StrAppendFormat(&topics, "  %-12s %s\n", topic.name, topic.meaning);
  }
  CompleteWithoutTarget(command, globals,
                        absl::StrCat(topics,
                                     "\nExamples:\n"
                                     "  hone help tune\n"
                                     "  hone help connection"),
                        [&app, words]() -> absl::Status {
                          HONE_ASSIGN_OR_RETURN(const std::string text, HelpOn(app, *words));
                          PrintText(text);
                          return absl::OkStatus();
                        });
}

}  // namespace hone::cli
