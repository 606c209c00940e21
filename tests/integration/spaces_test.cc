// Design spaces, features and drafts with the real programs: `hone tune --space` with the strategy,
// model and features of AutoTVM, `hone features` and `hone show --draft`.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/schedule/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kTrace[] =
    "workload matmul\n"
    "input A: f32[36, 24]\n"
    "input B: f32[24, 40]\n"
    "output C[i: 36, j: 40] = sum(k: 24) A[i, k] * B[k, j]\n"
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2) = [9, 4]\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "parallel(l3)\n";

class Spaces : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& content) {
    std::ofstream(files_ / name) << content;
    return files_ / name;
  }

  HoneHome home_;
  TemporaryFolder files_;
};

TEST_F(Spaces, AutoTvmTemplatesWorkEndToEnd) {
  const Result tuned = home_.Hone({"tune", "dense", "m=16", "n=64", "k=32", "--space", "templates",
                                   "--strategy", "annealing", "--cost-model", "xgboost-rank",
                                   "--feature-set", "knob", "--trials", "40", "--json"});
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const nlohmann::json object = OneLineOfJson(tuned.output);
  ASSERT_TRUE(object.is_object()) << tuned.output;
  EXPECT_EQ(object["trials"], 40);
  EXPECT_EQ(object["outcomes"]["ok"], 40) << object["outcomes"];
  EXPECT_LE(object["best"]["latency_ns"].get<double>(),
            object["default"]["latency_ns"].get<double>());
  EXPECT_TRUE(std::filesystem::exists(home_.data_dir() + "/run/worker.log"));
}

// Names that the server alone can check are refused before a worker is started, which takes
// seconds.
TEST_F(Spaces, UnknownNamesAreRejectedBeforeAWorkerStarts) {
  Transcript transcript("spaces_names", {"hone", "tune"}, home_.variables());
  for (const Words& words : {Words{"--strategy", "hope"},
                             {"--cost-model", "oracle"},
                             {"--feature-set", "smell"},
                             {"--space", "sketches"},
                             {"--cost-model", "formula", "--feature-set", "knob"}}) {
    transcript.Run(With({"matmul", "m=8", "n=8", "k=8"}, words));
  }
  transcript.Run({"softmax", "m=8", "n=8", "--space", "templates"});
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir() + "/run/worker.log"));
}

TEST_F(Spaces, FeaturesHaveNames) {
  const std::string file = File("mine.trace", kTrace);
  const Result read = home_.Hone({"features", file});
  ASSERT_EQ(read.code, 0) << read.errors;
  EXPECT_THAT(read.output, ContainsRegex("statement for .*164 columns, 1 row.*float.mad.*"
                                         "--all shows them"));

  const Result json =
      home_.Hone({"features", file, "--set", "knob", "--target", "x86-avx2", "--json"});
  ASSERT_EQ(json.code, 0) << json.errors;
  const nlohmann::json object = OneLineOfJson(json.output);
  ASSERT_TRUE(object.is_object()) << json.output;
  EXPECT_EQ(object["feature_set"], "knob");
  EXPECT_THAT(object["target"].get<std::string>(), HasSubstr("avx2"));
  ASSERT_EQ(object["rows"].size(), 1u);
  EXPECT_EQ(object["rows"][0].size(), object["columns"].size());
  EXPECT_EQ(object["columns"][2], "decision0");
  EXPECT_EQ(object["rows"][0][2], 9);
  EXPECT_EQ(object["rows"][0][3], 4);

  Transcript transcript("spaces_features", {"hone", "features", file}, home_.variables());
  transcript.Run({"--set", "smell"});
  transcript.Run({"--target", "x86_64-nothing-2c-01234567"});
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir() + "/run/worker.log"));
}

// The draft's choice is what a search measures first.
TEST_F(Spaces, TheDraftIsTheFirstTrial) {
  const std::vector<std::string> matmul = {"matmul", "m=48", "n=64", "k=32"};
  const Result shown = home_.Hone(With({"show", "--draft", "--trace", "--json"}, matmul));
  ASSERT_EQ(shown.code, 0) << shown.errors;
  const std::string drafted = OneLineOfJson(shown.output)["trace"];
  EXPECT_FALSE(std::filesystem::exists(home_.data_dir() + "/run/worker.log"));
  EXPECT_EQ(home_.Hone(With({"best"}, matmul)).code, 3) << "nothing was stored";

  const Result tuned = home_.Hone(With({"tune", "--trials", "1", "--json"}, matmul));
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const Result records = home_.Hone(With({"records", "query", "--limit", "0", "--json"}, matmul));
  ASSERT_EQ(records.code, 0) << records.errors;
  std::string first, digest;
  const nlohmann::json listed = OneLineOfJson(records.output);
  for (const nlohmann::json& record : listed["records"]) {
    if (record["trial"] != 1) continue;
    digest = record["space_digest"];
    first = absl::StrJoin(record["decisions"].get<std::vector<int64_t>>(), ",");
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto file, schedule::ParseTraceFile(drafted));
  EXPECT_EQ(absl::StrJoin(file.parsed.decisions, ","), first);
  EXPECT_EQ(DigestOf(schedule::TraceFileText(file.workload, file.parsed.trace)).ToHex(), digest);

  const Result best = home_.Hone(With({"show", "--code", "--json"}, matmul));
  ASSERT_EQ(best.code, 0) << best.errors;
  const nlohmann::json object = OneLineOfJson(best.output);
  EXPECT_THAT(object["code"].get<std::string>(), HasSubstr("hone_main:"));
  EXPECT_THAT(object["trace"].get<std::string>(), HasSubstr("trace 1"));
}

}  // namespace
}  // namespace hone::integration
