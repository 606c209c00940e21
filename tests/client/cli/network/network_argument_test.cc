#include "client/cli/network/network_argument.h"

#include <fstream>

#include "client/cli/exit_code.h"
#include "client/cli/network/network_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CheckNetworkKnownTest, SaysHowToGoOn) {
  NetworkArgument network{.path = "net.onnx"};
  network.tasks.resize(3);
  EXPECT_THAT(CheckNetworkKnown(network, 0, "t", 0), IsOk());
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

class ReadGraphTest : public testing::Test {
 protected:
  void WriteModel(const std::string& graph) {
    std::ofstream(path_, std::ios::binary) << onnx::BytesOf(graph);
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "network.onnx";
};

TEST_F(ReadGraphTest, AModelThatCannotRunIsAUsageError) {
  const std::string x = onnx::Input("x", 1, "2, 3");
  WriteModel(x + onnx::NodeText("NonZero", "x", "y") + onnx::Output("y"));
  const absl::Status unknown = ReadGraph({path_}).status();
  EXPECT_EQ(ExitCodeFor(unknown), kExitUsage);
  EXPECT_THAT(unknown.message(), AllOf(HasSubstr(path_), HasSubstr("NonZero (opset 17)")));
  WriteModel(onnx::Input("s", 7, "2") + onnx::NodeText("ConstantOfShape", "s", "y") +
             onnx::Output("y"));
  const absl::Status computed = ReadGraph({path_}).status();
  EXPECT_EQ(ExitCodeFor(computed), kExitUsage);
  EXPECT_THAT(computed.message(), HasSubstr("node 'n_y' (ConstantOfShape): input 0 ('s') must be"));
}

TEST_F(ReadGraphTest, AShapeThatLeavesNothingIsAUsageError) {
  const std::string x = onnx::Input("x", 1, "batch, 3");
  WriteModel(x + onnx::NodeText("Relu", "x", "y") + onnx::Output("y"));
  const absl::Status nothing = ReadGraph({path_, {"batch=0"}}).status();
  EXPECT_EQ(ExitCodeFor(nothing), kExitUsage);
  EXPECT_EQ(nothing.message(),
            "--shape batch=0: an extent of 0 leaves nothing to compute in " + path_);
  WriteModel(x + onnx::NodeText("ReduceMean", "x", "y") + onnx::Output("y"));
  const absl::Status refused = ReadGraph({path_, {"x=0x3"}}).status();
  EXPECT_EQ(ExitCodeFor(refused), kExitUsage);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("--shape x=0x3: an extent of 0 does not fit"),
                                       HasSubstr("node 'n_y' (ReduceMean)")));
  // A decoder without a past.
  WriteModel(onnx::Input("past", 1, "length, 3") + onnx::Input("x", 1, "2, 3") +
             onnx::NodeText("Concat", "past x", "y", onnx::Int("axis", 0)) + onnx::Output("y"));
  EXPECT_THAT(ReadGraph({path_, {"length=0"}}), IsOk());
}

TEST(ReadOperatorAsNetworkTest, HasOneStep) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto network,
                            ReadOperatorAsNetwork(Globals(), {"dense", "m=4", "n=8", "k=16"}));
  EXPECT_TRUE(network.is_operator);
  ASSERT_EQ(network.partition.steps.size(), 1u);
  ASSERT_EQ(network.tasks.size(), 1u);
  const ir::Workload& workload = network.tasks[0].workload;
  EXPECT_EQ(network.partition.steps[0].inputs.size(), workload.Inputs().size());
  EXPECT_EQ(network.partition.steps[0].outputs.size(), workload.Outputs().size());
  EXPECT_EQ(DescribeValues(network.graph, network.graph.inputs), "X: f32[4, 16]");
  EXPECT_EQ(ExitCodeFor(ReadOperatorAsNetwork(Globals(), {"nothing"}).status()), kExitUsage);
}

}  // namespace
}  // namespace hone::cli
