#include "client/network/graph/masked_sums.h"

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
using ::hone::onnx::Ints;
using ::hone::onnx::NodeText;
using ::hone::onnx::OpenMaskedAttention;
using ::hone::onnx::Output;
using ::testing::HasSubstr;

std::string Real(const std::string& name, const std::string& value) {
  return Initializer(name, kTypeF32, "", "float_data: " + value);
}
std::string Axis(const std::string& name, int value) {
  return Initializer(name, kTypeI64, "1", absl::StrCat("int64_data: ", value));
}

// m3 [2, N, 1] and wide [2, N, 8], f32, of the mask; `seen` [2, N, 1], bool; and some numbers.
std::string PooledMasks() {
  return absl::StrCat(
      Axis("at1", 1), Axis("at_last", -1), Real("zero_f", "0"), Real("one_f", "1"),
      Real("tiny", "1e-9"), Real("inf_f", "inf"), Real("low_f", "-inf"),
      NodeText("Unsqueeze", "mask at_last", "raw3"), NodeText("Shape", "y", "y_shape"),
      NodeText("Expand", "raw3 y_shape", "raw_wide"),
      NodeText("Cast", "raw_wide", "wide", Int("to", kTypeF32)),
      NodeText("Cast", "raw3", "m3", Int("to", kTypeF32)),
      NodeText("Cast", "raw3", "seen", Int("to", kTypeBool)), NodeText("Not", "seen", "unseen"));
}
std::string Sum(const std::string& inputs, const std::string& output, int keep = 0) {
  return NodeText("ReduceSum", inputs, output, Int("keepdims", keep));
}
// "p", the mean of "product" over the shown positions.
std::string MeanOf(const std::string& product) {
  return absl::StrCat(product, Sum("product at1", "total"), Sum("wide at1", "count"),
                      NodeText("Clip", "count tiny", "clipped"),
                      NodeText("Div", "total clipped", "p"), Output("p"));
}

// An attention over the sequence, whose mask also masks what `more` adds.
std::string Pooled(const std::string& more, int type = kTypeI64) {
  return OpenMaskedAttention("", type, PooledMasks() + more);
}

void ExpectSumPadded(const std::string& text) {
  SCOPED_TRACE(text);
  const auto model = PaddedModel::Of(text);
  ASSERT_THAT(model.status(), IsOk());
  EXPECT_THAT(RunsArePadded(*model), IsOk());
}
void ExpectSumRefused(const std::string& text,
                      const std::string& why = "hides positions, but node '") {
  SCOPED_TRACE(text);
  EXPECT_THAT(PaddedModel::Of(text).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why)));
}

TEST(MaskedSumsTest, MeansAsExportersWriteThem) {
  for (const int type : {kTypeI64, kTypeI32, kTypeF32}) {
    ExpectSumPadded(Pooled(MeanOf(NodeText("Mul", "y wide", "product")), type));
  }
  ExpectSumPadded(Pooled(MeanOf(NodeText("Mul", "m3 y", "product"))));
  ExpectSumPadded(Pooled(absl::StrCat(NodeText("Mul", "y wide", "product"),
                                      Sum("product at1", "total"), Sum("mask at1", "whole_i", 1),
                                      NodeText("Cast", "whole_i", "count", Int("to", kTypeF32)),
                                      NodeText("Max", "count tiny", "clipped"),
                                      NodeText("Div", "total clipped", "p"), Output("p"))));
}

TEST(MaskedSumsTest, OtherFormsOfAMean) {
  ExpectSumPadded(Pooled(MeanOf(NodeText("Where", "seen y zero_f", "product"))));
  ExpectSumPadded(Pooled(MeanOf(NodeText("Where", "unseen zero_f y", "product"))));
  // A row of the mask times the states, and their transposition times a column of it.
  const std::string row = absl::StrCat(NodeText("Unsqueeze", "mask at1", "raw_row"),
                                       NodeText("Cast", "raw_row", "row", Int("to", kTypeF32)),
                                       NodeText("MatMul", "row y", "p"));
  ExpectSumPadded(Pooled(row + Output("p")));
  ExpectSumPadded(Pooled(NodeText("Transpose", "y", "turned", Ints("perm", "0, 2, 1")) +
                         NodeText("MatMul", "turned m3", "p") + Output("p")));
  // Through other layouts.
  ExpectSumPadded(
      Pooled(absl::StrCat(NodeText("Mul", "y wide", "product"),
                          NodeText("Transpose", "product", "t", Ints("perm", "1, 0, 2")),
                          NodeText("Cast", "t", "d", Int("to", kTypeF64)), Axis("at0", 0),
                          Sum("d at0", "p"), Output("p"))));
  // Squares of zeros are zeros.
  ExpectSumPadded(Pooled(NodeText("Mul", "y m3", "a") + NodeText("Mul", "a a", "b") +
                         NodeText("Mul", "b m3", "c") + Sum("c at1", "p") + Output("p")));
}

