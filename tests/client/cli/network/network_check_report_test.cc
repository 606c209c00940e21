#include "client/cli/network/network_check_report.h"

#include "absl/strings/str_cat.h"
#include "client/cli/network/network_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kWhen[] = "2023-11-14";  // the times are local

// A comparison of a network of which `now` is the latency, and 1 ms the baseline.
Comparison Compared(double now, const std::string& disturbance = "") {
  const auto speed = [](double ns, std::vector<StepSpeed> steps) {
    return NetworkSpeed{.network = "net<1>.onnx",
                        .inputs = "x: f32[1, 3]",
                        .target = "cpu",
                        .threads = 2,
                        .measured_unix_ms = 1'699'960'000'000,
                        .latency_ns = ns,
                        .steps = std::move(steps)};
  };
  Comparison comparison;
  comparison.timing.speed =
      speed(now, {{"a|b", "conv2d", 0.6 * now}, {"/pool_1", "max_pool2d", 1000}});
  comparison.baseline = speed(1e6, {{"a|b", "conv2d", 6e5}});
  comparison.max_regression = 0.05;
  comparison.disturbance = disturbance;
  return comparison;
}

CheckReport ReportOf(const Comparison& comparison) {
  return {"nets/net<1>.onnx", comparison,
          ResultOf("nets/net<1>.onnx", comparison.Regression(), comparison.max_regression,
                   comparison.disturbance)};
}

// The text without the time of the baseline, which is local.
std::string WithoutTime(std::string text) {
  for (size_t at; (at = text.find(kWhen)) != std::string::npos;) text.replace(at, 19, "TIME");
  return text;
}

class CheckFilesTest : public ::testing::Test {
 protected:
  static void AddBoth(GoldenOfTest& golden, const CheckReport& report) {
    golden.Add(WithoutTime(CheckJunit(report)));
    golden.Add(WithoutTime(CheckMarkdown(report)));
  }
};

TEST_F(CheckFilesTest, ANetworkThatIsFastEnough) {
  GoldenOfTest golden;
  Comparison comparison = Compared(1.02e6);
  comparison.baseline.disturbance = "it was a busy day";
  AddBoth(golden, ReportOf(comparison));
}

TEST_F(CheckFilesTest, ASlowerNetworkFails) {
  GoldenOfTest golden;
  AddBoth(golden, ReportOf(Compared(1.2e6)));
}

TEST_F(CheckFilesTest, ADisturbedMeasurementIsSkipped) {
  const CheckReport report = ReportOf(Compared(1.2e6, "other programs took cores"));
  EXPECT_THAT(CheckJunit(report), HasSubstr("failures=\"0\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(CheckJunit(report), HasSubstr("<skipped message=\"nets/net&lt;1&gt;.onnx is 20.0 %"));
  EXPECT_THAT(CheckMarkdown(report), HasSubstr("onnx: inconclusive\n"));
  EXPECT_THAT(CheckMarkdown(report), HasSubstr("\n> other work disturbed this measurement"));
}

TEST_F(CheckFilesTest, AnErrorIsNoRegression) {
  GoldenOfTest golden;
  AddBoth(golden, {"relu m=4 n=4", std::nullopt,
                   absl::NotFoundError("speed.json has no\x01 baseline for \"relu\"")});
}

TEST_F(CheckFilesTest, AnOperatorHasNoSteps) {
  Comparison comparison = Compared(1e6);
  comparison.timing.what = "operator";
  const CheckReport report = ReportOf(comparison);
  EXPECT_THAT(CheckJunit(report), Not(HasSubstr("conv2d")));
  EXPECT_THAT(CheckMarkdown(report), Not(HasSubstr("conv2d")));
}

TEST_F(CheckFilesTest, StepsThatChangedLessAreCounted) {
  Comparison comparison = Compared(1e6);
  for (int i = 0; i < 20; ++i) {
    comparison.timing.speed.steps.push_back({absl::StrCat("step", i), "relu", 10});
  }
  EXPECT_THAT(CheckMarkdown(ReportOf(comparison)), HasSubstr("\n12 other steps changed less\n"));
}

}  // namespace
}  // namespace hone::cli
