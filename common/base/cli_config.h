#ifndef HONE_COMMON_BASE_CLI_CONFIG_H_
#define HONE_COMMON_BASE_CLI_CONFIG_H_

// Reads a configuration file (config_file.h) for the programs' --config option. Each key is the
// name of an option without its dashes. Options on the command line override the file.

#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/config_file.h"

namespace hone {

class CliConfig final : public CLI::Config {
 public:
  // Keys that hold a secret, or the path of a file with the secret, and where to store their
  // values. They need not be options. A file that contains a secret must not be readable by every
  // user.
  using FileOnly = std::map<std::string, std::string*>;

  // Adds --config to the application. `never` lists options that a file may not set.
  static void Add(CLI::App& app, FileOnly file_only = {}, std::set<std::string> never = {}) {
    never.insert({"config", "help", "version"});
    app.set_config("--config", "", "Configuration file (deploy/README.md has every key)");
    app.config_formatter(
        std::shared_ptr<CliConfig>(new CliConfig(&app, std::move(file_only), std::move(never))));
  }

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
        if (access(entry.values[0].c_str(), F_OK) != 0 && EverybodyReads(path)) {
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
      CheckValues(*option, entry, where);
      CLI::ConfigItem& item = items.emplace_back();
      item.name = entry.key;
      item.inputs = entry.values;
    }
    return items;
  }

 private:
  CliConfig(const CLI::App* app, FileOnly file_only, std::set<std::string> never)
      : app_(app), file_only_(std::move(file_only)), never_(std::move(never)) {}

  static CLI::ConfigError Error(const std::string& message) {
    return CLI::ConfigError(message, CLI::ExitCodes::ConfigError);
  }

  static bool EverybodyReads(const std::string& path) {
    struct stat info;
    return stat(path.c_str(), &info) == 0 && (info.st_mode & S_IRWXO) != 0;
  }
  // Checks a flag's value here because CLI11's own error does not name the line.
  static void CheckValues(const CLI::Option& option, const ConfigEntry& entry,
                          const std::string& where) {
    if (option.get_expected_max() == 0 && entry.values[0] != "true" && entry.values[0] != "false") {
      throw Error(absl::StrCat(where, entry.key, ": true or false"));
    }
  }

  const CLI::App* const app_;
  const FileOnly file_only_;
  const std::set<std::string> never_;
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_CLI_CONFIG_H_
