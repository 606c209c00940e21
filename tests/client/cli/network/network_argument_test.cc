#include "client/cli/network/network_argument.h"

#include <fstream>

#include "client/cli/exit_code.h"
#include "client/cli/network/network_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

TEST(CheckNetworkKnownTest, SaysHowToGoOn) {
  GoldenOfTest golden;
  NetworkArgument network{.path = "net.onnx"};
  network.tasks.resize(3);
  EXPECT_THAT(CheckNetworkKnown(network, 0, "t", 0), IsOk());
  const absl::Status unknown = CheckNetworkKnown(network, 2, "t", 0);
  EXPECT_EQ(ExitCodeFor(unknown), kExitNothingKnown);
  EXPECT_EQ(unknown.message(),
            "no confirmed schedule is known for 2 of the 3 tasks of net.onnx on t; find them with: "
            "hone tune net.onnx --only-missing");
  golden.Add(CheckNetworkKnown(network, 3, "t", 0).message());
  golden.Add(CheckNetworkKnown(network, 2, "t", 0, std::nullopt, kDraftHint).message());
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
  golden.Add(CheckNetworkKnown(network, 2, "t", 0).message());
  network.shapes = {"x=1x3", "the mask=1x4"};
  golden.Add(CheckNetworkKnown(network, 2, "t", 0.001).message());
  golden.Add(CheckNetworkKnown(network, 3, "t", 0.001).message());
  network.tasks.resize(1);
  golden.Add(CheckNetworkKnown(network, 1, "t", 0).message());
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
  GoldenOfTest golden;
  golden.Name(path_, "MODEL");
  const std::string x = onnx::Input("x", 1, "2, 3");
  WriteModel(x + onnx::NodeText("RandomUniformLike", "x", "y") + onnx::Output("y"));
  const absl::Status unknown = ReadGraph({path_}).status();
  EXPECT_EQ(ExitCodeFor(unknown), kExitUsage);
  golden.Add(unknown.message());
  WriteModel(onnx::Input("s", 7, "2") + onnx::NodeText("ConstantOfShape", "s", "y") +
             onnx::Output("y"));
  const absl::Status computed = ReadGraph({path_}).status();
  EXPECT_EQ(ExitCodeFor(computed), kExitUsage);
  golden.Add(computed.message());
}

TEST_F(ReadGraphTest, AShapeThatLeavesNothingIsAUsageError) {
  GoldenOfTest golden;
  golden.Name(path_, "MODEL");
  const std::string x = onnx::Input("x", 1, "batch, 3");
  WriteModel(x + onnx::NodeText("Relu", "x", "y") + onnx::Output("y"));
  const absl::Status nothing = ReadGraph({path_, {"batch=0"}}).status();
  EXPECT_EQ(ExitCodeFor(nothing), kExitUsage);
  EXPECT_EQ(nothing.message(),
            "--shape batch=0: an extent of 0 leaves nothing to compute in " + path_);
  WriteModel(x + onnx::NodeText("ReduceMean", "x", "y") + onnx::Output("y"));
  const absl::Status refused = ReadGraph({path_, {"x=0x3"}}).status();
  EXPECT_EQ(ExitCodeFor(refused), kExitUsage);
  golden.Add(refused.message());
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