TEST(MaskedSumsTest, AMaximum) {
  const std::string maximum =
      NodeText("ReduceMax", "kept", "p", Ints("axes", "1") + Int("keepdims", 0)) + Output("p");
  ExpectSumPadded(Pooled(NodeText("Where", "seen y low_f", "kept") + maximum));
  ExpectSumPadded(Pooled(NodeText("Where", "unseen low_f y", "kept") + maximum));
  ExpectSumPadded(OpenMaskedAttention(
      Real("low", "-3e38") + NodeText("Where", "mask4 scores low", "masked"), kTypeBool,
      PooledMasks() + NodeText("Where", "raw3 y low_f", "kept") + maximum));
  // States that a constant has made low may be lower than what hides them.
  ExpectSumRefused(
      Pooled(Real("lower", "-1e35") + Real("low30", "-1e30") + NodeText("Add", "y lower", "deep") +
             NodeText("Where", "seen deep low30", "kept") + maximum),
      "may mix the samples");
  // Not what is too low for a sum, nor zeros for a maximum.
  const std::string finite = Real("weak", "-1e9") + NodeText("Where", "seen y weak", "kept");
  ExpectSumRefused(Pooled(finite + maximum), "may mix the samples");
  ExpectSumRefused(Pooled(NodeText("Mul", "y m3", "kept") + maximum), "may mix the samples");
  ExpectSumRefused(Pooled(NodeText("Where", "seen low_f y", "kept") + maximum),
                   "may mix the samples");
  ExpectSumRefused(
      Pooled(NodeText("Where", "seen y low_f", "kept") + Sum("kept at1", "p") + Output("p")),
      "may mix the samples");
}

// Without an attention, a row may hide all.
TEST(MaskedSumsTest, ANetworkWithoutAttention) {
  const std::string text =
      absl::StrCat(onnx::Input("y", kTypeF32, "2, N, 8"), onnx::Input("mask", kTypeI64, "2, N"),
                   PooledMasks(), MeanOf(NodeText("Mul", "y wide", "product")));
  const auto model = PaddedModel::Of(text);
  ASSERT_THAT(model.status(), IsOk());
  ASSERT_EQ(model->masks().size(), 1u);
  EXPECT_EQ(model->masks()[0].needs, InputMask::Needs::kNothing);
  EXPECT_THAT(RunsArePadded(*model), IsOk());
}

// Ones at the padding would be added. Alone, an inverted mask hides with ones.
TEST(MaskedSumsTest, AnInvertedMask) {
  const std::string product = NodeText("Sub", "one_f m3", "inverted") +
                              NodeText("Mul", "y inverted", "product") + Sum("product at1", "p") +
                              Output("p");
  ExpectSumRefused(Pooled(product), "may mix the samples");
  const std::string text =
      absl::StrCat(onnx::Input("y", kTypeF32, "2, N, 8"), onnx::Input("mask", kTypeI64, "2, N"),
                   PooledMasks(), product);
  const auto model = PaddedModel::Of(text);
  ASSERT_THAT(model.status(), IsOk());
  EXPECT_EQ(model->masks()[0].hides, std::string(1, '\1') + std::string(7, '\0'));
  EXPECT_THAT(RunsArePadded(*model), IsOk());
}

