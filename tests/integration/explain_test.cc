// `hone explain` and `hone diff`, with the real programs.

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A space of 18 schedules, which the search of the test exhausts.
constexpr char kSpace[] =
    "workload matmul\n"
    "input A: f32[36, 24]\n"
    "input B: f32[24, 40]\n"
    "output C[i: 36, j: 40] = sum(k: 24) A[i, k] * B[k, j]\n"
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2)%s\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "l5, l6 = split(l1, 5, 8)\n"
    "reorder(l3, l5, l2, l4, l6)\n"
    "x2 = sample_categorical(candidates=[0, 4])%s\n"
    "annotate(l2, \"prefetch\", x2)\n"
    "parallel(l3)\n"
    "vectorize(l6)\n";

class ExplainTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& tile, const std::string& prefetch) {
    std::string text(kSpace);
    text.replace(text.find("%s"), 2, tile);
    text.replace(text.find("%s"), 2, prefetch);
    std::ofstream(files_ / name) << text;
    return files_ / name;
  }
  nlohmann::json Json(Words words) {
    words.push_back("--json");
    const Result result = home_.Hone(words);
    EXPECT_EQ(result.code, 0) << result.errors;
    nlohmann::json json = OneLineOfJson(result.output);
    EXPECT_TRUE(json.is_object()) << result.output;
    return json;
  }

  HoneHome home_;
  TemporaryFolder files_;
};

const Words kMatmul = {"matmul", "m=36", "n=40", "k=24"};

TEST_F(ExplainTest, ATunedOperatorIsExplainedAndComparedWithWhatLost) {
  const std::string space = File("open.trace", "", "");
  const Result tuned =
      home_.Hone({"tune", "--space", "trace:" + space, "--trials", "36", "--json"});
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const nlohmann::json best = Json(With({"best"}, kMatmul))["best"];

  const nlohmann::json explained = Json(With({"explain"}, kMatmul));
  EXPECT_EQ(explained["record"], best["record"]);
  EXPECT_EQ(explained["latency_ns"], best["latency_ns"]);
  EXPECT_EQ(explained["outcome"], "ok");
  EXPECT_EQ(explained["roofline"], Json(With({"compare"}, kMatmul))["roofline"]);
  const nlohmann::json& estimate = explained["estimate"];
  EXPECT_GT(estimate["cycles"].get<double>(), 0);
  EXPECT_GT(estimate["terms"].size(), 3u);
  EXPECT_EQ(explained["limit"], estimate["terms"][0]["name"]);
  EXPECT_EQ(estimate["statements"].back()["name"], "C");
  const nlohmann::json& tried = explained["tried"];
  // If the untiled schedule is the best, its space has no other schedule.
  if (explained["trace"].get<std::string>().find("sample") != std::string::npos) {
    EXPECT_GT(tried["same_space_count"].get<int>(), 3);
    ASSERT_FALSE(tried["near"].empty()) << explained;
    const nlohmann::json& near = tried["near"][0];
    EXPECT_GT(near["ratio"].get<double>(), 0);
    ASSERT_FALSE(near["changes"].empty());
    EXPECT_NE(near["changes"][0]["before"], near["changes"][0]["after"]);
    EXPECT_THAT(near["changes"][0]["decision"].get<std::string>(),
                ContainsRegex("split\\(i, |annotate\\(k, "));

    const std::string a = absl::StrCat(best["record"].get<int64_t>()),
                      b = absl::StrCat(near["record"].get<int64_t>());
    const nlohmann::json difference = Json({"diff", a, b});
    EXPECT_EQ(difference["changes"], near["changes"]);
    EXPECT_EQ(difference["a"]["latency_ns"], best["latency_ns"]);
    EXPECT_EQ(difference["b"]["record"], near["record"]);
    EXPECT_EQ(difference["primitives"]["only_a"].size(), 0u) << difference;

    const Result text = home_.Hone({"diff", a, b});
    EXPECT_EQ(text.code, 0) << text.errors;
    EXPECT_THAT(text.output, HasSubstr(near["changes"][0]["decision"].get<std::string>()));
    EXPECT_THAT(text.output, ContainsRegex("measured +[0-9.]+ [num]?s"));
  }

  const Result text = home_.Hone(With({"explain"}, kMatmul));
  EXPECT_EQ(text.code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("roofline: "));
  EXPECT_THAT(text.output, HasSubstr("limited by " + explained["limit"].get<std::string>()));
  EXPECT_THAT(text.output, HasSubstr("tried nearby"));

  EXPECT_EQ(Json({"explain", "--record", absl::StrCat(best["record"].get<int64_t>())}), explained);
}

// Needs no record, and no worker.
TEST_F(ExplainTest, TracesAreExplainedForAnyTarget) {
  const std::string a = File("a.trace", " = [9, 4]", " = [0]"),
                    b = File("b.trace", " = [6, 6]", " = [0]");
  const Words target = {"--target", "x86-avx2"};
  const nlohmann::json explained = Json(With({"explain", a}, target));
  EXPECT_TRUE(explained["record"].is_null());
  EXPECT_TRUE(explained["latency_ns"].is_null());
  EXPECT_TRUE(explained["estimate"]["learned"].get<bool>());
  EXPECT_GT(explained["estimate"]["cycles"].get<double>(), 0);

  Transcript transcript("explain", {"hone"}, home_.variables());
  transcript.Replace(files_.path(), "DIR");
  transcript.Run(With({"explain", a}, target));
  transcript.Run(With({"diff", a, b}, target));
  transcript.Run(With({"diff", a, a}, target));
  // Mistakes.
  transcript.Run({"explain"});
  transcript.Run(With({"explain"}, kMatmul));
  transcript.Run({"explain", "--record", "4711"});
  transcript.Run({"diff", a, "0"});
  transcript.Run({"diff", a, "4711"});
  transcript.Run({"diff", a, File("half.trace", "", " = [0]")});
  transcript.Run({"diff", a, files_ / "missing.trace"});
}

}  // namespace
}  // namespace hone::integration
