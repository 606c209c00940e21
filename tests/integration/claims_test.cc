// All presets of the claims of the literature, as a user tries them: each leaves lines of every way
// to search, which a repeated command keeps, and which are no verdicts.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/temporary_folder.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(ClaimsTest, AllPresetsRunSmall) {
  const TemporaryFolder folder;
  const std::string samples = "tests/bench/sample/x86_64-";
  const std::vector<std::string> command = {"hone-lab",
                                            "claims",
                                            "--small",
                                            "--seeds",
                                            "1",
                                            "--sample",
                                            samples + "znver3-avx2-2c.h5",
                                            "--other",
                                            samples + "icelake-server-avx512-2c.h5",
                                            "--out",
                                            folder / "runs"};
  const Result listed = RunProgram({"hone-lab", "claims", "--list"});
  ASSERT_EQ(listed.code, 0) << listed.errors;
  const Result run = RunProgram(command, {}, absl::Minutes(5));
  ASSERT_EQ(run.code, 0) << run.errors;
  EXPECT_THAT(run.errors, Not(HasSubstr("is left out")));
  std::map<std::string, std::string> lines;
  for (const absl::string_view preset : absl::StrSplit(listed.output, '\n', absl::SkipEmpty())) {
    const std::string name(preset.substr(0, preset.find(' ')));
    EXPECT_THAT(std::string(preset), HasSubstr(" trials  "));
    auto text = ReadFile(absl::StrCat(folder / "runs", "/", name, ".jsonl"));
    ASSERT_TRUE(text.ok()) << text.status();
    std::set<std::string> variants;
    for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
      const auto json = nlohmann::json::parse(line);
      EXPECT_TRUE(json["small"]) << line;
      variants.insert(json["variant"]);
    }
    EXPECT_GE(variants.size(), 2u) << name;
    lines[name] = *std::move(text);
  }
  EXPECT_THAT(lines, Not(IsEmpty()));

  const Result again = RunProgram(command, {}, absl::Minutes(2));
  EXPECT_EQ(again.code, 0) << again.errors;
  for (const auto& [name, text] : lines) {
    const auto now = ReadFile(absl::StrCat(folder / "runs", "/", name, ".jsonl"));
    ASSERT_TRUE(now.ok());
    EXPECT_EQ(*now, text) << name << " has run again";
  }
  const Result verdicts = RunProgram({"hone-lab", "verdicts", folder / "runs"});
  EXPECT_EQ(verdicts.code, 0) << verdicts.errors;
  EXPECT_THAT(verdicts.errors, HasSubstr("the runs of --small say nothing about a claim"));
  EXPECT_THAT(verdicts.output, Not(HasSubstr(" × 1 |")));
  for (const auto& [name, text] : lines) EXPECT_THAT(verdicts.output, HasSubstr("## " + name));
}

}  // namespace
}  // namespace hone::integration
