#include "common/base/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/config_file.h"
#include "common/base/file.h"
#include "common/base/terminal.h"

namespace hone {
namespace {

CLI::ConfigError Error(const std::string& message) {
  return CLI::ConfigError(message, CLI::ExitCodes::ConfigError);
}

// Reads the configuration file of --config.
class ConfigReader final : public CLI::Config {
 public:
  ConfigReader(const CLI::App* app, Command::FileOnly file_only, std::set<std::string> never)
      : app_(app), file_only_(std::move(file_only)), never_(std::move(never)) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::string text{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
    const std::string path = app_->get_config_ptr()->as<std::string>();
    const auto entries = ParseConfig(text);
    if (!entries.ok()) throw Error(absl::StrCat(path, ": ", entries.status().message()));
    std::vector<CLI::ConfigItem> items;
    for (const ConfigEntry& entry : *entries) {
      const std::string where = absl::StrCat(path, ": line ", entry.line, ": ");
      if (auto target = file_only_.find(entry.key); target != file_only_.end()) {
        if (entry.values.size() != 1) throw Error(absl::StrCat(where, entry.key, ": not a list"));
        if (access(entry.values[0].c_str(), F_OK) != 0 && OthersHaveAccess(path)) {
          throw Error(absl::StrCat(where, entry.key,
                                   " is a secret, and every user of this machine "
                                   "may read the file; as its owner: chmod 600 ",
                                   path));
        }
        *target->second = entry.values[0];
        continue;
      }
      const CLI::Option* option = app_->get_option_no_throw("--" + entry.key);
      if (option == nullptr || never_.count(entry.key) != 0) {
        throw Error(absl::StrCat(where, "there is no key '", entry.key,
                                 "'; --help and deploy/README.md list them"));
      }
      if (entry.values.empty()) continue;
      if (entry.values.size() > 1 && option->get_expected_max() <= 1 &&
          option->get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
        throw Error(absl::StrCat(where, entry.key, ": not a list"));
      }
      // CLI11 checks the values of other options, without the line.
      if (option->get_expected_max() == 0 && entry.values[0] != "true" &&
          entry.values[0] != "false") {
        throw Error(absl::StrCat(where, entry.key, ": true or false"));
      }
      CLI::ConfigItem& item = items.emplace_back();
      item.name = entry.key;
      item.inputs = entry.values;
    }
    return items;
  }

 private:
  const CLI::App* const app_;
  const Command::FileOnly file_only_;
  const std::set<std::string> never_;
};

OptionRule Checked(const CLI::Validator& validator) {
  return [validator](CLI::Option& option) { option.check(validator); };
}

// `problem` returns what is wrong with a value, or "".
OptionRule Checked(std::function<std::string(const std::string&)> problem) {
  return Checked(CLI::Validator([problem](std::string& value) { return problem(value); }, ""));
}

// A check of CLI11 whose error says what is expected, e.g. "a number from 0 to 1". Keeps the
// description of the values in the help.
OptionRule Checked(const CLI::Validator& validator, std::string expected) {
  const auto problem = [validator, expected = std::move(expected)](std::string& value) {
    const bool wrong = !validator(value).empty();
    return wrong ? absl::StrCat("'", value, "' is not ", expected) : "";
  };
  return Checked(CLI::Validator(problem, validator.get_description()));
}

// Words the parser's error as a message for users of `hone`.
std::string Explain(const CLI::App& app, const CLI::Error& error) {
  const auto is = [&](CLI::ExitCodes code) {
    return error.get_exit_code() == static_cast<int>(code);
  };
  if (is(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    if (!unknown.empty()) {
      return absl::StrCat("unknown ", absl::StartsWith(unknown[0], "-") ? "option " : "argument ",
                          unknown[0]);
    }
  }
  if (is(CLI::ExitCodes::FileError) && app.get_config_ptr() != nullptr) {
    const absl::Status read = ReadFile(app.get_config_ptr()->as<std::string>()).status();
    if (!read.ok()) return std::string(read.message());
  }
  return error.what();
}

// The help in lines that fit the terminal.
class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(int columns) : columns_(columns) {}

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_display_name(true), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Fitted(CLI::Formatter::make_description(app));
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return Fitted(CLI::Formatter::make_usage(app, std::move(name)));
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    return CLI::Formatter::make_group(Wrapped(group, columns_), is_positional, std::move(options));
  }
  std::string make_footer(const CLI::App* app) const override {
    return Fitted(CLI::Formatter::make_footer(app));
  }

