#include "client/network/graph/sample_attention.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/graph/padded_model.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/client/network/onnx/open_models.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ::hone::onnx::Initializer;
using ::hone::onnx::Int;
using ::hone::onnx::NodeText;
using ::hone::onnx::OpenMaskedAttention;
using ::testing::HasSubstr;

std::string MaskNumber(const std::string& name, const std::string& value) {
  return Initializer(name, kTypeF32, "", "float_data: " + value);
}

// Constants [N, N]: `hidden`, true where the column is behind the row, `shown`, its opposite, and
// `causal`, which adds `low` where it is hidden; and of the mask: `seen4`, bool, and `added4`,
// which adds -3e38 where the mask hides. `far`: columns that are that far before the row are
// hidden, too.
std::string BothMasks(const std::string& low = "-inf", int far = 99) {
  std::string hidden;
  for (int i = 0; i < 16 * 16; ++i) {
    const int row = i / 16, column = i % 16;
    absl::StrAppend(&hidden, i > 0 ? ", " : "", column > row || column <= row - far);
  }
  return absl::StrCat(
      Initializer("behind", kTypeBool, "16, 16", absl::StrCat("int32_data: [", hidden, "]")),
      Initializer("from2", kTypeI64, "2", "int64_data: [0, 0]"), MaskNumber("low", low),
      MaskNumber("zero", "0"), MaskNumber("one", "1"), MaskNumber("lowest", "-3e38"),
      NodeText("Concat", "n n", "n2", Int("axis", 0)),
      NodeText("Slice", "behind from2 n2", "hidden"), NodeText("Not", "hidden", "shown"),
      NodeText("Where", "hidden low zero", "causal"),
      NodeText("Cast", "mask4", "seen4", Int("to", kTypeBool)),
      NodeText("Cast", "mask4", "float4", Int("to", kTypeF32)),
      NodeText("Sub", "one float4", "unseen4"), NodeText("Mul", "unseen4 lowest", "added4"));
}

// A decoder with both masks. `masked`: nodes that compute "masked" from "scores".
std::string Decoder(const std::string& masked, int type = kTypeI64, const std::string& more = "") {
  return OpenMaskedAttention(BothMasks() + masked, type, more);
}

