#include "tests/client/network/onnx/open_models.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tests/client/network/onnx/model_text.h"

namespace hone::onnx {
namespace {

constexpr int kOpenFloat = 1, kOpenInt64 = 7;

std::string Weights(const std::string& name, const std::string& shape, int64_t elements) {
  std::string list;
  for (int64_t i = 0; i < elements; ++i) {
    const auto number = static_cast<int64_t>(name.size() + name.back());
    absl::StrAppend(&list, i == 0 ? "" : ", ", static_cast<double>((i * 7 + number) % 9 - 4) / 8);
  }
  return Initializer(name, kOpenFloat, shape, absl::StrCat("float_data: [", list, "]"));
}

std::string Numbers(const std::string& name, const std::string& values, int count) {
  return Initializer(name, kOpenInt64, absl::StrCat(count),
                     absl::StrCat("int64_data: [", values, "]"));
}

}  // namespace

std::string OpenMlp() {
  return absl::StrCat(Input("x", kOpenFloat, "N, 6"), Weights("w1", "6, 16", 96),
                      Weights("b1", "16", 16), Weights("w2", "16, 5", 80),
                      NodeText("MatMul", "x w1", "p"), NodeText("Add", "p b1", "q"),
                      NodeText("Relu", "q", "h"), NodeText("MatMul", "h w2", "s"),
                      NodeText("Softmax", "s", "y", Int("axis", 1)), Output("y"), Output("h"));
}

std::string OpenConvolutions() {
  return absl::StrCat(
      Input("x", kOpenFloat, "N, 3, 8, 8"), Weights("w1", "8, 3, 3, 3", 216), Weights("b1", "8", 8),
      Weights("w2", "8, 8, 3, 3", 576), Weights("w3", "32, 5", 160), Numbers("zero", "0", 1),
      Numbers("rest", "-1", 1), NodeText("Conv", "x w1 b1", "c1", Ints("pads", "1, 1, 1, 1")),
      NodeText("Relu", "c1", "r1"),
      NodeText("MaxPool", "r1", "m1",
               absl::StrCat(Ints("kernel_shape", "2, 2"), Ints("strides", "2, 2"))),
      NodeText("Conv", "m1 w2", "c2", Ints("pads", "1, 1, 1, 1")), NodeText("Relu", "c2", "r2"),
      NodeText("AveragePool", "r2", "m2",
               absl::StrCat(Ints("kernel_shape", "2, 2"), Ints("strides", "2, 2"))),
      NodeText("Shape", "x", "extents"), NodeText("Gather", "extents zero", "batch"),
      NodeText("Concat", "batch rest", "flat", Int("axis", 0)), NodeText("Reshape", "m2 flat", "f"),
      NodeText("MatMul", "f w3", "y"), Output("y"));
}

namespace {

// The attention of OpenAttention over "x". `mask`: nodes that compute "masked" from "scores"; "":
// there is none.
std::string AttentionOver(const std::string& mask) {
  std::string text = absl::StrCat(
      Weights("wq", "8, 8", 64), Weights("wk", "8, 8", 64), Weights("wv", "8, 8", 64),
      Numbers("two", "0, 1", 2), Numbers("heads", "2, 4", 2), Numbers("joined", "8", 1),
      NodeText("Shape", "x", "extents"), NodeText("Gather", "extents two", "rows"),
      NodeText("Concat", "rows heads", "divided", Int("axis", 0)),
      NodeText("Concat", "rows joined", "whole", Int("axis", 0)));
  for (const char* const name : {"q", "k", "v"}) {
    absl::StrAppend(&text, NodeText("MatMul", absl::StrCat("x w", name), absl::StrCat(name, 1)),
                    NodeText("Reshape", absl::StrCat(name, "1 divided"), absl::StrCat(name, 2)),
                    NodeText("Transpose", absl::StrCat(name, 2), absl::StrCat(name, 3),
                             Ints("perm", name[0] == 'k' ? "0, 2, 3, 1" : "0, 2, 1, 3")));
  }
  return absl::StrCat(
      text, NodeText("MatMul", "q3 k3", "scores"), mask,
      NodeText("Softmax", mask.empty() ? "scores" : "masked", "shares", Int("axis", 3)),
      NodeText("MatMul", "shares v3", "mixed"),
      NodeText("Transpose", "mixed", "rowwise", Ints("perm", "0, 2, 1, 3")),
      NodeText("Reshape", "rowwise whole", "attended"), NodeText("Add", "attended x", "y"),
      Output("y"));
}

}  // namespace

std::string OpenAttention(const std::string& sequence) {
  return Input("x", kOpenFloat, absl::StrCat("N, ", sequence, ", 8")) + AttentionOver("");
}

std::string OpenCausalAttention(const std::string& mask) {
  std::string hidden;
  for (int i = 0; i < 16 * 16; ++i) absl::StrAppend(&hidden, i > 0 ? ", " : "", i % 16 > i / 16);
  const std::string where = absl::StrCat(Initializer("low", kOpenFloat, "", "float_data: -3e38"),
                                         NodeText("Where", "hidden low scores", "masked"));
  return absl::StrCat(
      Input("x0", kOpenFloat, "1, N, 8"), Weights("positions", "1, 16, 8", 128),
      Initializer("behind", /*bool*/ 9, "16, 16", absl::StrCat("int32_data: [", hidden, "]")),
      Numbers("from", "0", 1), Numbers("from2", "0, 0", 2), Numbers("first", "1", 1),
      NodeText("Shape", "x0", "lengths"), NodeText("Gather", "lengths first", "n"),
      NodeText("Concat", "n n", "n2", Int("axis", 0)),
      NodeText("Slice", "positions from n first", "some"), NodeText("Add", "x0 some", "x"),
      NodeText("Slice", "behind from2 n2", "hidden"), AttentionOver(mask.empty() ? where : mask));
}

std::string OpenMaskedAttention(const std::string& masked, int type, const std::string& more) {
  const auto number = [](const std::string& name, const std::string& value) {
    return Initializer(name, kOpenFloat, "", "float_data: " + value);
  };
  const std::string added = absl::StrCat(
      NodeText("Cast", "mask4", "shown", Int("to", kOpenFloat)), number("one", "1"),
      number("lowest", "-3e38"), NodeText("Sub", "one shown", "hidden"),
      NodeText("Mul", "hidden lowest", "added"), NodeText("Add", "scores added", "masked"));
  return absl::StrCat(
      Input("ids", kOpenInt64, "2, N"), Input("mask", type, "2, N"), Weights("table", "10, 8", 80),
      Weights("positions", "1, 16, 8", 128), Numbers("from", "0", 1), Numbers("first", "1", 1),
      Numbers("mask_axes", "1, 2", 2), NodeText("Unsqueeze", "mask mask_axes", "mask4"),
      NodeText("Shape", "ids", "lengths"), NodeText("Gather", "lengths first", "n"),
      NodeText("Slice", "positions from n first", "some"),
      NodeText("Gather", "table ids", "tokens"), NodeText("Add", "tokens some", "x"),
      AttentionOver(masked.empty() ? added : masked), more);
}

}  // namespace hone::onnx
