#include "client/network/graph/input_masks.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "client/network/graph/samples.h"
#include "client/network/onnx/import.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

constexpr int kFloat = 1, kInt32 = 6, kInt64 = 7, kBool = 9;

// The masks if values from 1 to 3 are padded to 4.
absl::StatusOr<std::vector<InputMask>> MasksOf(const std::string& text, int opset = 17) {
  const auto import = [&](int64_t size) {
    return onnx::ImportOnnxBytes(onnx::BytesOf(text, opset), "", {.shapes = {{"N", {size}}}});
  };
  absl::StatusOr<Graph> graph = import(4);
  if (!graph.ok()) return graph.status();
  SampleAxes axes;
  for (const int64_t size : {1, 2, 3}) {
    const absl::StatusOr<Graph> other = import(size);
    if (!other.ok()) return other.status();
    auto compared = CompareSamples(*graph, 4, *other, size);
    if (!compared.ok()) return compared.status();
    axes = *std::move(compared);
  }
  return CheckSamplesAreIndependent(*graph, 4, axes);
}

std::string Scalar(const std::string& name, const std::string& value) {
  return Initializer(name, kFloat, "", "float_data: " + value);
}
std::string Integer(const std::string& name, int value) {
  return Initializer(name, kInt64, "", "int64_data: " + std::to_string(value));
}

template <typename T>
std::string Element(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// Expects that input 1 hides with one element and shows with others.
template <typename T>
void ExpectMask(const std::string& text, T hides, const std::vector<T>& shows, int opset = 17) {
  SCOPED_TRACE(text);
  const auto masks = MasksOf(text, opset);
  ASSERT_THAT(masks, IsOk());
  ASSERT_EQ(masks->size(), 1u);
  EXPECT_EQ(masks->front().input, 1);
  EXPECT_EQ(masks->front().hides, Element(hides));
  std::vector<std::string> elements;
  for (const T each : shows) elements.push_back(Element(each));
  EXPECT_EQ(masks->front().shows, elements);
}

void ExpectRefused(const std::string& text, const std::string& why = "may mix the samples") {
  SCOPED_TRACE(text);
  EXPECT_THAT(MasksOf(text), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why)));
}

const char kLow[] = "-3.4e38";

// `shown`, f32 of the type of the mask, and 1 - shown.
std::string Inverted() {
  return NodeText("Cast", "mask4", "shown", Int("to", kFloat)) + Scalar("one", "1") +
         NodeText("Sub", "one shown", "inverted");
}
std::string MulAndAdd(const std::string& low) {
  return Inverted() + Scalar("low", low) + NodeText("Mul", "inverted low", "added") +
         NodeText("Add", "scores added", "masked");
}

TEST(InputMasksTest, MasksAsExportersWriteThem) {
  ExpectMask<int64_t>(OpenMaskedAttention(), 0, {1});
  ExpectMask<int32_t>(OpenMaskedAttention("", kInt32), 0, {1});
  ExpectMask<float>(OpenMaskedAttention("", kFloat), 0, {1});
  const std::string low = Scalar("low", kLow), zero = Scalar("zero", "0");
  // Expanded to all rows, with the shape of the scores.
  const std::string expanded = NodeText("Shape", "scores", "extents4") +
                               NodeText("Expand", "shown extents4", "wide") +
                               NodeText("Sub", "one wide", "hidden");
  const std::string shown =
      NodeText("Cast", "mask4", "shown", Int("to", kFloat)) + Scalar("one", "1");
  ExpectMask<int64_t>(
      OpenMaskedAttention(shown + expanded + low + NodeText("Mul", "hidden low", "added") +
                          NodeText("Add", "added scores", "masked")),
      0, {1});
  // Filled where it is not 0, which reads the mask twice.
  ExpectMask<int64_t>(OpenMaskedAttention(shown + expanded + low +
                                          NodeText("Cast", "hidden", "fill", Int("to", kBool)) +
                                          NodeText("Where", "fill low hidden", "added") +
                                          NodeText("Add", "scores added", "masked")),
                      0, {1});
  ExpectMask<int64_t>(
      OpenMaskedAttention(Integer("none", 0) + NodeText("Equal", "mask4 none", "fill") + low +
                          zero + NodeText("Where", "fill low zero", "added") +
                          NodeText("Add", "scores added", "masked")),
      0, {1});
  // It selects scores.
  const std::string select = NodeText("Cast", "mask4", "seen", Int("to", kBool)) + low +
                             NodeText("Where", "seen scores low", "masked");
  ExpectMask<int64_t>(OpenMaskedAttention(select), 0, {1});
  ExpectMask<bool>(
      OpenMaskedAttention(low + NodeText("Where", "mask4 scores low", "masked"), kBool), false,
      {true});
}

