#include "client/cli/network/network_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

NetworkSpeed Speed() {
  return {.network = "net.onnx",
          .inputs = "x: f32[1, 3]",
          .target = "cpu",
          .threads = 2,
          .measured_unix_ms = 1'700'000'000'000,
          .latency_ns = 1234.5,
          .steps = {{"conv \"1\"", "conv2d", 1000}, {"relu", "relu", 200}}};
}

TEST(NetworkBaselineTest, TextHasEverything) {
  NetworkSpeed other = Speed();
  other.threads = 4;
  const std::string text = BaselinesToText({Speed(), other});
  HONE_ASSERT_OK_AND_ASSIGN(const auto parsed, ParseBaselines(text));
  ASSERT_EQ(parsed.size(), 2u);
  const NetworkSpeed& first = parsed.front();
  EXPECT_TRUE(MeasureTheSame(first, Speed()));
  EXPECT_FALSE(MeasureTheSame(first, parsed.back()));
  EXPECT_EQ(first.measured_unix_ms, Speed().measured_unix_ms);
  EXPECT_EQ(first.latency_ns, 1234.5);
  ASSERT_EQ(first.steps.size(), 2u);
  EXPECT_EQ(first.steps[0].name, "conv \"1\"");
  EXPECT_EQ(first.steps[1].latency_ns, 200);
  EXPECT_EQ(BaselinesToText(parsed), text);
}

TEST(NetworkBaselineTest, ADisturbanceIsKept) {
  EXPECT_THAT(BaselinesToText({Speed()}), Not(HasSubstr("disturbance")))
      << "earlier programs wrote no such member";
  NetworkSpeed disturbed = Speed();
  disturbed.disturbance = "other programs took cores";
  HONE_ASSERT_OK_AND_ASSIGN(const auto parsed,
                            ParseBaselines(BaselinesToText({disturbed, Speed()})));
  EXPECT_EQ(parsed[0].disturbance, "other programs took cores");
  EXPECT_EQ(parsed[1].disturbance, "");
  EXPECT_EQ(parsed[0].steps.size(), 2u);
}

TEST(NetworkBaselineTest, ReplacesOnlyTheBaselineOfTheSameMachine) {
  std::vector<NetworkSpeed> baselines;
  EXPECT_FALSE(AddBaseline(Speed(), baselines).has_value());
  NetworkSpeed other = Speed();
  other.target = "gpu";
  EXPECT_FALSE(AddBaseline(other, baselines).has_value());
  NetworkSpeed faster = Speed();
  faster.latency_ns = 1000;
  const std::optional<NetworkSpeed> replaced = AddBaseline(faster, baselines);
  ASSERT_TRUE(replaced.has_value());
  EXPECT_EQ(replaced->latency_ns, 1234.5);
  ASSERT_EQ(baselines.size(), 2u);
  EXPECT_EQ(baselines[0].latency_ns, 1000);
  EXPECT_EQ(baselines[1].target, "gpu");
}

TEST(NetworkBaselineTest, OtherFilesAreRefused) {
  GoldenOfTest golden;
  for (const char* const text : {"", "{", "[]", "{}", "{\"hone_baselines\": 1}",
                                 "{\"hone_baselines\": \"1\", \"baselines\": []}"}) {
    golden.Add(text, ParseBaselines(text).status().message());
  }
  golden.Add(ParseBaselines("{\"hone_baselines\": 2, \"baselines\": []}").status().message());
  golden.Add(ParseBaselines("{\"hone_baselines\": 1, \"baselines\": [{\"network\": 3}]}")
                 .status()
                 .message());
  EXPECT_THAT(ReadBaselines("/nowhere/speed.json"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hone::cli
