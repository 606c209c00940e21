// hone help [TOPIC | COMMAND].

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/terminal.h"
#include "common/base/file.h"
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

constexpr int kPageColumns = 78;

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

// A line as roff shows it.
std::string Escaped(absl::string_view line) {
  std::string text = absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}});
  return absl::StartsWith(text, ".") || absl::StartsWith(text, "'") ? absl::StrCat("\\&", text)
                                                                    : text;
}

// Writes the manual page of a command and of those below it; their text is that of --help.
absl::Status WritePages(const Command& command, const std::string& name,
                        const std::string& folder) {
  const std::string title = absl::StrReplaceAll(name, {{" ", "-"}});
  std::string page = absl::StrCat(".TH ", absl::AsciiStrToUpper(title),
                                  " 1 \"\" Hone Hone\n.SH NAME\n", Escaped(title), " \\- ",
                                  Escaped(command.Description()), "\n.SH DESCRIPTION\n.nf\n");
  for (const absl::string_view line : absl::StrSplit(command.Help(name, kPageColumns), '\n'))
    absl::StrAppend(&page, Escaped(line), "\n");
  absl::StrAppend(&page, ".fi\n");
  HONE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", title, ".1"), page));
  for (const std::string& below : command.CommandNames()) {
    HONE_RETURN_IF_ERROR(WritePages(*command.Find(below), absl::StrCat(name, " ", below), folder));
  }
  return absl::OkStatus();
}

}  // namespace

void AddHelp(Command& app, Globals& globals) {
  Command& command = app.AddCommand("help", "Show the help of a command or on a topic");
  auto words = std::make_shared<std::vector<std::string>>();
  auto folder = std::make_shared<std::string>();
  command.Add("topic", *words, "A command, such as \"records export\", or a topic");
  command.Add("--man", *folder, "Write manual pages of all commands into this folder",
              {ExistingFolder()});
  std::string topics = "Topics:\n";
  for (const Topic& topic : kTopics) {
    absl::StrAppendFormat(&topics, "  %-12s %s\n", topic.name, topic.meaning);
  }
  CompleteWithoutTarget(command, globals,
                        absl::StrCat(topics,
                                     "\nExamples:\n"
                                     "  hone help tune\n"
                                     "  hone help connection"),
                        [&app, words, folder]() -> absl::Status {
                          if (!folder->empty()) return WritePages(app, "hone", *folder);
                          HONE_ASSIGN_OR_RETURN(const std::string text, HelpOn(app, *words));
                          PrintText(text);
                          return absl::OkStatus();
                        });
}

}  // namespace hone::cli
