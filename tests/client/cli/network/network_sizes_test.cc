#include "client/cli/network/network_sizes.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/operator_export.h"
#include "client/cli/workload_argument.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/client/network/onnx/open_models.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int64_t> SizeValuesOf(const std::string& shape) {
  const auto sizes = ExpandSizes({"net.onnx", {shape}});
  EXPECT_THAT(sizes, IsOk());
  std::vector<int64_t> values;
  if (!sizes.ok()) return values;
  for (const NetworkSize& size : sizes->list) values.push_back(size.value);
  return values;
}

std::string SizesErrorOf(const std::vector<std::string>& shapes) {
  const absl::Status status = ExpandSizes({"net.onnx", shapes}).status();
  EXPECT_EQ(ExitCodeFor(status), kExitUsage) << status;
  return std::string(status.message());
}

TEST(ExpandSizesTest, ListsAndRanges) {
  EXPECT_THAT(SizeValuesOf("batch=8,1,4,4"), ElementsAre(1, 4, 8));
  EXPECT_THAT(SizeValuesOf("seq=1..512"), ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 512));
  EXPECT_THAT(SizeValuesOf("seq=3..20"), ElementsAre(3, 4, 8, 16, 20));
  EXPECT_THAT(SizeValuesOf("seq=7..7,9"), ElementsAre(7, 9));
  EXPECT_THAT(SizeValuesOf("x=1,2x3x8x8"), ElementsAre(1, 2));
}

TEST(ExpandSizesTest, SizesHaveWeights) {
  const auto weights = [](const std::vector<std::string>& shapes) {
    std::vector<double> found;
    const auto sizes = ExpandSizes({"net.onnx", shapes});
    EXPECT_THAT(sizes, IsOk());
    if (!sizes.ok()) return found;
    for (const NetworkSize& size : sizes->list) found.push_back(size.weight);
    return found;
  };
  EXPECT_THAT(SizeValuesOf("batch=8,1:3"), ElementsAre(1, 8));
  EXPECT_THAT(weights({"batch=8,1:3"}), ElementsAre(3, 1));
  EXPECT_THAT(weights({"batch=1:0.5,8:2e1,2..4"}), ElementsAre(0.5, 1, 1, 20));
  EXPECT_THAT(weights({"x=1:3,4x3x8x8"}), ElementsAre(3, 1));
  EXPECT_THAT(weights({"batch=1:3,4", "seq=8:2,9"}), ElementsAre(6, 3, 2, 1));
  HONE_ASSERT_OK_AND_ASSIGN(const auto sizes, ExpandSizes({"net.onnx", {"x=1:3,4x3x8x8"}}));
  EXPECT_EQ(ToText(sizes.list[0].words), "net.onnx --shape x=1x3x8x8");
}

TEST(ExpandSizesTest, SaysWhatIsWrongWithWeights) {
  for (const char* const weight : {"0", "-1", "", "y", "1:2", "inf", "nan", "1e999", "2e6"}) {
    SCOPED_TRACE(weight);
    EXPECT_EQ(SizesErrorOf({absl::StrCat("batch=1:", weight, ",8")}),
              absl::StrCat("--shape batch=1:", weight, ",8: the weight '", weight,
                           "' is not a positive number of at most 1e+06; sizes have weights as in "
                           "1:3,8:1"));
  }
  for (const char* const sizes : {"1:3,1:3", "1:3,1", "1,1:3", "1..4,2:5", "2:5,1..4"}) {
    SCOPED_TRACE(sizes);
    EXPECT_THAT(SizesErrorOf({absl::StrCat("batch=", sizes)}),
                HasSubstr("is repeated, and has a weight; give it once"));
  }
  EXPECT_THAT(SizesErrorOf({"batch=1..4:2"}), HasSubstr("the range 1..4 has a weight"));
  EXPECT_THAT(SizesErrorOf({"batch=:2,4"}), HasSubstr("'' is not a positive number"));
}

TEST(ExpandSizesTest, OneSizeStaysAsItIs) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto sizes, ExpandSizes({"net.onnx", {"batch=4", "y=2x3"}}));
  EXPECT_FALSE(sizes.AreSeveral());
  EXPECT_EQ(sizes.list[0].label, "");
  EXPECT_EQ(ToText(sizes.list[0].words), "net.onnx --shape batch=4 --shape y=2x3");
}