void ExpectPadsBoth(const std::string& text) {
  SCOPED_TRACE(text);
  const auto model = PaddedModel::Of(text);
  ASSERT_THAT(model.status(), IsOk());
  ASSERT_EQ(model->masks().size(), 1u);
  EXPECT_EQ(model->masks()[0].needs, InputMask::Needs::kFirst);
  EXPECT_THAT(RunsArePadded(*model), IsOk());
}
void ExpectMixes(const std::string& text) {
  SCOPED_TRACE(text);
  EXPECT_THAT(PaddedModel::Of(text).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
}

// The masks are combined before they meet the scores.
TEST(SampleAttentionTest, CombinedMasks) {
  const std::string selects = NodeText("Where", "both scores low", "masked");
  const std::string adds = NodeText("Add", "scores both", "masked");
  ExpectPadsBoth(Decoder(NodeText("And", "shown seen4", "both") + selects));
  ExpectPadsBoth(OpenMaskedAttention(BothMasks() + NodeText("And", "mask4 shown", "both") + selects,
                                     kTypeBool));
  ExpectPadsBoth(Decoder(NodeText("Min", "causal added4", "both") + adds));
  ExpectPadsBoth(Decoder(NodeText("Add", "causal added4", "both") + adds));
  ExpectPadsBoth(Decoder(NodeText("Where", "seen4 causal low", "both") + adds));
  ExpectPadsBoth(Decoder(NodeText("Where", "shown added4 lowest", "both") + adds));
  // Products of zeros and ones, as floats and as whole numbers.
  ExpectPadsBoth(Decoder(NodeText("Cast", "shown", "shown_f", Int("to", kTypeF32)) +
                         NodeText("Mul", "shown_f float4", "product") +
                         NodeText("Sub", "one product", "rest") +
                         NodeText("Mul", "rest lowest", "both") + adds));
  ExpectPadsBoth(
      OpenMaskedAttention(BothMasks() + NodeText("Cast", "shown", "shown_i", Int("to", kTypeI32)) +
                              NodeText("Mul", "shown_i mask4", "product") +
                              NodeText("Cast", "product", "both", Int("to", kTypeBool)) + selects,
                          kTypeI32));
  // Filled where the mask hides what the causal mask shows, as in newer exports.
  ExpectPadsBoth(OpenMaskedAttention(BothMasks("-3e38") + NodeText("Add", "causal float4", "sum") +
                                     NodeText("Equal", "sum zero", "fill") +
                                     NodeText("Where", "fill low causal", "both") + adds));
}

// Each mask changes the scores, one after the other.
TEST(SampleAttentionTest, MasksOneAfterTheOther) {
  const std::string select = NodeText("Where", "hidden low scores", "early"),
                    add = NodeText("Add", "scores causal", "early");
  for (const std::string& first : {select, add}) {
    ExpectPadsBoth(Decoder(first + NodeText("Add", "early added4", "masked")));
    ExpectPadsBoth(Decoder(first + NodeText("Where", "seen4 early low", "masked")));
  }
  for (const std::string& first : {NodeText("Add", "scores added4", "early"),
                                   NodeText("Where", "seen4 scores low", "early")}) {
    ExpectPadsBoth(Decoder(first + NodeText("Add", "early causal", "masked")));
    ExpectPadsBoth(Decoder(first + NodeText("Where", "hidden low early", "masked")));
    ExpectPadsBoth(Decoder(first + NodeText("Where", "shown early lowest", "masked")));
  }
  // A mask of -10000 is enough beside a causal mask, which hides the padding alone.
  ExpectPadsBoth(OpenMaskedAttention(BothMasks() + MaskNumber("weak", "-10000") +
                                         NodeText("Mul", "unseen4 weak", "weakly") + add +
                                         NodeText("Add", "early weakly", "masked"),
                                     kTypeI32));
  // Shares that are no numbers are replaced.
  ExpectPadsBoth(Decoder(select + NodeText("Add", "early added4", "m") +
                         NodeText("Softmax", "m", "raw", Int("axis", 3)) +
                         NodeText("IsNaN", "raw", "nan") + NodeText("Where", "nan zero raw", "s") +
                         NodeText("MatMul", "s v3", "extra") + onnx::Output("extra") +
                         NodeText("Identity", "m", "masked")));
}

TEST(SampleAttentionTest, MeansAndPositionsOfADecoder) {
  const std::string pooled = absl::StrCat(Initializer("last", kTypeI64, "1", "int64_data: [-1]"),
                                          NodeText("Cast", "mask", "mask_f", Int("to", kTypeF32)),
                                          NodeText("Unsqueeze", "mask_f last", "mask3"),
                                          NodeText("Mul", "y mask3", "product"),
                                          NodeText("ReduceSum", "product first", "total"),
                                          NodeText("ReduceSum", "mask3 first", "count"),
                                          NodeText("Div", "total count", "p"), onnx::Output("p"));
  ExpectPadsBoth(Decoder(NodeText("Where", "hidden low scores", "causally") +
                             NodeText("Add", "causally added4", "masked"),
                         kTypeI64, pooled));
}

// A mask may show nothing of what another one shows.
TEST(SampleAttentionTest, WhatMayHideAllThatARowSeesIsRefused) {
  const std::string both = NodeText("And", "shown seen4", "both");
  // The first column is not that which is shown: only the last ones are seen.
  const auto window = [&](const std::string& nodes) {
    return OpenMaskedAttention(BothMasks("-inf", /*far=*/2) + nodes);
  };
  ExpectMixes(window(both + NodeText("Where", "both scores low", "masked")));
  ExpectMixes(
      window(NodeText("Add", "scores causal", "f") + NodeText("Add", "f added4", "masked")));
  ExpectMixes(
      window(NodeText("Add", "scores added4", "f") + NodeText("Add", "f causal", "masked")));
  ExpectMixes(window(NodeText("Where", "hidden low scores", "f") +
                     NodeText("Where", "seen4 f low", "masked")));
  // Either of them shows.
  ExpectMixes(Decoder(NodeText("Or", "shown seen4", "both") +
                      NodeText("Where", "both scores low", "masked")));
  // The masked ones are shown, or nothing is.
  ExpectMixes(Decoder(both + NodeText("Where", "both low scores", "masked")));
  ExpectMixes(Decoder(NodeText("And", "hidden seen4", "both") +
                      NodeText("Where", "both scores low", "masked")));
  // Zero times minus infinity is NaN.
  ExpectMixes(Decoder(NodeText("Mul", "unseen4 low", "nan") +
                      NodeText("Add", "causal nan", "both") +
                      NodeText("Add", "scores both", "masked")));
  ExpectMixes(
      Decoder(NodeText("Where", "hidden low scores", "f") + NodeText("Mul", "f float4", "masked")));
  // What raises the hidden ones.
  ExpectMixes(Decoder(MaskNumber("high", "3e38") + NodeText("Add", "scores added4", "f") +
                      NodeText("Add", "f high", "masked")));
  // Scores that were low are high then, or infinite: what is added does not hide them.
  const std::string turned = MaskNumber("minus", "-1") + NodeText("Add", "scores causal", "f") +
                             NodeText("Mul", "f minus", "g");
  ExpectMixes(Decoder(turned + NodeText("Add", "g causal", "masked")));
  ExpectMixes(
      Decoder(turned + NodeText("Add", "g added4", "h") + NodeText("Add", "h causal", "masked")));
  ExpectMixes(Decoder(
      Initializer(
          "steep1", kTypeF32, "16, 1",
          "float_data: [0, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, 3e38, "
          "3e38, 3e38, 3e38, 3e38]") +
      NodeText("Slice", "steep1 from n", "rows1") +
      NodeText("Transpose", "rows1", "columns1", onnx::Ints("perm", "1, 0")) +
      NodeText("Add", "scores columns1", "f") + NodeText("Add", "f added4", "g") +
      NodeText("Add", "g causal", "masked")));
  // A mask of rows, and one of other rows and columns.
  ExpectMixes(Decoder(NodeText("Transpose", "seen4", "by_row", onnx::Ints("perm", "0, 1, 3, 2")) +
                      NodeText("And", "shown by_row", "both") +
                      NodeText("Where", "both scores low", "masked")));
  ExpectMixes(Decoder(NodeText("Transpose", "shown", "turned") +
                      NodeText("And", "turned seen4", "both") +
                      NodeText("Where", "both scores low", "masked")));
}

// If the batch grows with the sequence, a sum over it has more terms with the padding.
TEST(SampleAttentionTest, ABatchThatGrowsIsRefused) {
  const auto summed = [](const std::string& batch) {
    return onnx::OpenCausalAttention(absl::StrCat(
        onnx::Input("mask", kTypeF32, "1, 1, 1, N"), MaskNumber("low", "-3e38"),
        Initializer("top", kTypeI64, "1", "int64_data: 0"),
        Initializer("steps", kTypeF32, "16, 1, 1, 1",
                    "float_data: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6]"),
        NodeText("Slice", batch, "batch"), NodeText("Add", "mask batch", "added"),
        NodeText("Add", "scores added", "m"), NodeText("Softmax", "m", "s", Int("axis", 3)),
        NodeText("MatMul", "s v3", "o"), NodeText("ReduceSum", "o top", "extra"),
        onnx::Output("extra"), NodeText("Where", "hidden low scores", "masked")));
  };
  const auto fixed = PaddedModel::Of(summed("steps from first"));
  ASSERT_THAT(fixed.status(), IsOk());
  EXPECT_THAT(RunsArePadded(*fixed), IsOk());
  ExpectMixes(summed("steps from n"));
}

// Values at the padding are multiplied by zero, which is not zero if they are infinite.
TEST(SampleAttentionTest, InfiniteValuesAreRefused) {
  const std::string table =
      Initializer("table1", kTypeF32, "16, 1",
                  "float_data: [1, 1, inf, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]");
  const std::string shares = NodeText("Softmax", "masked", "s", Int("axis", 3));
  const std::string causal = NodeText("Where", "hidden low scores", "masked") + shares + table +
                             NodeText("Slice", "table1 from n", "some1");
  ExpectMixes(Decoder(causal + NodeText("Add", "v3 some1", "v4") +
                      NodeText("MatMul", "s v4", "extra") + onnx::Output("extra")));
  // A mask of which nothing requires that it hides the padding replaces none of them.
  ExpectMixes(Decoder(causal + NodeText("Add", "v3 some1", "v4") +
                      NodeText("Transpose", "seen4", "by_row", onnx::Ints("perm", "0, 1, 3, 2")) +
                      NodeText("Where", "by_row v4 zero", "v5") +
                      NodeText("MatMul", "s v5", "extra") + onnx::Output("extra")));
}

}  // namespace
}  // namespace hone::graph