 private:
  // Texts stand beside the names unless the terminal is too narrow.
  static constexpr int kNameColumns = 30;
  static constexpr int kLeastTextColumns = 30;
  static constexpr int kTextIndent = 6;  // below a name

  std::string Entry(const std::string& name, const std::string& text) const {
    const std::string first = "  " + name;
    const bool is_narrow = columns_ < kNameColumns + kLeastTextColumns;
    if (text.empty()) return Wrapped(first, columns_, "    ") + "\n";
    const int indent = is_narrow ? kTextIndent : kNameColumns;
    const std::string blanks(static_cast<size_t>(indent), ' ');
    const bool is_beside = !is_narrow && ColumnsOf(first) < kNameColumns;
    return absl::StrCat(is_beside ? absl::StrCat(first, blanks.substr(first.size()))
                                  : absl::StrCat(Wrapped(first, columns_, "    "), "\n", blanks),
                        absl::StrReplaceAll(Wrapped(text, std::max(1, columns_ - indent)),
                                            {{"\n", absl::StrCat("\n", blanks)}}),
                        "\n");
  }

  // Wraps each line. Added lines are indented a little more than an indented line, which is an
  // example or an entry of a list.
  std::string Fitted(const std::string& text) const {
    std::vector<std::string> lines = absl::StrSplit(text, '\n');
    for (std::string& line : lines) {
      const size_t indent = std::min(line.find_first_not_of(' '), line.size());
      line = Wrapped(line, columns_, indent == 0 ? "" : std::string(indent + 2, ' '));
    }
    return absl::StrJoin(lines, "\n");
  }

  const int columns_;
};

void Apply(std::initializer_list<OptionRule> rules, CLI::Option& option) {
  for (const OptionRule& rule : rules) rule(option);
}

}  // namespace

OptionRule Required() {
  return [](CLI::Option& option) { option.required(); };
}
OptionRule ShowDefault() {
  return [](CLI::Option& option) { option.capture_default_str(); };
}
OptionRule ShowDefault(const std::string& text) {
  return [text](CLI::Option& option) { option.default_str(text); };
}
OptionRule Hidden() {
  return [](CLI::Option& option) { option.group(""); };
}
OptionRule Group(const std::string& title) {
  return [title](CLI::Option& option) { option.group(title); };
}
OptionRule Excludes(const std::string& other) {
  return [other](CLI::Option& option) { option.excludes(other); };
}
OptionRule OneWordPerUse() {
  return [](CLI::Option& option) { option.expected(1)->take_all()->allow_extra_args(false); };
}

OptionRule Range(int64_t low, int64_t high) {
  return Checked(CLI::Range(low, high), absl::StrCat("a whole number from ", low, " to ", high));
}
OptionRule Range(int low, int high) { return Range(int64_t{low}, int64_t{high}); }
OptionRule Range(double low, double high) {
  // CLI::Range accepts NaN.
  const auto contains = [low, high](std::string& value) -> std::string {
    double number = 0;
    return absl::SimpleAtod(value, &number) && low <= number && number <= high ? "" : "outside";
  };
  return Checked(CLI::Validator(contains, CLI::Range(low, high).get_description()),
                 absl::StrCat("a number from ", low, " to ", high));
}
OptionRule Positive() { return Checked(CLI::PositiveNumber, "a number above 0"); }
OptionRule OneOf(const std::vector<std::string>& words) {
  return Checked(CLI::IsMember(words), absl::StrCat("one of ", absl::StrJoin(words, ", ")));
}
OptionRule ExistingFile() { return Checked(CLI::ExistingFile); }
OptionRule ExistingFolder() { return Checked(CLI::ExistingDirectory); }
OptionRule ExistingPath() { return Checked(CLI::ExistingPath); }

OptionRule NotEmpty() {
  return Checked([](const std::string& value) {
    return value.empty() ? "the value is empty; leave the option out, or give it one" : "";
  });
}

OptionRule PlainName() {
  return Checked([](const std::string& value) -> std::string {
    const auto plain = [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_.", c);
    };
    const bool begins = !value.empty() && value[0] != '.' && value[0] != '-';
    if (begins && absl::c_all_of(value, plain)) return "";
    return absl::StrCat(
        "'", value,
        "' is not a name: it may have letters, digits, '-', '_' and '.', and begins "
        "with a letter, a digit or '_'");
  });
}