TEST(ExpandSizesTest, SizesHaveTheirWords) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto sizes, ExpandSizes({"net.onnx", {"y=5", "x=3x1,4x8"}}));
  ASSERT_EQ(sizes.list.size(), 2u);
  EXPECT_EQ(sizes.dimension, "x[1]");
  EXPECT_EQ(sizes.list[1].label, "x[1]=4");
  EXPECT_EQ(ToText(sizes.list[1].words), "net.onnx --shape y=5 --shape x=3x4x8");
  EXPECT_EQ(ToText(sizes.WordsFor(2)), "net.onnx --shape y=5 --shape x=3x2x8");
}

TEST(ExpandSizesTest, TwoDimensionsAreCombined) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto sizes, ExpandSizes({"net.onnx", {"batch=1,4", "seq=8,9"}}));
  EXPECT_EQ(sizes.dimension, "");
  ASSERT_EQ(sizes.list.size(), 4u);
  EXPECT_EQ(sizes.list[1].label, "batch=1, seq=9");
  EXPECT_EQ(ToText(sizes.list[1].words), "net.onnx --shape batch=1 --shape seq=9");
}

TEST(ExpandSizesTest, SaysWhatIsWrong) {
  EXPECT_EQ(SizesErrorOf({"batch=8..1"}),
            "--shape batch=8..1: the range 8..1 is empty; give the smaller value first");
  EXPECT_THAT(SizesErrorOf({"batch=1,,2"}), HasSubstr("'' is not a positive number"));
  EXPECT_THAT(SizesErrorOf({"batch=0,2"}), HasSubstr("'0' is not a positive number"));
  EXPECT_THAT(SizesErrorOf({"batch=1..99999999999999999999"}),
              HasSubstr("is not a positive number"));
  EXPECT_THAT(SizesErrorOf({"batch=1..9223372036854775807"}),
              HasSubstr("64 values of batch are given, and at most 16 sizes"));
  EXPECT_EQ(SizesErrorOf({"batch=1..8", "seq=1..16"}),
            "4 values of batch times 5 values of seq are given, and at most 16 combinations can be "
            "tuned together; give fewer values, as in batch=1,8");
  EXPECT_THAT(SizesErrorOf({"x=1,2x3,4"}), HasSubstr("only one dimension of an input"));
}

TEST(OperatorSizesTest, OneKeyOfOneOperator) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto sizes,
                            ReadOperatorSizes({"matmul", "m=1..4", "n=8", "k=16"}));
  ASSERT_TRUE(sizes.has_value());
  EXPECT_EQ(sizes->key, "m");
  EXPECT_THAT(sizes->values, ElementsAre(1, 2, 4));
  EXPECT_THAT(sizes->WordsFor(3), ElementsAre("matmul", "m=3", "n=8", "k=16"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto quoted, ReadOperatorSizes({"matmul m=1,4 n=8 k=16"}));
  EXPECT_TRUE(quoted.has_value());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"matmul", "m=1", "n=8", "k=16"},
        {"matmul", "m=1,2", "n=8,9", "k=16"},
        {"matmul", "m=1,2", "n=8", "k=16", "relu", "m=1", "n=1"}}) {
    const auto other = ReadOperatorSizes(words);
    ASSERT_THAT(other, IsOk());
    EXPECT_FALSE(other->has_value());
  }
}

