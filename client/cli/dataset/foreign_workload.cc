#include "client/cli/dataset/foreign_workload.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

// TVM's tutorials: matmul_add(N, L, M, dtype) is A[N, L] x B[L, M] + C[N, M].
std::string MatmulAdd(const json& a) {
  if (a.size() != 4 || a[3] != "float32") return "";
  const auto sizes = Numbers(json::array({a[0], a[1], a[2]}));
  if (!sizes) return "";
  return Parsed(absl::StrReplaceAll(
      "workload matmul_add\ninput A: f32[{n}, {l}]\ninput B: f32[{l}, {m}]\n"
      "input C: f32[{n}, {m}]\nProduct[i: {n}, j: {m}] = sum(k: {l}) A[i, k] * B[k, j]\n"
      "output Y[i: {n}, j: {m}] = Product[i, j] + C[i, j]\n",
      {{"{n}", absl::StrCat((*sizes)[0])},
       {"{l}", absl::StrCat((*sizes)[1])},
       {"{m}", absl::StrCat((*sizes)[2])}}));
}

// TVM's tests: matmul_auto_scheduler_test(N, M, K) is A[N, K] x B[K, M].
std::string Matmul(const json& a) {
  const auto sizes = Numbers(a);
  if (!sizes || sizes->size() != 3) return "";
  return Operator("matmul", {Key("m", (*sizes)[0]), Key("n", (*sizes)[1]), Key("k", (*sizes)[2])});
}

// TVM's tutorials: conv2d_layer(N, H, W, CO, CI, KH, KW, strides, padding) is
// max(conv2d_nchw + bias, 0).
std::string Conv2dLayer(const json& a) {
  if (a.size() != 9) return "";
  const auto sizes = Numbers(json(a.begin(), a.begin() + 7));
  if (!sizes) return "";
  const std::vector<int64_t>& s = *sizes;
  const Convolution conv = {s[0], s[1], s[2], s[4], s[3], s[5], s[6]};
  const std::string text = ConvolutionText("conv2d_nchw", conv, 1, a[7], a[8], 1);
  const size_t output = text.find("output Y["), equals = text.find(" =", output);
  if (text.empty() || output == std::string::npos || equals == std::string::npos) return "";
  const std::string axes = text.substr(output + 8, equals - output - 8);  // [n: …, w: …]
  return Parsed(
      absl::StrCat(absl::StrReplaceAll(text.substr(0, output),
                                       {{"workload conv2d_nchw", "workload conv2d_layer"}}),
                   "input Bias: f32[", conv.co, "] constant\nConv", text.substr(output + 8),
                   "\noutput Y", axes, " = max(Conv[n, co, h, w] + Bias[co], 0)\n"));
}

// The shapes of X and Y, one after the other or as two lists.
std::string Softmax(const json& a) {
  std::vector<int64_t> sizes;
  for (const json& each : a) {
    const auto numbers = Numbers(each);
    if (!numbers) return "";
    sizes.insert(sizes.end(), numbers->begin(), numbers->end());
  }
  if (sizes.size() == 4 && (sizes[0] != sizes[2] || sizes[1] != sizes[3])) return "";
  if (sizes.size() != 2 && sizes.size() != 4) return "";
  return Operator("softmax", {Key("m", sizes[0]), Key("n", sizes[1])});
}

struct AnsorWorkload {
  const char* name;
  std::string (*text)(const json& arguments);
};
constexpr AnsorWorkload kAnsorWorkloads[] = {
    {"conv2d_layer", Conv2dLayer},
    {"matmul_add", MatmulAdd},
    {"matmul_auto_scheduler_test", Matmul},
    {"softmax_nm_auto_scheduler_test", Softmax},
    {"d7b65649a4dd54becea0a52aabbc5af5", Softmax},
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

absl::StatusOr<std::string> WorkloadOfAnsor(const std::string& key) {
  const json list = json::parse(key, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array() || list.empty() || !list[0].is_string())
    return absl::InvalidArgumentError("the workload key is not a list with a name");
  for (const AnsorWorkload& known : kAnsorWorkloads) {
    if (list[0] == known.name) return known.text(json(list.begin() + 1, list.end()));
  }
  return "";
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
