#include "client/cli/network_check.h"

#include "gtest/gtest.h"

namespace hone::cli {
namespace {

TEST(TimingCommandTest, HasTheOptionsThatAreNeeded) {
  EXPECT_EQ(TimingCommand({.path = "models/net.onnx"}, 0),
            "hone check models/net.onnx --save --baseline net.speed.json");
  EXPECT_EQ(TimingCommand({.path = "my net.onnx", .shapes = {"x=1x3", "the mask=1x4"}}, 0.001),
            "hone check 'my net.onnx' --shape x=1x3 --shape 'the mask=1x4' --tolerance 0.001 "
            "--save --baseline 'my net.speed.json'");
}

}  // namespace
}  // namespace hone::cli
