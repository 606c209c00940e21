// deploy/README.md lists every option of hone-server.

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
  const std::set<std::string> not_configured = {"help", "version", "config", "check-config",
                                                "private"};
  for (const std::string& option : options) {
    if (not_configured.contains(option)) continue;
    EXPECT_TRUE(absl::StrContains(readme, absl::StrCat("`", option, "`"))) << option;
  }
}

}  // namespace
}  // namespace hone::integration