TEST(OperatorSizesTest, SizesAreWorkloads) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workloads, ReadWorkloads({"matmul", "m=1,2", "n=8", "k=4,8",
                                                                 "relu", "m=1", "n=2"}));
  std::vector<std::string> titles;
  for (const WorkloadArgument& workload : workloads) titles.push_back(workload.title);
  EXPECT_THAT(titles, ElementsAre("matmul m=1 n=8 k=4", "matmul m=1 n=8 k=8", "matmul m=2 n=8 k=4",
                                  "matmul m=2 n=8 k=8", "relu m=1 n=2"));
  EXPECT_THAT(ReadWorkloads({"matmul", "m=4..1", "n=8", "k=4"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("m=4..1: the range 4..1 is")));
  EXPECT_THAT(ReadWorkloads({"matmul", "m=1..512", "n=1..512", "k=4"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 16 combinations")));
}

TEST(OperatorSizesTest, WeightsDivideTheBudget) {
  const auto factors = [](const std::vector<std::string>& words) {
    std::vector<double> found;
    const auto workloads = ReadWorkloads(words);
    EXPECT_THAT(workloads, IsOk());
    if (!workloads.ok()) return found;
    for (const WorkloadArgument& workload : *workloads) found.push_back(workload.budget_factor);
    return found;
  };
  EXPECT_THAT(factors({"matmul", "m=1:3,8", "n=8", "k=4", "relu", "m=1", "n=2"}),
              ElementsAre(1.5, 0.5, 1));
  EXPECT_THAT(factors({"matmul", "m=1,2", "n=8", "k=4"}), ElementsAre(1, 1));
  EXPECT_THAT(factors({"matmul", "m=1:3,2", "n=8:3,9", "k=4"}),
              ElementsAre(2.25, 0.75, 0.75, 0.25));
  EXPECT_THAT(ReadWorkloads({"matmul", "m=1:0,2", "n=8", "k=4"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("m=1:0,2: the weight '0' is not a positive number of at most")));
}

TEST(KeptSizesTest, SizesThatGainLittleAreLeftOut) {
  const auto kept = [](std::vector<double> latencies, std::vector<bool> pads,
                       std::vector<double> copies = {}) {
    copies.resize(latencies.size(), 0);
    const std::vector<std::vector<graph::InputMask>> masks(latencies.size());
    return KeptSizes(latencies, copies, {.pads = pads, .masks = masks});
  };
  // 4 takes as long as 8, and 16 much less than 64.
  EXPECT_THAT(kept({1, 10, 10.3, 20, 80}, {false, true, true, true, true}),
              ElementsAre(0, 2, 3, 4));
  // The copies that padding makes count.
  EXPECT_THAT(kept({1, 10, 10.3, 20, 80}, {false, true, true, true, true}, {0, 0, 2, 0, 0}),
              ElementsAre(0, 1, 2, 3, 4));
  // Without padding, all are kept; also if only the values below a size may not be padded.
  EXPECT_THAT(kept({1, 1, 1}, {false, false, false}), ElementsAre(0, 1, 2));
  EXPECT_THAT(kept({1, 1, 1}, {false, false, true}), ElementsAre(0, 1, 2));
  EXPECT_THAT(kept({1, 1, 1}, {false, true, false}), ElementsAre(0, 1, 2));
  // The smallest and the largest are always kept.
  EXPECT_THAT(kept({1, 1, 1}, {true, true, true}), ElementsAre(0, 2));
  // Other inputs would have to hide the padding.
  std::vector<std::vector<graph::InputMask>> masks(3);
  masks[1].push_back({.input = 1});
  EXPECT_THAT(KeptSizes({1, 1, 1}, {0, 0, 0}, {.pads = {true, true, true}, .masks = masks}),
              ElementsAre(0, 1, 2));
}

class PaddingTest : public testing::Test {
 protected:
  Padding Find(const std::string& model, const std::string& shape) {
    std::ofstream(path_, std::ios::binary) << onnx::BytesOf(model);
    const auto sizes = ExpandSizes({path_, {shape}});
    EXPECT_THAT(sizes, IsOk());
    return FindPadding(*sizes);
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "network.onnx";
};

TEST_F(PaddingTest, IndependentSamples) {
  const Padding padding = Find(onnx::OpenConvolutions(), "N=1,2,6");
  EXPECT_THAT(padding.pads, ElementsAre(false, true, true)) << padding.why_not;
  EXPECT_THAT(padding.why_not, IsEmpty());
}

// Values that are computed on the host must not depend on the size either.
TEST_F(PaddingTest, AnEndOnTheHostThatDependsOnTheSizeIsNotPadded) {
  const auto model = [](int most) {
    return onnx::Input("x", 1, "N, 3") + onnx::NodeText("Relu", "x", "r") +
           onnx::NodeText("NonZero", "r", "places") + onnx::NodeText("Shape", "x", "shape") +
           onnx::Initializer("first", 7, "", "int64_data: 0") +
           onnx::Initializer("most", 7, "", absl::StrCat("int64_data: ", most)) +
           onnx::NodeText("Gather", "shape first", "n") + onnx::NodeText("Min", "n most", "least") +
           onnx::NodeText("Mul", "places least", "y") + onnx::Output("y");
  };
  const Padding same = Find(model(2), "N=4,8");
  EXPECT_THAT(same.pads, ElementsAre(false, true));
  EXPECT_THAT(same.why_not, HasSubstr("what runs on the host, or a constant that it reads"));
  EXPECT_THAT(Find(model(4), "N=4,8").pads, ElementsAre(false, true));
  EXPECT_THAT(Find(model(1), "N=4,8").pads, ElementsAre(true, true));
}

TEST_F(PaddingTest, ASequenceOfAttentionIsNotPadded) {
  const Padding padding = Find(onnx::OpenAttention("S"), "S=2,5");
  EXPECT_THAT(padding.pads, ElementsAre(false, false));
  EXPECT_THAT(padding.why_not, HasSubstr("may mix the samples"));
}

TEST_F(PaddingTest, ASequenceOfCausalAttentionIsPadded) {
  const Padding padding = Find(onnx::OpenCausalAttention(), "N=2,5,16");
  EXPECT_THAT(padding.pads, ElementsAre(true, true, true)) << padding.why_not;
}

TEST_F(PaddingTest, AnInputThatMasksHidesThePadding) {
  const Padding padding = Find(onnx::OpenMaskedAttention(), "N=2,5,16");
  EXPECT_THAT(padding.pads, ElementsAre(true, true, true)) << padding.why_not;
  ASSERT_EQ(padding.masks.size(), 3u);
  for (const auto& masks : padding.masks) {
    ASSERT_EQ(masks.size(), 1u);
    EXPECT_EQ(masks[0].input, 1);
    EXPECT_EQ(masks[0].hides, std::string(8, '\0'));
  }
}

TEST_F(PaddingTest, AMaskedMeanIsPaddedAndAnotherMeanIsNot) {
  const auto mean = [](const std::string& nodes) {
    return onnx::OpenMaskedAttention("", /*type=*/1,
                                     onnx::Initializer("last", 7, "1", "int64_data: [-1]") +
                                         onnx::NodeText("Unsqueeze", "mask last", "mask3") +
                                         onnx::NodeText("Mul", "y mask3", "product") + nodes +
                                         onnx::NodeText("ReduceSum", "mask3 first", "count") +
                                         onnx::NodeText("Div", "total count", "mean") +
                                         onnx::Output("mean"));
  };
  const Padding padding =
      Find(mean(onnx::NodeText("ReduceSum", "product first", "total")), "N=2,5,16");
  EXPECT_THAT(padding.pads, ElementsAre(true, true, true)) << padding.why_not;
  const Padding refused = Find(
      mean(onnx::NodeText("ReduceMean", "product", "total", onnx::Ints("axes", "1"))), "N=2,5");
  EXPECT_THAT(refused.pads, ElementsAre(false, false));
  EXPECT_THAT(refused.why_not, HasSubstr("node 'n_total' (ReduceMean) may mix the samples"));
}

TEST_F(PaddingTest, AnUnknownNameIsAnError) {
  std::ofstream(path_, std::ios::binary) << onnx::BytesOf(onnx::OpenMlp());
  HONE_ASSERT_OK_AND_ASSIGN(const auto sizes, ExpandSizes({path_, {"M=1,2"}}));
  const absl::Status status = ReadNetworks(Globals(), sizes).status();
  EXPECT_EQ(ExitCodeFor(status), kExitUsage);
  EXPECT_THAT(status.message(), HasSubstr("M=1: "));
  EXPECT_THAT(status.message(), HasSubstr("there is no input 'M' for which a shape is given"));
}

TEST_F(PaddingTest, OtherCommandsTakeOneSize) {
  std::ofstream(path_, std::ios::binary) << onnx::BytesOf(onnx::OpenMlp());
  EXPECT_THAT(ReadGraph({path_, {"N=1,2"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("several sizes are for hone tune, best, export and run")));
}

}  // namespace
}  // namespace hone::cli
