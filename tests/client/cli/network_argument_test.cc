#include "client/cli/network_argument.h"

#include "client/cli/exit_code.h"
#include "client/cli/network_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CheckNetworkKnownTest, SaysHowToGoOn) {
  NetworkArgument network{.path = "net.onnx"};
  network.tasks.resize(3);
  EXPECT_TRUE(CheckNetworkKnown(network, 0, "t", 0).ok());
  const absl::Status unknown = CheckNetworkKnown(network, 2, "t", 0);
  EXPECT_EQ(ExitCodeFor(unknown), kExitNothingKnown);
  EXPECT_EQ(unknown.message(),
            "no confirmed schedule is known for 2 of the 3 tasks of net.onnx on t; find them with: "
            "hone tune net.onnx --only-missing");
  EXPECT_THAT(
      CheckNetworkKnown(network, 3, "t", 0).message(),
      AllOf(HasSubstr("for any of the 3 tasks of net.onnx"), Not(HasSubstr("--only-missing"))));
  EXPECT_THAT(
      CheckNetworkKnown(network, 2, "t", 0, std::nullopt, kDraftHint).message(),
      HasSubstr("hone tune net.onnx --only-missing; --draft uses schedules that are not tuned"));
  RunningJob running{.id = "12", .tuned = 3};
  EXPECT_EQ(CheckNetworkKnown(network, 3, "t", 0, running).message(),
            "no confirmed schedule is known for any of the 3 tasks of net.onnx on t; job 12 is "
            "tuning them; hone jobs watch 12 follows the job");
  running.tuned = 1;
  EXPECT_EQ(CheckNetworkKnown(network, 3, "t", 0, running).message(),
            "no confirmed schedule is known for any of the 3 tasks of net.onnx on t; job 12 is "
            "tuning one of them; hone jobs watch 12 follows the job; find the rest with: hone tune "
            "net.onnx --only-missing");
  network.path = "my net.onnx";
  EXPECT_THAT(CheckNetworkKnown(network, 2, "t", 0).message(),
              HasSubstr("hone tune 'my net.onnx'"));
  network.shapes = {"x=1x3", "the mask=1x4"};
  EXPECT_THAT(CheckNetworkKnown(network, 2, "t", 0.001).message(),
              HasSubstr("hone tune 'my net.onnx' --shape x=1x3 --shape 'the mask=1x4' "
                        "--tolerance 0.001 --only-missing"));
  EXPECT_THAT(CheckNetworkKnown(network, 3, "t", 0.001).message(),
              HasSubstr("--shape 'the mask=1x4' --tolerance 0.001"));
  network.tasks.resize(1);
  EXPECT_THAT(CheckNetworkKnown(network, 1, "t", 0).message(),
              HasSubstr("for the only task of my net.onnx on t; find it with"));
}

}  // namespace
}  // namespace hone::cli
