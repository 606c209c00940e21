// deploy/README.md lists every option of hone-server, and the workflow and the page for CI use
// options that hone has.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::integration {
namespace {

// Collects the options from lines such as "  --listen TEXT ...".
std::set<std::string> OptionsOf(const std::string& help) {
  std::set<std::string> options;
  for (absl::string_view line : absl::StrSplit(help, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    const size_t at = absl::StartsWith(line, "-h,--") ? 3 : 0;
    line.remove_prefix(at);
    if (!absl::StartsWith(line, "--")) continue;
    options.insert(std::string(line.substr(2, line.find_first_of(" ,=", 2) - 2)));
  }
  return options;
}

TEST(OptionsTest, ReadmeListsEveryServerOption) {
  const Result help = RunProgram({"hone-server", "--help"});
  ASSERT_EQ(help.code, 0) << help.errors;
  const std::set<std::string> options = OptionsOf(help.output);
  EXPECT_TRUE(options.contains("upload-limit")) << help.output;
  EXPECT_GE(options.size(), 20u);
  const std::string readme = ReadFile("deploy/README.md").value();
  // Options of the command line only.
  const std::set<std::string> not_configured = {"help",         "version",      "config",
                                                "check-config", "check-health", "private"};
  for (const std::string& option : options) {
    if (not_configured.contains(option)) continue;
    EXPECT_TRUE(absl::StrContains(readme, absl::StrCat("`", option, "`"))) << option;
  }
}

// The options of each "hone COMMAND …" in a text, by command. A line may end with a backslash.
std::map<std::string, std::set<std::string>> OptionsOfCommands(const std::string& text) {
  std::map<std::string, std::set<std::string>> commands;
  const std::string joined = absl::StrReplaceAll(text, {{"\\\n", " "}});
  for (const absl::string_view line : absl::StrSplit(joined, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 2 || words[0] != "hone") continue;
    const bool has_two = words[1] == "bundle" && words.size() > 2;
    std::set<std::string>& options =
        commands[has_two ? absl::StrCat(words[1], " ", words[2]) : words[1]];
    for (const std::string& word : words) {
      if (absl::StartsWith(word, "--")) options.insert(word.substr(2));
    }
  }
  return commands;
}

TEST(OptionsTest, CiCommandsUseKnownOptions) {
  std::set<std::string> commands;
  for (const char* const path : {"deploy/ci/hone-check.yml", "docs/ci.md"}) {
    for (const auto& [command, options] : OptionsOfCommands(ReadFile(path).value())) {
      commands.insert(command);
      std::vector<std::string> help = absl::StrSplit(command, ' ');
      help.insert(help.begin(), "hone");
      help.push_back("--help");
      const Result result = RunProgram(help);
      ASSERT_EQ(result.code, 0) << command << result.errors;
      const std::set<std::string> known = OptionsOf(result.output);
      for (const std::string& option : options) {
        EXPECT_TRUE(known.contains(option)) << path << ": hone " << command << " --" << option;
      }
    }
  }
  for (const char* const command : {"check", "lock", "export", "bundle export", "bundle import"}) {
    EXPECT_TRUE(commands.contains(command)) << command;
  }
}

}  // namespace
}  // namespace hone::integration
