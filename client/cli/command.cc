#include "client/cli/command.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/output/format.h"
#include "client/cli/suggested_command.h"
#include "client/connection/client_config.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/rpc/certificate.h"

namespace hone::cli {
namespace {

// Makes suggested commands repeat the options of the command line that name the server.
void RepeatOptions(const Globals& globals) {
  std::vector<RepeatedOption> given;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) given.push_back({name, value});
  };
  add("--server", globals.server);
  if (globals.local) given.push_back({"--local", ""});
  add("--config", globals.config);
  add("--ca", globals.sources.ca);
  add("--token-file", globals.sources.token_file);
  add("--certificate", globals.sources.certificate);
  add("--key", globals.sources.key);
  if (globals.sources.insecure) given.push_back({"--insecure", ""});
  SetRepeatedOptions(given, globals.target);
}

// Whether the caller identifies itself, but not with the certificate of an administrator.
bool IsNoAdmin(const rpc::ChannelSecurity& security) {
  const std::string& certificate = security.identity.certificate;
  if (certificate.empty()) return !security.token.empty();
  const auto facts = rpc::DescribeCertificate(certificate);
  const auto identity = facts.ok() ? rpc::IdentityFromUri(facts->uri) : facts.status();
  return !identity.ok() || identity->role != rpc::Role::kAdmin;
}

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

void AddGlobals(Command& command, Globals& globals, bool hide_target) {
  if (hide_target) {
    command.Add("--target", globals.target, "", {NotEmpty(), Hidden()});
  } else {
    command.Add(
        "--target", globals.target,
        "Target of the kernels: native (default), cuda, cuda:N, opencl or opencl:N (a device of "
        "this machine), a preset, or a key printed by other commands. native means this CPU. In a "
        "job on a --server, it means the target of the server's workers, which must have only one",
        {NotEmpty()});
  }
  command.AddFlag("--json", globals.json,
                  "Print one JSON object on one line; after a failure it has the key error");
  AddConnectionOptions(command, globals);
}

void AddConnectionOptions(Command& command, Globals& globals) {
  const OptionRule group = Group("Connection options (hone help connection explains them)");
  const auto add = [&](const char* name, std::string& value, const char* help) {
    command.Add(name, value, help, {NotEmpty(), group});
  };
  add("--server", globals.server,
      "ADDR of the server: host:port or unix:/path, or several, separated by commas, of a leader "
      "and "
      "its standbys (default: a private server on this machine)");
  command.AddFlag("--local", globals.local,
                  "Use the private server and the store of this machine, although a configuration "
                  "file or HONE_SERVER names a server",
                  {group});
  add("--config", globals.config,
      "FILE with server, ca, token and certificate (default ~/.config/hone/client.conf)");
  add("--ca", globals.sources.ca,
      "FILE with the certificate authorities of the server, or \"system\"; turns on encryption");
  add("--token-file", globals.sources.token_file, "FILE with your token");
  add("--certificate", globals.sources.certificate, "FILE with your certificate");
  add("--key", globals.sources.key, "FILE with the private key of your certificate");
  command.AddFlag("--insecure", globals.sources.insecure,
                  "Allow an unencrypted connection to another machine", {group});
}

std::string HowToStartWorker(const Globals& globals) {
  if (!globals.security.tls()) return absl::StrCat("hone-worker --server ", globals.server);
  return "hone worker-config --authority FOLDER --name NAME -o NAME.conf, with the folder that "
         "hone-server init made, then hone-worker --config NAME.conf";
}

absl::Status CompleteGlobals(Globals& globals) {
  RepeatOptions(globals);
  if (globals.local) {
    if (globals.server.empty() && globals.config.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--local means the store of this machine; give it without --server and --config");
  }
  HONE_ASSIGN_OR_RETURN(
      const client::ClientConfig config,
      client::CompleteConfig({.server = globals.server, .security = globals.sources},
                             globals.config));
  globals.server = config.server;
  globals.ignored_config = config.ignored;
  if (!config.server.empty()) SetAskedServer(config.server, config.source);
  HONE_ASSIGN_OR_RETURN(globals.security, rpc::LoadSecurity(config.security));
  if (IsNoAdmin(globals.security)) NameAdminConfig();
  return absl::OkStatus();
}

absl::Status NameIgnoredConfig(const Globals& globals, const absl::Status& error) {
  if (error.ok() || globals.ignored_config.empty()) return error;
  absl::Status named(error.code(), WithClause(error.message(), globals.ignored_config));
  error.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

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
