// `hone-lab --live`: a comparison with the real service on a small operator.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kOp[] = "matmul m=48 n=64 k=32";

Result Lab(std::vector<std::string> words) {
  words.insert(words.begin(), "hone-lab");
  return RunProgram(std::move(words), {}, absl::Seconds(600));
}

TEST(LabLive, RunsStrategiesAndKeepsTheMeasurements) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {
      "--live",   "--op", kOp,       "--strategy", "portfolio", "--strategy", "random",
      "--trials", "10",   "--seeds", "1",          "--out",     folder.path()};
  const Result first = Lab(words);
  ASSERT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, AllOf(HasSubstr("| portfolio |"), HasSubstr("Confirmed latency")));
  const std::string runs = ReadFile(folder / "live-runs.csv").value_or("");
  const std::vector<std::string> lines = absl::StrSplit(runs, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u) << runs;  // a header and two runs
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], ',');
    EXPECT_EQ(cells[1], kOp);
    EXPECT_EQ(cells[3], "10") << "trials";
    EXPECT_GT(std::stod(cells[4]), 0) << "best";
    EXPECT_GE(std::stod(cells[4]), std::stod(cells[5])) << "best known";
  }
  for (const char* file : {"live-summary.md", "live-curves.csv", "live-comparison.csv",
                           "live-time.md", "live-trials.svg", "live-seconds.svg"}) {
    EXPECT_THAT(ReadFile(folder / file), IsOk()) << file;
  }
  EXPECT_FALSE(ReadFile(folder / "summary.md").ok()) << "recorded runs use other file names";

  // The second run reads the stored runs and measures nothing.
  const Result second = Lab(words);
  ASSERT_EQ(second.code, 0) << second.errors;
  EXPECT_EQ(second.output, first.output);
  EXPECT_EQ(ReadFile(folder / "live-runs.csv").value_or(""), runs);
}

TEST(LabLive, RejectsInvalidOptions) {
  const TemporaryFolder folder;
  EXPECT_THAT(Lab({"--live", "--op", kOp}).errors, HasSubstr("--out"));
  EXPECT_THAT(Lab({"--op", kOp}).errors, HasSubstr("--live"));
  const Result unknown =
      Lab({"--live", "--op", "matmull m=1", "--out", folder.path(), "--trials", "1"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("matmull"));
  EXPECT_THAT(
      Lab({"--live", "--preset", "zheng-transfer", "--set", "conv2d_c7", "--out", folder.path()})
          .errors,
      HasSubstr("recorded sets"));
  EXPECT_THAT(Lab({"--preset", "zheng-gpu", "--recorded"}).errors, HasSubstr("needs --live"));
}

// The errors are those of `hone tune`, which gets the options.
TEST(LabLive, TargetsAndSpacesAreThoseOfJobs) {
  const TemporaryFolder folder;
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--live", "--op", "softmax m=8 n=8", "--out", folder.path(),
                               "--trials", "1", "--seeds", "1"});
    return Lab(std::move(words)).errors;
  };
  EXPECT_THAT(run({"--space", "templates"}), HasSubstr("there is no template for softmax"));
  EXPECT_THAT(run({"--target", "opencl:99"}), HasSubstr("opencl:99"));
}

}  // namespace
}  // namespace hone::integration