TEST(InputMasksTest, WhatHidesIsComputed) {
  // True hides.
  ExpectMask<bool>(
      OpenMaskedAttention(Scalar("low", kLow) + NodeText("Where", "mask4 low scores", "masked"),
                          kBool),
      true, {false});
  // An element of -2^62 hides, although one of 0 only adds -10000.
  ExpectMask<int64_t>(OpenMaskedAttention(MulAndAdd("-10000")), -(int64_t{1} << 62), {0, 1});
  ExpectMask<float>(OpenMaskedAttention(MulAndAdd("-10000"), kFloat), -1e30f, {0, 1});
  // What is added is the input itself.
  ExpectMask<float>(OpenMaskedAttention(NodeText("Add", "scores mask4", "masked"), kFloat), -1e30f,
                    {0, 1});
}

TEST(InputMasksTest, ScoresAreScaledBeforeTheMask) {
  const std::string scaled = Scalar("scale", "0.5") + NodeText("Mul", "scores scale", "scaled"),
                    biased = Scalar("bias", "3") + NodeText("Add", "scaled bias", "biased");
  ExpectMask<int64_t>(OpenMaskedAttention(scaled + biased + Inverted() + Scalar("low", kLow) +
                                          NodeText("Mul", "inverted low", "added") +
                                          NodeText("Add", "biased added", "masked")),
                      0, {1});
}

TEST(InputMasksTest, AttentionOfOnnx) {
  const auto attention = [](int type) {
    return onnx::Input("q", kFloat, "1, 2, N, 4") + onnx::Input("mask", type, "1, N") +
           onnx::Input("k", kFloat, "1, 2, N, 4") + onnx::Input("v", kFloat, "1, 2, N, 4") +
           NodeText("Attention", "q k v mask", "y") + onnx::Output("y");
  };
  ExpectMask<bool>(attention(kBool), false, {true}, /*opset=*/23);
  ExpectMask<float>(attention(kFloat), -1e30f, {0, 1}, /*opset=*/23);
}

TEST(InputMasksTest, AttentionOfOnnxRuntime) {
  const auto attention = [](const std::string& attributes) {
    return onnx::Input("q", kFloat, "2, N, 4") + onnx::Input("mask", kInt32, "2, N") +
           onnx::Input("k", kFloat, "2, N, 4") + onnx::Input("v", kFloat, "2, N, 4") +
           NodeText("MultiHeadAttention", "q k v _ mask", "y",
                    "domain: 'com.microsoft' " + Int("num_heads", 2) + attributes) +
           onnx::Output("y");
  };
  ExpectMask<int32_t>(attention(onnx::Float("mask_filter_value", -3e38)), 0, {1});
  ExpectRefused(attention(""));
  ExpectRefused(attention(onnx::Float("mask_filter_value", -3e38) + Int("unidirectional", 1)),
                "depends on the size");
}

TEST(InputMasksTest, MasksThatDoNotHideForSureAreRefused) {
  // Whole numbers of 32 bits are not low enough.
  ExpectRefused(
      OpenMaskedAttention(MulAndAdd("-10000"), kInt32),
      "node 'n_masked' (Add) may mix the samples; it is not proven that its mask, which is "
      "computed from input 'mask', hides the padding");
  ExpectRefused(OpenMaskedAttention(MulAndAdd("0")));
  ExpectRefused(OpenMaskedAttention(MulAndAdd("3e38")));
  // The shown ones are hidden, too.
  ExpectRefused(OpenMaskedAttention(Inverted() + Scalar("low", kLow) + Scalar("all", "-1e30") +
                                    NodeText("Mul", "inverted low", "weak") +
                                    NodeText("Add", "weak all", "added") +
                                    NodeText("Add", "scores added", "masked")));
}

