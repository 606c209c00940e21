#ifndef HONE_CLIENT_CLI_COMMAND_H_
#define HONE_CLIENT_CLI_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/globals.h"
#include "common/base/command_line.h"

namespace hone::cli {

// Each function adds one command: its name, options, help with examples, and action. An action
// prints its results to standard output; main prints the error that it returns. `globals` must
// outlive `app`.
void AddTune(Command& app, Globals& globals);
void AddBest(Command& app, Globals& globals);
void AddExport(Command& app, Globals& globals);
void AddCheck(Command& app, Globals& globals);
void AddCompare(Command& app, Globals& globals);
void AddRevalidate(Command& app, Globals& globals);
void AddForget(Command& app, Globals& globals);
void AddPin(Command& app, Globals& globals);
void AddRun(Command& app, Globals& globals);
void AddSchedule(Command& app, Globals& globals);
void AddShow(Command& app, Globals& globals);
void AddRecords(Command& app, Globals& globals);
void AddWorkers(Command& app, Globals& globals);
void AddWorkerConfig(Command& app, Globals& globals);
void AddJobs(Command& app, Globals& globals);
void AddModels(Command& app, Globals& globals);
void AddOperators(Command& app, Globals& globals);
void AddPrimitives(Command& app, Globals& globals);
void AddFeatures(Command& app, Globals& globals);
void AddDoctor(Command& app, Globals& globals);
void AddHelp(Command& app, Globals& globals);

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

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_COMMAND_H_
