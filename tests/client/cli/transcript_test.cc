// Sessions at a terminal. A file in testdata/ holds commands for bash, with what they print below:
// "$ " or "> " begins a line of a command, "| " one of its standard output, "! " one of its
// standard error, and "= " its exit code, if that is not 0. The commands of a file run in a folder
// of their own. HONE_UPDATE_GOLDEN=1 writes what they print; check the difference before you commit
// it.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

constexpr char kFolder[] = "tests/client/cli/testdata";

bool IsOutput(absl::string_view line) {
  return absl::StartsWith(line, "|") || absl::StartsWith(line, "!") || absl::StartsWith(line, "=");
}

class TranscriptTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Runs a command and returns what it prints, as lines of a transcript.
  std::string Run(absl::string_view command) const {
    const std::string repository = std::filesystem::current_path();
    const integration::Result result = integration::RunProgram(
        {"/bin/bash", "-c", absl::StrCat("cd ", folder_.path(), "\n", command)},
        {{"XDG_DATA_HOME", folder_ / "data"},
         {"PATH", absl::StrCat(integration::BinDir(), ":", std::getenv("PATH"))},
         {"REPO", repository}});
    std::string transcript;
    const auto add = [&](absl::string_view mark, const std::string& text) {
      if (text.empty()) return;
      const std::string same_everywhere =
          absl::StrReplaceAll(text, {{folder_.path(), "DIR"}, {repository, "REPO"}});
      for (absl::string_view line :
           absl::StrSplit(absl::StripSuffix(same_everywhere, "\n"), '\n')) {
        absl::StrAppend(&transcript,
                        absl::StripTrailingAsciiWhitespace(absl::StrCat(mark, " ", line)), "\n");
      }
    };
    add("|", result.output);
    add("!", result.errors);
    if (result.code != 0) add("=", absl::StrCat(result.code));
    return transcript;
  }

  const TemporaryFolder folder_;
};

TEST_P(TranscriptTest, CommandsPrintTheSame) {
  const std::string path = absl::StrCat(kFolder, "/", GetParam(), ".txt");
  const std::string text = ReadGolden(path);
  const std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  std::string transcript;
  for (size_t i = 0; i < lines.size();) {
    if (!IsOutput(lines[i])) absl::StrAppend(&transcript, lines[i], "\n");
    absl::string_view line = lines[i++];
    if (!absl::ConsumePrefix(&line, "$ ")) continue;
    std::string command(line);
    for (; i < lines.size() && absl::StartsWith(lines[i], "> "); ++i) {
      absl::StrAppend(&transcript, lines[i], "\n");
      absl::StrAppend(&command, "\n", lines[i].substr(2));
    }
    absl::StrAppend(&transcript, Run(command));
  }
  ExpectGolden(path, transcript);
}

INSTANTIATE_TEST_SUITE_P(Files, TranscriptTest, testing::ValuesIn(GoldenNames(kFolder)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::cli