TEST(MaskedSumsTest, SumsThatThePaddingChangesAreRefused) {
  const std::string mixes = "may mix the samples";
  const std::string product = NodeText("Mul", "y m3", "product");
  // The mean over the padded length, and sums of what is not masked.
  ExpectSumRefused(
      Pooled(product + NodeText("ReduceMean", "product", "p", Ints("axes", "1")) + Output("p")),
      mixes);
  ExpectSumRefused(Pooled(Sum("y at1", "p") + Output("p")), mixes);
  // What is subtracted from zeros, and its squares.
  ExpectSumRefused(Pooled(product + NodeText("Sub", "product one_f", "d") +
                          NodeText("Mul", "d d", "square") + Sum("square at1", "p") + Output("p")),
                   mixes);
  ExpectSumRefused(
      Pooled(product + NodeText("Exp", "product", "e") + Sum("e at1", "p") + Output("p")), mixes);
  ExpectSumRefused(
      Pooled(product + NodeText("Div", "one_f product", "e") + Sum("e at1", "p") + Output("p")),
      mixes);
  ExpectSumRefused(Pooled(NodeText("Add", "y m3", "e") + Sum("e at1", "p") + Output("p")), mixes);
  // Products over the samples.
  ExpectSumRefused(
      Pooled(product + NodeText("ReduceProd", "product", "p", Ints("axes", "1")) + Output("p")),
      mixes);
  // Another position's mask.
  ExpectSumRefused(
      Pooled(absl::StrCat(Initializer("begin", kTypeI64, "1", "int64_data: [-1]"),
                          Initializer("end", kTypeI64, "1", "int64_data: [-1000]"),
                          NodeText("Slice", "m3 begin end at1 at_last", "turned"),
                          NodeText("Mul", "y turned", "e"), Sum("e at1", "p"), Output("p"))),
      mixes);
}

// Zero times infinity is NaN.
TEST(MaskedSumsTest, ProductsWithInfinityAreRefused) {
  const std::string mixes = "may mix the samples";
  const std::string sum =
      NodeText("Mul", "e m3", "product") + Sum("product at1", "p") + Output("p");
  const std::string table = "float_data: [1, 1, inf, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]";
  ExpectSumRefused(Pooled(NodeText("Where", "seen y low_f", "e") + sum), mixes);
  const auto at_positions = [&](const std::string& op, const std::string& elements) {
    return Initializer("table1", kTypeF32, "1, 16, 1", elements) +
           NodeText("Slice", "table1 from n at1", "some1") + NodeText(op, "y some1", "e");
  };
  ExpectSumRefused(Pooled(at_positions("Add", table) + sum), mixes);
  const std::string zero = "float_data: [1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]";
  ExpectSumRefused(Pooled(at_positions("Div", zero) + sum), mixes);
  ExpectSumPadded(Pooled(at_positions("Mul", zero) + sum));
  // Where() leaves them out.
  ExpectSumPadded(Pooled(at_positions("Add", table) +
                         NodeText("Where", "seen e zero_f", "product") + Sum("product at1", "p") +
                         Output("p")));
  // The root of a sum of squares and a positive number is no zero. Other roots and quotients may
  // be no numbers at the padding.
  const std::string squares = NodeText("Mul", "y y", "squares") +
                              NodeText("ReduceMean", "squares", "variance", Ints("axes", "2"));
  ExpectSumPadded(Pooled(squares + NodeText("Add", "variance tiny", "more") +
                         NodeText("Sqrt", "more", "root") + NodeText("Div", "y root", "e") + sum));
  ExpectSumRefused(
      Pooled(squares + NodeText("Sqrt", "variance", "root") + NodeText("Div", "y root", "e") + sum),
      mixes);
  ExpectSumRefused(Pooled(NodeText("Sqrt", "y", "e") + sum), mixes);
  ExpectSumRefused(Pooled(NodeText("Log", "y", "e") + sum), mixes);
  ExpectSumRefused(Pooled(NodeText("Div", "one_f y", "e") + sum), mixes);
  // A logit that the network itself hides may be one of the padding.
  ExpectSumRefused(Pooled(NodeText("Greater", "y zero_f", "large") +
                          NodeText("Where", "large y low_f", "e") + sum),
                   mixes);
}

