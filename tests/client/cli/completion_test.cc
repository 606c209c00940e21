// Completion: what follows the words on a command line, and the scripts in real shells.

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using integration::Result;

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

std::vector<std::string> After(std::vector<std::string> words) {
  words.insert(words.begin(), {"hone", "completion", "words"});
  const Result result = integration::RunProgram(words, {}, absl::Seconds(60));
  EXPECT_EQ(result.code, 0) << result.errors;
  return Lines(result.output);
}

TEST(CompletionTest, CommandsOptionsOperatorsAndKeys) {
  EXPECT_THAT(After({""}), AllOf(Contains("tune"), Contains("records"), Contains("completion")));
  EXPECT_THAT(After({"rec"}), ElementsAre("records"));
  EXPECT_THAT(After({"records", "ex"}), ElementsAre("export"));
  EXPECT_THAT(After({"tune", "--tri"}), ElementsAre("--trials"));
  EXPECT_THAT(After({"tune", "batch_mat"}), ElementsAre("batch_matmul"));
  EXPECT_THAT(After({"tune", "matmul", "m=8", ""}),
              AllOf(Contains("n="), Contains("k="), Not(Contains("m="))));
  EXPECT_THAT(After({"--server", "x:1", "tune", "matmul", "--trials", "9", "n"}),
              ElementsAre("n="));
}

TEST(CompletionTest, ValuesAndFilesAreLeftToTheShell) {
  EXPECT_THAT(After({"tune", "--trials", ""}), IsEmpty());
  EXPECT_THAT(After({"tune", "--trials", "1"}), IsEmpty());
  EXPECT_THAT(After({"tune", "model.on"}), IsEmpty());
  EXPECT_THAT(After({"tune", "no_such_operator", ""}), IsEmpty());
  EXPECT_THAT(After({"no", "such", "command"}), IsEmpty());
}

// Runs a shell that has read the script, and asks it to complete a line.
std::vector<std::string> InShell(const char* shell, const std::string& ask) {
  const std::string path = std::filesystem::exists(absl::StrCat("/bin/", shell))
                               ? absl::StrCat("/bin/", shell)
                               : absl::StrCat("/usr/bin/", shell);
  if (!std::filesystem::exists(path)) return {"no shell"};
  const Result result = integration::RunProgram(
      {path, "-c", ask}, {{"PATH", absl::StrCat(integration::BinDir(), ":/usr/bin:/bin")}},
      absl::Seconds(60));
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  return Lines(result.output);
}

TEST(CompletionTest, TheScriptOfBashCompletes) {
  const auto complete = [](const std::string& line) {
    return InShell("bash", absl::StrCat("source <(hone completion bash); COMP_LINE='", line,
                                        "'; COMP_POINT=${#COMP_LINE}; compopt() { :; }; _hone; "
                                        "printf '%s\\n' \"${COMPREPLY[@]}\""));
  };
  EXPECT_THAT(complete("hone records ex"), ElementsAre("export"));
  EXPECT_THAT(complete("hone tune matmul m=8 k=8 "), AllOf(Contains("n="), Not(Contains("k="))));
  EXPECT_THAT(complete("hone tune --trials "), IsEmpty());
}

TEST(CompletionTest, TheScriptOfFishCompletes) {
  const auto complete = [](const std::string& line) {
    return InShell(
        "fish", absl::StrCat("hone completion fish | source; complete --do-complete '", line, "'"));
  };
  const std::vector<std::string> found = complete("hone records ex");
  if (found == std::vector<std::string>{"no shell"}) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(found, ElementsAre("export"));
  EXPECT_THAT(complete("hone tune matmul m=8 k=8 "), AllOf(Contains("n="), Not(Contains("k="))));
}

// zsh completes only in a terminal, so what it offers is printed instead.
TEST(CompletionTest, TheScriptOfZshCompletes) {
  const std::vector<std::string> found =
      InShell("zsh",
              "autoload -Uz compinit; compinit -u -D; source <(hone completion zsh); "
              "compadd() { while (( $# )) && [[ $1 != -- ]]; do shift; done; shift; (( $# )) && "
              "print -l -- \"$@\"; }; "
              "_files() { print files; }; words=(hone records ex); CURRENT=3; _hone; "
              "words=(hone tune --trials ''); CURRENT=4; _hone");
  if (found == std::vector<std::string>{"no shell"}) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(found, ElementsAre("export", "files"));
}

TEST(CompletionTest, AnotherShellIsRefused) {
  const Result result =
      integration::RunProgram({"hone", "completion", "csh"}, {}, absl::Seconds(60));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.errors, HasSubstr("bash, zsh and fish"));
}

// The pages say what --help says.
TEST(ManualPagesTest, EveryCommandHasOne) {
  const TemporaryFolder folder;
  const Result result =
      integration::RunProgram({"hone", "help", "--man", folder.path()}, {}, absl::Seconds(60));
  ASSERT_EQ(result.code, 0) << result.errors;
  for (const std::string& command : After({""}))
    EXPECT_TRUE(std::filesystem::exists(folder / absl::StrCat("hone-", command, ".1"))) << command;
  const std::string page = ReadFile(folder / "hone-records-export.1").value();
  EXPECT_THAT(page, HasSubstr(".TH HONE-RECORDS-EXPORT 1"));
  EXPECT_THAT(page, HasSubstr("hone\\-records\\-export \\- "));
  EXPECT_THAT(page, HasSubstr("\\-\\-op"));
  EXPECT_THAT(page, Not(HasSubstr("\n'")));
}

}  // namespace
}  // namespace hone::cli