TEST(InputMasksTest, OtherUsesAreRefused) {
  const std::string shown = NodeText("Cast", "mask4", "shown", Int("to", kFloat));
  ExpectRefused(OpenMaskedAttention(shown + NodeText("Mul", "scores shown", "masked")));
  ExpectRefused(OpenMaskedAttention(shown + NodeText("Sub", "scores shown", "masked")));
  ExpectRefused(OpenMaskedAttention(shown + NodeText("Add", "scores shown", "masked")));
  // Each row by its own position, and each position by that behind it.
  const std::string turned = onnx::Ints("perm", "0, 1, 3, 2");
  ExpectRefused(OpenMaskedAttention(Inverted() + Scalar("low", kLow) +
                                    NodeText("Mul", "inverted low", "column") +
                                    NodeText("Transpose", "column", "added", turned) +
                                    NodeText("Add", "scores added", "masked")));
  ExpectRefused(OpenMaskedAttention(Inverted() + Scalar("low", kLow) +
                                    NodeText("Mul", "inverted low", "column") +
                                    Initializer("last", kInt64, "1", "int64_data: [-1]") +
                                    Initializer("begin", kInt64, "1", "int64_data: [-1000]") +
                                    Initializer("third", kInt64, "1", "int64_data: [3]") +
                                    NodeText("Slice", "column last begin third last", "added") +
                                    NodeText("Add", "scores added", "masked")));
  // Rows and columns.
  ExpectRefused(OpenMaskedAttention(shown + NodeText("Transpose", "shown", "by_row", turned) +
                                    NodeText("Mul", "by_row shown", "both") + Scalar("one", "1") +
                                    NodeText("Sub", "one both", "hidden") + Scalar("low", kLow) +
                                    NodeText("Mul", "hidden low", "added") +
                                    NodeText("Add", "scores added", "masked")));
  // The mask also changes values.
  ExpectRefused(OpenMaskedAttention("", kInt64,
                                    Initializer("last", kInt64, "1", "int64_data: [2]") +
                                        NodeText("Cast", "mask", "m", Int("to", kFloat)) +
                                        NodeText("Unsqueeze", "m last", "m3") +
                                        NodeText("Mul", "y m3", "z") + onnx::Output("z")),
                "input 'mask' hides positions, but node 'n_z' (Mul) reads it in another way");
}

// What another mask hides may be all that this one shows.
TEST(InputMasksTest, SecondMasksAreRefused) {
  std::string hidden;
  for (int i = 0; i < 16; ++i) hidden += i > 0 ? ", -1e30" : "-1e30";
  const std::string half = Initializer("window", kFloat, "16", "float_data: [" + hidden + "]") +
                           NodeText("Slice", "window from n", "part");
  const auto before = [&](const std::string& nodes) {
    return OpenMaskedAttention(nodes + Inverted() + Scalar("low", kLow) +
                               NodeText("Mul", "inverted low", "added") +
                               NodeText("Add", "before added", "masked"));
  };
  ExpectRefused(before(half + NodeText("Add", "scores part", "before")));
  ExpectRefused(before(Scalar("much", "-1e29") + NodeText("Add", "scores much", "before")));
  ExpectRefused(before(Scalar("much", "1e29") + NodeText("Mul", "scores much", "before")));
  ExpectRefused(before(Scalar("little", "1e-29") + NodeText("Div", "scores little", "before")));
  ExpectRefused(before(Scalar("five", "5") + NodeText("Div", "five scores", "before")));
  EXPECT_THAT(MasksOf(before(Scalar("little", "5") + NodeText("Div", "scores little", "before"))),
              IsOk());
  // After it.
  ExpectRefused(OpenMaskedAttention(
      Inverted() + Scalar("low", kLow) + half + NodeText("Mul", "inverted low", "added") +
      NodeText("Add", "scores added", "seen") + NodeText("Add", "seen part", "masked")));
  // Only after the softmax, when the hidden ones had shares.
  EXPECT_FALSE(MasksOf(OpenMaskedAttention(NodeText("Identity", "scores", "masked"))).ok());
}

TEST(InputMasksTest, ThePoolerReadsTheFirstToken) {
  const std::string first = Initializer("at", kInt64, "", "int64_data: 0") +
                            NodeText("Gather", "y at", "p", Int("axis", 1)) +
                            NodeText("Tanh", "p", "pooled") + onnx::Output("pooled");
  EXPECT_THAT(MasksOf(OpenMaskedAttention("", kInt64, first)), IsOk());
}

TEST(InputMasksTest, AMeanOverTheSequenceIsRefused) {
  ExpectRefused(OpenMaskedAttention(
      "", kInt64,
      NodeText("ReduceMean", "y", "mean", onnx::Ints("axes", "1")) + onnx::Output("mean")));
}

}  // namespace
}  // namespace hone::graph
