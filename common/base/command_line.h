#ifndef HONE_COMMON_BASE_COMMAND_LINE_H_
#define HONE_COMMON_BASE_COMMAND_LINE_H_

// The command lines of the programs. CLI11 parses them. Only command_line.cc includes it, because
// its headers take several seconds to compile.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hone {

// A property of an option besides its name, value and help.
using OptionRule = std::function<void(CLI::Option&)>;

OptionRule Required();
// The help shows the current value of the variable as the default.
OptionRule ShowDefault();
// The help shows `text` as the default.
OptionRule ShowDefault(const std::string& text);
// The help does not list the option.
OptionRule Hidden();
// The help lists the option under this title instead of "Options".
OptionRule Group(const std::string& title);
// The option named `other` may not be given as well. REQUIRES: it has been added.
OptionRule Excludes(const std::string& other);

// For an option that fills a list: each use of it takes one word. Without this rule it takes every
// word up to the next option.
OptionRule OneWordPerUse();

// Checks of values. Both ends of a range are allowed.
OptionRule Range(int64_t low, int64_t high);
OptionRule Range(int low, int high);
OptionRule Range(double low, double high);
OptionRule Positive();
OptionRule OneOf(const std::vector<std::string>& words);
OptionRule ExistingFile();
OptionRule ExistingFolder();
OptionRule ExistingPath();
// Rejects an empty value. Usually a script did not set a variable, and running as if the option
// were absent would use another server or another strategy.
OptionRule NotEmpty();
// A name that can be part of a file name: letters, digits, '-', '_' and '.'; it does not begin with
// '.' or '-'.
OptionRule PlainName();
// An unsigned integer of 64 bits.
OptionRule Seed();

inline constexpr int kUsageExitCode = 2;

// A program's command line, or one of its commands ("tune" in `hone tune`). Used by one thread.
class Command {
 public:
  // The command line of a program. An empty `name` stands for the name in argv.
  explicit Command(const std::string& description, const std::string& name = "");
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Adds a command below this one, which owns it.
  Command& AddCommand(const std::string& name, const std::string& description);
  // At least `least` commands must be given, and at most `most`.
  void RequireCommand(int least, int most);

  // Adds an option ("--trials", "-o,--output") or a positional argument ("file"). `value` must
  // outlive Parse and keeps its value if the option is absent. T is std::string, a vector of it,
  // int, int64_t, uint64_t or double.
  template <typename T>
  void Add(const std::string& name, T& value, const std::string& help,
           std::initializer_list<OptionRule> rules = {});
  void AddFlag(const std::string& name, bool& value, const std::string& help,
               std::initializer_list<OptionRule> rules = {});
  void AddVersion(const std::string& text);  // -V, --version

  // Keys of a configuration file that hold a secret, or the path of a file with the secret, and
  // where to store their values. They need not be options, and win over an option of that name. A
  // file that contains a secret must not be readable by every user.
  using FileOnly = std::map<std::string, std::string*>;
  // Adds --config, which reads a file (see config_file.h). Every other key is the name of an option
  // without its dashes. Options on the command line override the file. `never` lists options that a
  // file may not set.
  void AddConfigFile(FileOnly file_only = {}, std::set<std::string> never = {});

  // Sets the text at the end of the help.
  void Footer(const std::string& text);
  // Returns the help text, in lines that fit the terminal of standard output or `columns`. `name`
  // is the full name of the command for the usage line: "hone tune".
  std::string Help(const std::string& name) const;
  std::string Help(const std::string& name, int columns) const;
  // Sets what Run does if this is the command that was given.
  void OnRun(std::function<absl::Status()> run) { run_ = std::move(run); }

  // Reads the command line. Cancelled: it asked for help or for the version, which has been
  // printed. InvalidArgument: the parser's message.
  absl::Status Parse(int argc, char** argv);
  // As Parse, but prints the error after the program's name. Returns the exit code if the program
  // must end now: 0 after help and version, otherwise kUsageExitCode.
  std::optional<int> ParseOrExit(int argc, char** argv);
  // Runs the innermost command that was given. REQUIRES: Parse succeeded, and the command has an
  // action.
  absl::Status Run() const;
  // Whether the command line names this command. REQUIRES: Parse succeeded.
  bool Given() const;

  // For messages: the commands and options of this command. Find returns null for an unknown name.
  std::string Description() const;
  std::vector<std::string> CommandNames() const;
  const Command* Find(const std::string& name) const;
  std::vector<std::string> OptionNames() const;  // the long ones, with their dashes
  // Whether the option takes a value; nullopt if there is no such option.
  std::optional<bool> TakesValue(const std::string& option) const;

 private:
  explicit Command(CLI::App* app);

  std::unique_ptr<CLI::App> program_;  // null for a command below another
  CLI::App* const app_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::function<absl::Status()> run_;
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_COMMAND_LINE_H_
