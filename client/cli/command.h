#ifndef HONE_CLIENT_CLI_COMMAND_H_
#define HONE_CLIENT_CLI_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/command_line.h"
#include "common/rpc/security.h"

namespace hone::cli {

// The options that every command accepts, before or after its name.
struct Globals {
  std::string server;             // "": a private server on this machine
  std::string config;             // file; "": the default file, if it exists
  bool local = false;             // use the private server whatever else names a server
  rpc::SecuritySources sources;   // from the command line
  rpc::ChannelSecurity security;  // set by CompleteGlobals
  std::string ignored_config;     // set by CompleteGlobals; see client::ClientConfig::ignored
  std::string target;  // "native", "cuda", "opencl", a preset or a key; "" (not given) means native
  bool json = false;
  std::string locked;              // the lock file whose kernels are used; "": none
  bool warns_of_store = true;      // a session warns of a damaged store
  absl::Time began = absl::Now();  // of the command, for its time limit
};

// Adds these options to a command.
// `hide_target`: the help does not list --target.
void AddGlobals(Command& command, Globals& globals, bool hide_target = false);
// Adds only the options that say how to reach the server. The help lists them as one group.
void AddConnectionOptions(Command& command, Globals& globals);

// Sets the server and the security settings from the command line, the environment and the
// configuration file (see client::CompleteConfig), and the options that suggested commands repeat.
// Errors as for client::CompleteConfig and rpc::LoadSecurity.
absl::Status CompleteGlobals(Globals& globals);

// Adds to an error of the connection that the configuration file was ignored, if it was.
absl::Status NameIgnoredConfig(const Globals& globals, const absl::Status& error);

// Says how to start a worker of the given server, for hints. REQUIRES: a server is given.
std::string HowToStartWorker(const Globals& globals);

// Each function adds one command: its name, options, help with examples, and action. An action
// prints its results to standard output; main prints the error that it returns. `globals` must
// outlive `app`.
void AddTune(Command& app, Globals& globals);
void AddBest(Command& app, Globals& globals);
void AddLock(Command& app, Globals& globals);
void AddBundle(Command& app, Globals& globals);
void AddExport(Command& app, Globals& globals);
void AddCheck(Command& app, Globals& globals);
void AddCompare(Command& app, Globals& globals);
void AddDiff(Command& app, Globals& globals);
void AddExplain(Command& app, Globals& globals);
void AddRevalidate(Command& app, Globals& globals);
void AddForget(Command& app, Globals& globals);
void AddPin(Command& app, Globals& globals);
void AddRun(Command& app, Globals& globals);
void AddSchedule(Command& app, Globals& globals);
void AddShow(Command& app, Globals& globals);
void AddRecords(Command& app, Globals& globals);
void AddDataset(Command& app, Globals& globals);
void AddWorkers(Command& app, Globals& globals);
void AddWorkerConfig(Command& app, Globals& globals);
void AddJobs(Command& app, Globals& globals);
void AddModels(Command& app, Globals& globals);
void AddDashboard(Command& app, Globals& globals);
void AddOperators(Command& app, Globals& globals);
void AddPrimitives(Command& app, Globals& globals);
void AddFeatures(Command& app, Globals& globals);
void AddDoctor(Command& app, Globals& globals);
void AddHelp(Command& app, Globals& globals);
void AddCompletion(Command& app, Globals& globals);
// Answers the script of a shell, which asks what the last of the words after "completion words" may
// become; any words are allowed, so the parser does not see them. Returns whether they are that.
bool PrintCompletions(const Command& app, absl::Span<const std::string> arguments);

// Subcommands of `hone records`: export and import; backup and compact.
void AddRecordFiles(Command& records, Globals& globals);
void AddRecordStore(Command& records, Globals& globals);

// What the words of a command may name.
enum class Names { kOperator, kOperatorOrNetwork };

// The words "OP key=value… | FILE.hone" of a command, and FILE.onnx if they may name a network.
void AddWorkloadWords(Command& command, std::vector<std::string>& words, bool required,
                      Names names = Names::kOperator);

// Completes a command whose own options have been added: adds the common options, the end of its
// help, and its action.
void Complete(Command& command, Globals& globals, const std::string& footer,
              std::function<absl::Status()> action);
// The same for a command that concerns no target. It rejects --target.
void CompleteWithoutTarget(Command& command, Globals& globals, const std::string& footer,
                           std::function<absl::Status()> action);

// Explains why the parser refused a command line: names an unknown command or option and the
// nearest known one, or returns `parser_says`. `arguments` do not include the program's name.
std::string ExplainCommandLine(const Command& app, const std::vector<std::string>& arguments,
                               absl::string_view parser_says);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_COMMAND_H_
