#include "client/cli/network/network_check.h"

#include "client/cli/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

TEST(ResultOfCheckTest, ADisturbedMeasurementIsInconclusive) {
  EXPECT_THAT(ResultOf("net.onnx", 0.05, 0.05, ""), IsOk());
  EXPECT_THAT(ResultOf("net.onnx", -0.1, 0.05, "it was slow"), IsOk()) << "it is even faster";
  const absl::Status slower = ResultOf("net.onnx", 0.06, 0.05, "");
  EXPECT_EQ(ExitCodeFor(slower), kExitFailed);
  EXPECT_EQ(slower.message(),
            "net.onnx is 6.0 % slower than its baseline, and at most 5 % is allowed");
  const absl::Status disturbed = ResultOf("net.onnx", 0.06, 0.05, "it was slow");
  EXPECT_EQ(ExitCodeFor(disturbed), kExitInconclusive);
  EXPECT_THAT(disturbed.message(), HasSubstr("check again"));
}

TEST(TimingCommandTest, HasTheOptionsThatAreNeeded) {
  EXPECT_EQ(TimingCommand({.path = "models/net.onnx"}, 0),
            "hone check models/net.onnx --save --baseline net.speed.json");
  EXPECT_EQ(TimingCommand({.path = "my net.onnx", .shapes = {"x=1x3", "the mask=1x4"}}, 0.001),
            "hone check 'my net.onnx' --shape x=1x3 --shape 'the mask=1x4' --tolerance 0.001 "
            "--save --baseline 'my net.speed.json'");
}

}  // namespace
}  // namespace hone::cli