OptionRule Seed() {
  return Checked([](const std::string& value) {
    uint64_t seed = 0;
    if (absl::SimpleAtoi(value, &seed)) return std::string();
    return absl::StrCat(value, " is not a whole number from 0 to ",
                        std::numeric_limits<uint64_t>::max());
  });
}

Command::Command(const std::string& description, const std::string& name)
    : program_(std::make_unique<CLI::App>(description, name)), app_(program_.get()) {
  app_->formatter(std::make_shared<HelpFormatter>(TerminalColumns(STDOUT_FILENO)));
  app_->failure_message([](const CLI::App* app, const CLI::Error& error) {
    const std::string path = app->get_name();
    const std::string program = path.substr(path.rfind('/') + 1);
    return absl::StrCat(program, ": ", Explain(*app, error), " (see ", program, " --help)\n");
  });
}

Command::Command(CLI::App* app) : app_(app) {}

Command::~Command() = default;

Command& Command::AddCommand(const std::string& name, const std::string& description) {
  commands_.emplace_back(new Command(app_->add_subcommand(name, description)));
  return *commands_.back();
}

void Command::RequireCommand(int least, int most) { app_->require_subcommand(least, most); }

template <typename T>
void Command::Add(const std::string& name, T& value, const std::string& help,
                  std::initializer_list<OptionRule> rules) {
  Apply(rules, *app_->add_option(name, value, help));
}
template void Command::Add(const std::string&, std::string&, const std::string&,
                           std::initializer_list<OptionRule>);
template void Command::Add(const std::string&, std::vector<std::string>&, const std::string&,
                           std::initializer_list<OptionRule>);
template void Command::Add(const std::string&, int&, const std::string&,
                           std::initializer_list<OptionRule>);
template void Command::Add(const std::string&, int64_t&, const std::string&,
                           std::initializer_list<OptionRule>);
template void Command::Add(const std::string&, uint64_t&, const std::string&,
                           std::initializer_list<OptionRule>);
template void Command::Add(const std::string&, double&, const std::string&,
                           std::initializer_list<OptionRule>);

void Command::AddFlag(const std::string& name, bool& value, const std::string& help,
                      std::initializer_list<OptionRule> rules) {
  Apply(rules, *app_->add_flag(name, value, help));
}

void Command::AddVersion(const std::string& text) { app_->set_version_flag("-V,--version", text); }

void Command::AddConfigFile(FileOnly file_only, std::set<std::string> never) {
  never.insert({"config", "help", "version"});
  app_->set_config("--config", "", "Configuration file (deploy/README.md has every key)");
  app_->config_formatter(
      std::make_shared<ConfigReader>(app_, std::move(file_only), std::move(never)));
}

void Command::Footer(const std::string& text) { app_->footer(text); }

std::string Command::Help(const std::string& name) const {
  return Help(name, TerminalColumns(STDOUT_FILENO));
}

std::string Command::Help(const std::string& name, int columns) const {
  return HelpFormatter(columns).make_help(app_, name, CLI::AppFormatMode::Normal);
}

absl::Status Command::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& success) {
    app_->exit(success);
    return absl::CancelledError("");
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return absl::OkStatus();
}

std::optional<int> Command::ParseOrExit(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // Prefer to report an option that does not exist: it is the likelier mistake.
    const std::vector<std::string> unknown = app_->remaining(/*recurse=*/true);
    unknown.empty() ? app_->exit(error) : app_->exit(CLI::ExtrasError(app_->get_name(), unknown));
    return kUsageExitCode;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : kUsageExitCode;
  }
  return std::nullopt;
}

absl::Status Command::Run() const {
  const std::vector<CLI::App*> given = app_->get_subcommands();
  return given.empty() ? run_() : Find(given[0]->get_name())->Run();
}

bool Command::Given() const { return app_->parsed(); }

std::string Command::Description() const { return app_->get_description(); }

std::vector<std::string> Command::CommandNames() const {
  std::vector<std::string> names;
  for (const auto& command : commands_) names.push_back(command->app_->get_name());
  return names;
}

const Command* Command::Find(const std::string& name) const {
  for (const auto& command : commands_) {
    if (command->app_->get_name() == name) return command.get();
  }
  return nullptr;
}

std::vector<std::string> Command::OptionNames() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::optional<bool> Command::TakesValue(const std::string& name) const {
  const CLI::Option* const option = std::as_const(*app_).get_option_no_throw(name);
  if (option == nullptr) return std::nullopt;
  return option->get_items_expected() > 0;
}

}  // namespace hone
