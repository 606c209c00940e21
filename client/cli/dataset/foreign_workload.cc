#include "client/cli/dataset/foreign_workload.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"

namespace hone::cli {
namespace {

using nlohmann::json;

std::string Operator(absl::string_view name, std::vector<std::string> words) {
  const absl::StatusOr<ir::Workload> workload = op::BuildWorkload(name, words);
  return workload.ok() ? workload->ToText() : "";
}

std::string Parsed(const std::string& text) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(text);
  return workload.ok() ? workload->ToText() : "";
}

std::string Key(absl::string_view key, int64_t value) { return absl::StrCat(key, "=", value); }

// The numbers of a list, or of one number; nullopt if there are others.
std::optional<std::vector<int64_t>> Numbers(const json& value) {
  std::vector<int64_t> numbers;
  if (value.is_number_integer()) return {{value.get<int64_t>()}};
  if (!value.is_array()) return std::nullopt;
  for (const json& each : value) {
    if (!each.is_number_integer()) return std::nullopt;
    numbers.push_back(each.get<int64_t>());
  }
  return numbers;
}

// One value for h and one for w: n, [n] or [h, w]; nullopt for anything else.
std::optional<std::pair<int64_t, int64_t>> Pair(const json& value) {
  const auto numbers = Numbers(value);
  if (!numbers || numbers->empty() || numbers->size() > 2) return std::nullopt;
  return {{numbers->front(), numbers->back()}};
}

// The same for padding, which may be [top, left, bottom, right] if it is symmetric.
std::optional<std::pair<int64_t, int64_t>> Padding(const json& value) {
  const auto numbers = Numbers(value);
  if (!numbers || numbers->size() != 4) return Pair(value);
  if ((*numbers)[0] != (*numbers)[2] || (*numbers)[1] != (*numbers)[3]) return std::nullopt;
  return {{(*numbers)[0], (*numbers)[1]}};
}

struct Convolution {
  int64_t n, h, w, ci, co, kh, kw;
};

// The words of `conv2d` and its kin; nullopt if strides, padding or dilation are not understood.
std::optional<std::vector<std::string>> ConvolutionWords(const Convolution& conv,
                                                         const json& strides, const json& padding,
                                                         const json& dilation) {
  const auto stride = Pair(strides), pad = Padding(padding), dilated = Pair(dilation);
  if (!stride || !pad || !dilated || dilated->first != dilated->second) return std::nullopt;
  return {{Key("n", conv.n), Key("h", conv.h), Key("w", conv.w), Key("k", conv.kh),
           Key("kw", conv.kw), Key("sh", stride->first), Key("sw", stride->second),
           Key("ph", pad->first), Key("pw", pad->second), Key("dil", dilated->first)}};
}

std::string ConvolutionText(absl::string_view name, const Convolution& conv, int64_t groups,
                            const json& strides, const json& padding, const json& dilation) {
  auto words = ConvolutionWords(conv, strides, padding, dilation);
  if (!words) return "";
  words->insert(words->end(), {Key("ci", conv.ci), Key("co", conv.co), Key("groups", groups)});
  return Operator(name, *std::move(words));
}

// All numbers of the arguments: shapes one after the other, or as lists. Empty if there are others.
std::vector<int64_t> Flattened(const json& arguments) {
  std::vector<int64_t> sizes;
  for (const json& each : arguments) {
    const auto numbers = Numbers(each);
    if (!numbers) return {};
    sizes.insert(sizes.end(), numbers->begin(), numbers->end());
  }
  return sizes;
}

// TVM's tutorials: matmul_add(N, L, M, dtype) is A[N, L] x B[L, M] + C[N, M].
ForeignWorkload MatmulAdd(const json& a) {
  if (a.size() != 4 || a[3] != "float32") return {};
  const std::vector<int64_t> sizes = Flattened(json(a.begin(), a.begin() + 3));
  if (sizes.size() != 3) return {};
  return {.text = Parsed(absl::StrReplaceAll(
              "workload matmul_add\ninput A: f32[{n}, {l}]\ninput B: f32[{l}, {m}]\n"
              "input C: f32[{n}, {m}]\nProduct[i: {n}, j: {m}] = sum(k: {l}) A[i, k] * B[k, j]\n"
              "output Y[i: {n}, j: {m}] = Product[i, j] + C[i, j]\n",
              {{"{n}", absl::StrCat(sizes[0])},
               {"{l}", absl::StrCat(sizes[1])},
               {"{m}", absl::StrCat(sizes[2])}})),
          .stages = {"A", "B", "Product", "C", "Y"}};
}

// TVM's tests: matmul_auto_scheduler_test(N, M, K) is A[N, K] x B[K, M].
ForeignWorkload Matmul(const json& a) {
  const std::vector<int64_t> sizes = Flattened(a);
  if (sizes.size() != 3) return {};
  return {.text = Operator("matmul", {Key("m", sizes[0]), Key("n", sizes[1]), Key("k", sizes[2])}),
          .stages = {"A", "B", "C"}};
}

// TVM's tutorials: conv2d_layer(N, H, W, CO, CI, KH, KW, strides, padding) is
// max(conv2d_nchw + bias, 0).
ForeignWorkload Conv2dLayer(const json& a) {
  if (a.size() != 9) return {};
  const std::vector<int64_t> s = Flattened(json(a.begin(), a.begin() + 7));
  if (s.size() != 7) return {};
  const Convolution conv = {s[0], s[1], s[2], s[4], s[3], s[5], s[6]};
  const std::string text = ConvolutionText("conv2d_nchw", conv, 1, a[7], a[8], 1);
  const size_t output = text.find("output Y["), equals = text.find(" =", output);
  if (text.empty() || output == std::string::npos || equals == std::string::npos) return {};
  const std::string axes = text.substr(output + 8, equals - output - 8);  // [n: …, w: …]
  return {.text = Parsed(
              absl::StrCat(absl::StrReplaceAll(text.substr(0, output),
                                               {{"workload conv2d_nchw", "workload conv2d_layer"}}),
                           "input Bias: f32[", conv.co, "] constant\nConv", text.substr(output + 8),
                           "\noutput Y", axes, " = max(Conv[n, co, h, w] + Bias[co], 0)\n")),
          .stages = {"X", "", "W", "Conv", "Bias", "", "Y"}};
}

// The shapes of X and Y.
ForeignWorkload Softmax(const json& a) {
  const std::vector<int64_t> sizes = Flattened(a);
  if (sizes.size() == 4 && (sizes[0] != sizes[2] || sizes[1] != sizes[3])) return {};
  if (sizes.size() != 2 && sizes.size() != 4) return {};
  return {.text = Operator("softmax", {Key("m", sizes[0]), Key("n", sizes[1])}),
          .stages = {"X", "Max", "Exp", "Sum", "Y"},
          .free_layout = ""};
}

// The shapes of X[n, 7, 7, c] and Y[n, 1, 1, c].
ForeignWorkload AveragePool7x7(const json& a) {
  const std::vector<int64_t> s = Flattened(a);
  if (s.size() != 8 || s != std::vector<int64_t>{s[0], 7, 7, s[3], s[0], 1, 1, s[3]}) return {};
  const std::string axes = absl::StrCat("[n: ", s[0], ", h: 1, w: 1, c: ", s[3], "]");
  return {.text = Parsed(absl::StrCat("workload avg_pool2d\ninput X: f32[", s[0], ", 7, 7, ", s[3],
                                      "]\nSum", axes,
                                      " = sum(r: 7, s: 7) X[n, 7*h + r, 7*w + s, c]\noutput Y",
                                      axes, " = Sum[n, h, w, c] / 49.0\n")),
          .stages = {"X", "Sum", "Y"},
          .free_layout = ""};
}

// The shapes of X[m, k], W[n, k], B[m, n] and Y[m, n].
ForeignWorkload DenseAdd(const json& a) {
  const std::vector<int64_t> s = Flattened(a);
  if (s.size() != 8 || s != std::vector<int64_t>{s[0], s[1], s[2], s[1], s[0], s[2], s[0], s[2]})
    return {};
  return {
      .text = Parsed(absl::StrReplaceAll(
          "workload dense_add\ninput X: f32[{m}, {k}]\ninput W: f32[{n}, {k}] constant\n"
          "input B: f32[{m}, {n}]\n"
          "Product[i: {m}, j: {n}] = sum(k: {k}) X[i, k] * W[j, k]\n"
          "output Y[i: {m}, j: {n}] = Product[i, j] + B[i, j]\n",
          {{"{m}", absl::StrCat(s[0])}, {"{n}", absl::StrCat(s[2])}, {"{k}", absl::StrCat(s[1])}})),
      .stages = {"X", "W", "Product", "B", "Y"},
      .free_layout = "W"};
}

// A convolution in NHWC without padding, and then element-wise stages: r adds a tensor, b a bias, m
// multiplies by a factor for each channel, x is ReLU. The arguments are the shapes of the inputs in
// this order, and of the output.
ForeignWorkload UnpaddedConvolution(const json& a, int64_t stride, absl::string_view then) {
  std::vector<int64_t> s = Flattened(a);
  if (s.size() < 12) return {};
  const Convolution conv = {s[0], s[1], s[2], s[3], s[7], s[4], s[5]};
  const std::vector<int64_t> out(s.end() - 4, s.end());
  std::vector<int64_t> expected = {s[0], s[1], s[2], s[3], s[4], s[5], s[3], s[7]};
  ForeignWorkload result{.stages = {"X", "X", "W", then.empty() ? "Y" : "Conv"},
                         .free_layout = "W"};
  std::string inputs, stages, previous = "Conv";
  const std::string axes =
      absl::StrCat("[n: ", out[0], ", h: ", out[1], ", w: ", out[2], ", co: ", out[3], "] = ");
  for (size_t i = 0; i < then.size(); ++i) {
    const std::string input = absl::StrCat("B", i);
    const std::string read = absl::StrCat(previous, "[n, h, w, co]");
    std::string value = absl::StrCat("max(", read, ", 0)");
    if (then[i] == 'r') {
      absl::StrAppend(&inputs, "input ", input, ": f32[", absl::StrJoin(out, ", "), "]\n");
      expected.insert(expected.end(), out.begin(), out.end());
      value = absl::StrCat(read, " + ", input, "[n, h, w, co]");
    } else if (then[i] != 'x') {
      absl::StrAppend(&inputs, "input ", input, ": f32[", out[3], "] constant\n");
      expected.insert(expected.end(), {1, 1, 1, out[3]});
      value = absl::StrCat(read, then[i] == 'm' ? " * " : " + ", input, "[co]");
    }
    if (then[i] != 'x') result.stages.push_back(input);
    const bool is_last = i + 1 == then.size();
    previous = is_last ? "Y" : absl::StrCat("S", i);
    result.stages.push_back(previous);
    absl::StrAppend(&stages, is_last ? "output " : "", previous, axes, value, "\n");
  }
  expected.insert(expected.end(), out.begin(), out.end());
  const std::string text = ConvolutionText("conv2d", conv, 1, stride, 0, 1);
  const size_t output = text.find("output Y[");
  // The shape of the output is that of a convolution without padding.
  if (s != expected || output == std::string::npos ||
      text.compare(output + 8, axes.size(), axes) != 0) {
    return {};
  }
  result.text =
      then.empty() ? text
                   : Parsed(absl::StrCat(
                         absl::StrReplaceAll(text.substr(0, output),
                                             {{"workload conv2d\n", "workload conv2d_elements\n"}}),
                         inputs, "Conv", text.substr(output + 8), "\n", stages));
  return result;
}

template <int64_t kStride, char... kThen>
ForeignWorkload Unpadded(const json& arguments) {
  constexpr char kText[] = {kThen..., '\0'};
  return UnpaddedConvolution(arguments, kStride, kText);
}

struct AnsorWorkload {
  const char* name;
  ForeignWorkload (*build)(const json& arguments);
};
// The hashes are those of the texts in tests/client/cli/dataset/foreign_workload_test.cc. Versions
// of TVM name tensors differently.
constexpr AnsorWorkload kAnsorWorkloads[] = {
    {"conv2d_layer", Conv2dLayer},
    {"matmul_add", MatmulAdd},
    {"matmul_auto_scheduler_test", Matmul},
    {"softmax_nm_auto_scheduler_test", Softmax},
    {"d7b65649a4dd54becea0a52aabbc5af5", Softmax},
    {"7d79c516e212fe1d73f5dbb90eaca2cf", Softmax},
    {"69115f188984ae34ede37c3b8ca40b43", AveragePool7x7},
    {"be3babb9a46e32f66b717a3e2a2d522c", AveragePool7x7},
    {"00a059b856ac30ac172b6252254479a6", DenseAdd},
    {"7006235cfc29b73be524cf390ed5a977", Unpadded<1>},
    {"8654f16aeddf785bad9f028164b3a48d", Unpadded<1>},
    {"2d10de6646307f0e3e5cf4b31c20e69b", Unpadded<1>},
    {"f4380bb1dc62422a69ad4a1a9771f927", Unpadded<2>},
    {"0fad1b42d0d33418e0a8d15d3bbad3c9", Unpadded<2>},
    {"1cc666833c122282e3fcf3595901b12b", Unpadded<1, 'r'>},
    {"6b7583cf23c7c37d3212cad9d06e58c1", Unpadded<1, 'b', 'x'>},
    {"de7d1695278cf52778b038e6573d7626", Unpadded<2, 'b', 'x'>},
    {"1b524af89dd867d26059e1f621cf987c", Unpadded<1, 'r', 'b', 'x'>},
    {"875556d12d0be2269206a7775d5296a6", Unpadded<1, 'r', 'm', 'b', 'x'>},
};

// The shape of ["TENSOR", shape, "float32"].
std::optional<std::vector<int64_t>> TensorShape(const json& arguments, size_t index) {
  if (index >= arguments.size()) return std::nullopt;
  const json& tensor = arguments[index];
  if (!tensor.is_array() || tensor.size() != 3 || tensor[0] != "TENSOR" || tensor[2] != "float32")
    return std::nullopt;
  return Numbers(tensor[1]);
}

// Arguments: data, kernel, strides, padding, dilation, …
std::string AutoTvmConvolution(const json& arguments, bool channels_last, bool depthwise) {
  const auto x = TensorShape(arguments, 0), w = TensorShape(arguments, 1);
  if (!x || !w || x->size() != 4 || w->size() != 4 || arguments.size() < 5) return "";
  const auto at = [](const std::vector<int64_t>& of, int index) { return of[index]; };
  Convolution conv{};
  conv.n = at(*x, 0);
  if (channels_last) {
    conv = {at(*x, 0), at(*x, 1), at(*x, 2), at(*x, 3), at(*w, 3), at(*w, 0), at(*w, 1)};
  } else {
    conv = {at(*x, 0), at(*x, 2), at(*x, 3), at(*x, 1), at(*w, 0), at(*w, 2), at(*w, 3)};
  }
  const int64_t reads = channels_last ? at(*w, 2) : at(*w, 1);  // channels, or the multiplier
  if (!depthwise) {
    return reads != conv.ci ? ""
                            : ConvolutionText(channels_last ? "conv2d" : "conv2d_nchw", conv, 1,
                                              arguments[2], arguments[3], arguments[4]);
  }
  if (channels_last) {
    if (reads != conv.ci || at(*w, 3) != 1) return "";
    auto words = ConvolutionWords(conv, arguments[2], arguments[3], arguments[4]);
    if (!words) return "";
    words->push_back(Key("c", conv.ci));
    return Operator("depthwise_conv2d", *std::move(words));
  }
  if (conv.co != conv.ci || reads != 1) return "";
  return ConvolutionText("conv2d_nchw", conv, conv.ci, arguments[2], arguments[3], arguments[4]);
}

// X[m, k] and the transposed weights W[n, k]; with a batch, the same for each of its elements.
std::string AutoTvmProduct(const json& arguments, bool batched) {
  const auto x = TensorShape(arguments, 0), w = TensorShape(arguments, 1);
  const size_t dims = batched ? 3 : 2;
  if (!x || !w || x->size() != dims || w->size() != dims || x->back() != w->back()) return "";
  if (batched && x->front() != w->front()) return "";
  // A bias, and flags of other transpositions, make it another operator.
  for (size_t i = 2; i < arguments.size(); ++i) {
    const bool is_flag = arguments[i].is_boolean();
    if (is_flag && arguments[i].get<bool>() != (i + 1 == arguments.size())) return "";
    if (arguments[i].is_array() && !arguments[i].empty() && arguments[i][0] == "TENSOR") return "";
  }
  return Parsed(absl::StrReplaceAll(
      batched ? "workload batch_matmul_nt\ninput A: f32[{b}, {m}, {k}]\n"
                "input B: f32[{b}, {n}, {k}]\n"
                "output C[b: {b}, i: {m}, j: {n}] = sum(k: {k}) A[b, i, k] * B[b, j, k]\n"
              : "workload dense_nt\ninput X: f32[{m}, {k}]\ninput W: f32[{n}, {k}] constant\n"
                "output Y[i: {m}, j: {n}] = sum(k: {k}) X[i, k] * W[j, k]\n",
      {{"{b}", absl::StrCat(x->front())},
       {"{m}", absl::StrCat((*x)[dims - 2])},
       {"{n}", absl::StrCat((*w)[dims - 2])},
       {"{k}", absl::StrCat(x->back())}}));
}

}  // namespace

