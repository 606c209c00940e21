#ifndef HONE_CLIENT_CLI_COMMAND_H_
#define HONE_CLIENT_CLI_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/cli/globals.h"

namespace hone::cli {

// What the command line chose; called once it has been read in full. Prints its results on standard
// output; an error is returned, and printed by main.
using Action = std::function<absl::Status()>;

// Each adds its command to the application: a name, options, a help text with examples, and a
// callback that sets `action`. `globals` and `action` outlive the application. One file per
// command.
void AddTune(CLI::App& app, Globals& globals, Action& action);
void AddBest(CLI::App& app, Globals& globals, Action& action);
void AddExport(CLI::App& app, Globals& globals, Action& action);
void AddCompare(CLI::App& app, Globals& globals, Action& action);
void AddRevalidate(CLI::App& app, Globals& globals, Action& action);
void AddRun(CLI::App& app, Globals& globals, Action& action);
void AddSchedule(CLI::App& app, Globals& globals, Action& action);
void AddShow(CLI::App& app, Globals& globals, Action& action);
void AddRecords(CLI::App& app, Globals& globals, Action& action);
void AddWorkers(CLI::App& app, Globals& globals, Action& action);
void AddWorkerConfig(CLI::App& app, Globals& globals, Action& action);
void AddJobs(CLI::App& app, Globals& globals, Action& action);
void AddModels(CLI::App& app, Globals& globals, Action& action);
void AddOperators(CLI::App& app, Globals& globals, Action& action);
void AddFeatures(CLI::App& app, Globals& globals, Action& action);
void AddDoctor(CLI::App& app, Globals& globals, Action& action);

// The words "OP key=value… | FILE.hone" of a command.
void AddWorkloadWords(CLI::App& command, std::vector<std::string>& words, bool required);

// Checks of options. An empty value is an error: it is a script's variable that nobody set, and to
// go on as if the option were not there would use another server, or another strategy.
CLI::Validator NotEmpty();
// A whole number of 64 bits without sign.
CLI::Validator IsSeed();

// The hint of every command that found no stored best.
std::string TuneFirstHint(const std::string& title);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_COMMAND_H_