TEST(MaskedSumsTest, AMaskThatIsAlsoUsedOtherwise) {
  const std::string mean = MeanOf(NodeText("Mul", "y wide", "product"));
  ExpectSumRefused(Pooled(mean + NodeText("Add", "y m3", "z") + Output("z")));
  ExpectSumRefused(Pooled(mean + Output("product")), "hides positions, but node 'n_product' (Mul)");
  ExpectSumRefused(Pooled(mean + NodeText("Div", "y m3", "z") + Output("z")));
  ExpectSumRefused(Pooled(mean + NodeText("Sqrt", "product", "z") + Output("z")));
}

// y [2, N, 8] plus a table at the numbers of the positions, from "places" [2, N].
std::string AtPlaces(const std::string& places) {
  std::string table;
  for (int i = 0; i < 20 * 8; ++i) absl::StrAppend(&table, i > 0 ? ", " : "", (i * 5 % 11) / 8.0);
  return absl::StrCat(Initializer("one_i", kTypeI64, "", "int64_data: 1"),
                      Initializer("two_i", kTypeI64, "", "int64_data: 2"),
                      Initializer("zero_i", kTypeI64, "", "int64_data: 0"),
                      Initializer("places_table", kTypeF32, "20, 8", "float_data: [" + table + "]"),
                      NodeText("CumSum", "mask at1", "counted"), places,
                      NodeText("Gather", "places_table places", "at_places"),
                      NodeText("Add", "y at_places", "z"), Output("z"));
}

TEST(MaskedSumsTest, NumbersOfPositions) {
  const std::string before = NodeText("Sub", "counted one_i", "before");
  const std::string hidden = NodeText("Equal", "mask zero_i", "hidden_i");
  ExpectSumPadded(Pooled(AtPlaces(before + NodeText("Clip", "before zero_i", "places"))));
  ExpectSumPadded(Pooled(AtPlaces(before + NodeText("Max", "before zero_i", "places"))));
  ExpectSumPadded(
      Pooled(AtPlaces(before + hidden + NodeText("Where", "hidden_i one_i before", "places"))));
  // As in RoBERTa and OPT.
  ExpectSumPadded(Pooled(AtPlaces(NodeText("Mul", "counted mask", "shown_i") +
                                  NodeText("Add", "shown_i one_i", "places"))));
  ExpectSumPadded(Pooled(AtPlaces(NodeText("Mul", "counted mask", "shown_i") +
                                  NodeText("Sub", "shown_i one_i", "less_i") +
                                  NodeText("Add", "less_i two_i", "places"))));
  // Angles.
  ExpectSumPadded(Pooled(AtPlaces(NodeText("Cast", "counted", "angle", Int("to", kTypeF32)) +
                                  NodeText("Cos", "angle", "cosine") +
                                  NodeText("Unsqueeze", "cosine at_last", "cosine3") +
                                  NodeText("Mul", "y cosine3", "turned") + Output("turned") +
                                  NodeText("Identity", "counted", "places"))));
}

TEST(MaskedSumsTest, OtherCountsAreRefused) {
  ExpectSumRefused(
      Pooled(NodeText("CumSum", "mask at1", "counted", Int("reverse", 1)) + Output("counted")),
      "may mix the samples");
  ExpectSumRefused(Pooled(NodeText("CumSum", "y at1", "z") + Output("z")), "may mix the samples");
  // A count of 0 as a divisor, of what is summed or another output, and one that is summed.
  ExpectSumRefused(
      Pooled(AtPlaces(NodeText("Mul", "counted mask", "places") +
                      NodeText("Cast", "places", "f", Int("to", kTypeF32)) +
                      NodeText("Unsqueeze", "f at_last", "f3") + NodeText("Div", "y f3", "q") +
                      NodeText("Mul", "q m3", "product") + Sum("product at1", "p") + Output("p"))),
      "may mix the samples");
  ExpectSumRefused(Pooled(AtPlaces(NodeText("Identity", "counted", "places") +
                                   NodeText("Cast", "places", "f", Int("to", kTypeF32)) +
                                   NodeText("Reciprocal", "f", "q") + Output("q"))));
  ExpectSumRefused(Pooled(AtPlaces(NodeText("Identity", "counted", "places") +
                                   Sum("counted at1", "p") + Output("p"))),
                   "may mix the samples");
}

}  // namespace
}  // namespace hone::graph