absl::StatusOr<ForeignWorkload> WorkloadOfAnsor(const std::string& key) {
  const json list = json::parse(key, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array() || list.empty() || !list[0].is_string())
    return absl::InvalidArgumentError("the workload key is not a list with a name");
  for (const AnsorWorkload& known : kAnsorWorkloads) {
    if (list[0] != known.name) continue;
    ForeignWorkload workload = known.build(json(list.begin() + 1, list.end()));
    return workload.text.empty() ? ForeignWorkload{} : workload;
  }
  return ForeignWorkload{};
}

std::string WorkloadOfAutoTvm(const std::string& task, const json& arguments) {
  const std::string name = task.substr(0, task.find('.'));
  struct Task {
    const char* name;
    bool channels_last, depthwise;
  };
  constexpr Task kConvolutions[] = {
      {"conv2d_NCHWc", false, false},
      {"conv2d_nchw", false, false},
      {"conv2d_nchw_spatial_pack", false, false},
      {"conv2d_nchw_winograd", false, false},
      {"conv2d_nhwc", true, false},
      {"conv2d_nhwc_spatial_pack", true, false},
      {"depthwise_conv2d_NCHWc", false, true},
      {"depthwise_conv2d_nchw", false, true},
      {"depthwise_conv2d_nchw_spatial_pack", false, true},
      {"depthwise_conv2d_nhwc", true, true},
  };
  for (const Task& each : kConvolutions) {
    if (name == each.name) return AutoTvmConvolution(arguments, each.channels_last, each.depthwise);
  }
  if (name == "dense" || name == "dense_nopack" || name == "dense_pack")
    return AutoTvmProduct(arguments, /*batched=*/false);
  return name == "batch_matmul" ? AutoTvmProduct(arguments, /*batched=*/true) : "";
}

}  // namespace hone::cli
