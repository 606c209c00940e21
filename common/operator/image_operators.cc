#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "common/operator/library.h"

namespace hone::op {
namespace {

// What distinguishes the keys of a dimension: "kh", but "k" if it is the only one.
std::string Suffix(absl::string_view dimensions, char dimension) {
  return dimensions.size() == 1 ? "" : std::string(1, dimension);
}

// The keys of an operator whose windows slide along dimensions such as "hw": n, the dimensions, the
// channels, k, s, p, `more`, and with several dimensions kh, kw, sh, sw, ph and pw, which default
// to k, s and p.
std::vector<KeyInfo> WindowKeys(absl::string_view dimensions,
                                std::initializer_list<KeyInfo> channels,
                                std::initializer_list<KeyInfo> more,
                                bool stride_is_kernel = false) {
  std::vector<KeyInfo> keys = {{"n", "batch"}};
  for (const char d : dimensions) {
    keys.push_back({std::string(1, d), d == 'h'   ? "input height"
                                       : d == 'w' ? "input width"
                                       : d == 'd' ? "input depth"
                                                  : "input length"});
  }
  keys.insert(keys.end(), channels);
  const bool one = dimensions.size() == 1;
  const std::string each = one ? "" : " in every dimension";
  KeyInfo stride = {"s", absl::StrCat("stride", each), 1};
  if (stride_is_kernel) stride = {.name = "s", .meaning = stride.meaning, .default_key = "k"};
  keys.insert(keys.end(), {{"k", absl::StrCat("kernel extent", each)},
                           stride,
                           {"p", absl::StrCat("padding on each side", each), 0, 0}});
  keys.insert(keys.end(), more);
  if (one) return keys;
  for (const auto& [general, word] : {std::pair("k", "kernel extent"), std::pair("s", "stride"),
                                      std::pair("p", "padding on each side")}) {
    for (const char d : dimensions) {
      const std::string dimension(1, d);
      keys.push_back({.name = general + dimension,
                      .meaning = absl::StrCat(word, " along ", dimension),
                      .minimum = *general == 'p' ? 0 : 1,
                      .default_key = general});
    }
  }
  return keys;
}

// For each dimension, such as h: oh, the number of windows; at_h, the position that a tap reads;
// and in_h, the guard that excludes padding from the reduction, which lowering turns into loop
// bounds. The taps are r for h, s for w (as in the literature) and t for d. The padding may exceed
// the kernel; windows entirely in the padding have no taps.
Definitions Windows(absl::string_view dimensions) {
  Definitions windows = {{"dil", "1"}};  // unless it is a key
  for (const char d : dimensions) {
    const std::string dimension(1, d), suffix = Suffix(dimensions, d);
    const auto define = [&](absl::string_view name, absl::string_view text) {
      windows[absl::StrCat(name, dimension)] = absl::StrReplaceAll(text, {{"#", suffix},
                                                                          {"$", dimension},
                                                                          {"@", d == 'w'   ? "s"
                                                                                : d == 'd' ? "t"
                                                                                           : "r"}});
    };
    define("o", "{($ + 2*p# - (k# - 1)*dil - 1)/s# + 1}");
    define("at_", "{s#}*$ + {dil}*@ - {p#}");
    define("in_", "{p# ? 0 <= {at_$} < {$}}");
  }
  return windows;
}

// The check that the windows fit into the padded input.
Check Fit(absl::string_view dimensions) {
  std::string fits = "1", kernel, padded;
  for (const char d : dimensions) {
    const std::string suffix = Suffix(dimensions, d), times = kernel.empty() ? "" : "x";
    absl::SubstituteAndAppend(&fits, " * ((k$0 - 1)*dil < $1 + 2*p$0)", suffix, std::string(1, d));
    absl::SubstituteAndAppend(&kernel, "$0{k$1}", times, suffix);
    absl::SubstituteAndAppend(&padded, "$0{$1 + 2*p$2}", times, std::string(1, d), suffix);
  }
  return {fits,
          absl::StrCat("a kernel of ", kernel,
                       "{1 < dil ?  with dilation {dil}} does not fit into the padded input of ",
                       padded)};
}

KeyInfo Ci() { return {"ci", "input channels"}; }
KeyInfo Co() { return {"co", "output channels"}; }
KeyInfo Channels() { return {"c", "channels"}; }
KeyInfo Dilation() { return {"dil", "dilation: the distance between neighbouring taps", 1}; }

// A convolution of these dimensions. The group is computed from the output channel, so tensors keep
// their dimensions.
OperatorInfo Convolution(absl::string_view dimensions, OperatorInfo info) {
  info.keys = WindowKeys(
      dimensions, {Ci(), Co()},
      {Dilation(),
       {"groups",
        "groups of channels: output channel c reads the ci/groups input channels of its group",
        1}});
  info.definitions = Windows(dimensions);
  info.definitions["channel"] = "ci + co / {co/groups} * {ci/groups}";
  info.checks = {Fit(dimensions),
                 {"ci % groups == 0", "{groups} groups do not divide {ci} input channels"},
                 {"co % groups == 0", "{groups} groups do not divide {co} output channels"}};
  return info;
}

// Each window of a pooling operator must contain an element of the image, because a maximum or mean
// of no elements is undefined; ONNX Runtime has the same rule.
OperatorInfo Pooling(OperatorInfo info) {
  const std::vector<KeyInfo> keys = WindowKeys("hw", {Channels()}, {}, /*stride_is_kernel=*/true);
  info.keys.insert(info.keys.begin(), keys.begin(), keys.end());
  info.definitions.merge(Windows("hw"));
  info.checks = {Fit("hw"),
                 {"ph < kh", "padding {ph} must be smaller than the kernel ({kh})"},
                 {"pw < kw", "padding {pw} must be smaller than the kernel ({kw})"}};
  return info;
}

// A transposed convolution along a dimension is y[o] = Σ x[i]·w[r] over i·s + r − p = o.
//
// Only every s-th tap reads an input. A sum over all taps with a guard (o + p − r) mod s = 0 would
// do s times the work, or need guards that loop bounds cannot express. Instead, the output is
// divided into phases, o = s·q + a, with the taps r = (a + p) mod s + s·t. The input is then i = q
// + (a + p) / s − t: everything is affine in the loops over q and t, and no tap is wasted. The
// weights depend on the phase but not on q, so q forms the rows of a matrix product. The last step
// over taps, and over outputs, may be partial.
OperatorInfo Transposed(OperatorInfo info) {
  info.keys = WindowKeys("hw", {Ci(), Co()}, {});
  for (const char* d : {"h", "w"}) {
    const auto define = [&](absl::string_view name, absl::string_view text) {
      info.definitions[absl::StrCat(name, d)] = absl::StrReplaceAll(text, {{"$", d}});
    };
    define("o", "{($ - 1)*s$ - 2*p$ + k$}");
    define("rounds_", "{(o$ + s$ - 1)/s$}");
    define("taps_", "{(k$ + s$ - 1)/s$}");
    define("at_", "q$ + (a$ + {p$}) / {s$} - t$");
    define("tap_", "(a$ + {p$}) % {s$} + {s$}*t$");
    define("in_",
           "0 <= {at_$} < {$}, {k$ % s$ ? 0 <= {tap_$} < {k$}}, "
           "{o$ % s$ ? 0 <= {s$}*q$ + a$ < {o$}}");
    const std::string most = absl::StrCat(ir::kMaxElements);
    info.checks.push_back(
        {absl::Substitute("($0 - 1)*s$0 <= $1", d, most),
         absl::Substitute("an output with {$0} strides of {s$0} has more than $1 elements", d,
                          most)});
    info.checks.push_back(
        {absl::Substitute("0 < o$0", d),
         absl::Substitute("padding {p$0} leaves nothing of the output along $0 ({o$0 + 2*p$0} "
                          "without padding)",
                          d)});
  }
  return info;
}

// Winograd's F(4x4, 3x3) (Lavin and Gray, 2016; interpolation points 0, ±1, ±2): a 6 × 6 tile of
// the input gives 4 × 4 outputs with 36 multiplications instead of 144. It transforms one dimension
// at a time: the input by Bᵀ·d, the output by Aᵀ·m. The tiles of all images form one axis: the rows
// of the 36 matrix products.
constexpr const char* kInputTransform[] = {"d0 * 4 - d2 * 5 + d4",    "d3 + d4 - (d1 + d2) * 4",
                                           "d4 - d3 + (d1 - d2) * 4", "d4 - d2 + (d3 - d1) * 2",
                                           "d4 - d2 + (d1 - d3) * 2", "d1 * 4 - d3 * 5 + d5"};
constexpr const char* kOutputTransform[] = {"d0 + d1 + d2 + d3 + d4", "d1 - d2 + (d3 - d4) * 2",
                                            "d1 + d2 + (d3 + d4) * 4",
                                            "d1 - d2 + (d3 - d4) * 8 + d5"};

// The row of a transform that an index chooses. `element` is di, with # for i. Unrolled code has no
// select and no multiplication by zero.
std::string Row(absl::Span<const char* const> rows, absl::string_view index,
                absl::string_view element) {
  std::string text = rows.back();
  for (size_t row = rows.size() - 1; row-- > 0;)
    text = absl::Substitute("select(index($0) == $1, $2, $3)", index, row, rows[row], text);
  std::vector<std::pair<std::string, std::string>> elements;
  for (const char* i : {"0", "1", "2", "3", "4", "5"})
    elements.emplace_back(absl::StrCat("d", i), absl::StrReplaceAll(element, {{"#", i}}));
  return absl::StrReplaceAll(text, elements);
}

}  // namespace

std::vector<OperatorInfo> ImageOperators() {
  return {
      Convolution("l", {.name = "conv1d",
                        .meaning = "Y[n, ol, co] = X[n, l, ci] * W[k, ci/groups, co]; ol = (l + 2p "
                                   "- (k-1)*dil - 1) / s + 1",
                        .text = R"(
input X: {dtype}[{n}, {l}, {ci}]
input W: {dtype}[{k}, {ci/groups}, {co}] constant
output Y[n: {n}, l: {ol}, co: {co}] =
  sum(r: {k}, ci: {ci/groups} where {in_l}) X[n, {at_l}, {channel}] * W[r, ci, co]
)"}),
      Convolution("hw", {.name = "conv2d",
                         .meaning = "Y[n, oh, ow, co] = X[n, h, w, ci] * W[kh, kw, ci/groups, co]; "
                                    "oh = (h + 2ph - (kh-1)*dil - 1) / sh + 1",
                         .text = R"(
input X: {dtype}[{n}, {h}, {w}, {ci}]
input W: {dtype}[{kh}, {kw}, {ci/groups}, {co}] constant
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  sum(r: {kh}, s: {kw}, ci: {ci/groups} where {in_h}, {in_w})
  X[n, {at_h}, {at_w}, {channel}] * W[r, s, ci, co]
)"}),
      Convolution("hw", {.name = "conv2d_nchw",
                         .meaning = "conv2d with channels first: Y[n, co, oh, ow] = X[n, ci, h, w] "
                                    "* W[co, ci/groups, kh, kw]",
                         .text = R"(
input X: {dtype}[{n}, {ci}, {h}, {w}]
input W: {dtype}[{co}, {ci/groups}, {kh}, {kw}] constant
output Y[n: {n}, co: {co}, h: {oh}, w: {ow}] =
  sum(ci: {ci/groups}, r: {kh}, s: {kw} where {in_h}, {in_w})
  X[n, {channel}, {at_h}, {at_w}] * W[co, ci, r, s]
)"}),
      // Inference only: the four parameters per channel of the batch normalization are folded into
      // two.
      Convolution("hw",
                  {.name = "conv2d_bn_relu",
                   .meaning = "Y = max((conv2d(X, W) + Bias) * Scale + Offset, 0), per output "
                              "channel",
                   .text = R"(
input X: {dtype}[{n}, {h}, {w}, {ci}]
input W: {dtype}[{kh}, {kw}, {ci/groups}, {co}] constant
input Bias: {dtype}[{co}] constant
input Scale: {dtype}[{co}] constant
input Offset: {dtype}[{co}] constant
Conv[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  sum(r: {kh}, s: {kw}, ci: {ci/groups} where {in_h}, {in_w})
  X[n, {at_h}, {at_w}, {channel}] * W[r, s, ci, co]
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  max((Conv[n, h, w, co] + Bias[co]) * Scale[co] + Offset[co], 0)
)"}),
      Convolution("hw", {.name = "quantized_conv2d",
                         .meaning = "conv2d of u8 images and i8 weights, summed in i32; padding "
                                    "counts as 0",
                         .types = Types::kFixed,
                         .text = R"(
input X: u8[{n}, {h}, {w}, {ci}]
input W: i8[{kh}, {kw}, {ci/groups}, {co}] constant
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  sum(r: {kh}, s: {kw}, ci: {ci/groups} where {in_h}, {in_w})
  X[n, {at_h}, {at_w}, {channel}] * W[r, s, ci, co]
)"}),
      Convolution("dhw", {.name = "conv3d",
                          .meaning = "Y[n, od, oh, ow, co] = X[n, d, h, w, ci] * W[kd, kh, kw, "
                                     "ci/groups, co]; od as oh of conv2d",
                          .text = R"(
input X: {dtype}[{n}, {d}, {h}, {w}, {ci}]
input W: {dtype}[{kd}, {kh}, {kw}, {ci/groups}, {co}] constant
output Y[n: {n}, d: {od}, h: {oh}, w: {ow}, co: {co}] =
  sum(t: {kd}, r: {kh}, s: {kw}, ci: {ci/groups} where {in_d}, {in_h}, {in_w})
  X[n, {at_d}, {at_h}, {at_w}, {channel}] * W[t, r, s, ci, co]
)"}),
      {.name = "depthwise_conv2d",
       .meaning = "Y[n, oh, ow, c] = X[n, h, w, c] * W[kh, kw, c], each channel separately; oh as "
                  "of conv2d",
       .keys = WindowKeys("hw", {Channels()}, {Dilation()}),
       .definitions = Windows("hw"),
       .checks = {Fit("hw")},
       .text = R"(
input X: {dtype}[{n}, {h}, {w}, {c}]
input W: {dtype}[{kh}, {kw}, {c}] constant
output Y[n: {n}, h: {oh}, w: {ow}, c: {c}] =
  sum(r: {kh}, s: {kw} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, c] * W[r, s, c]
)"},
      // The elements are cap × cap matrices, multiplied where conv2d multiplies numbers (Hinton et
      // al., 2018, in Ansor's form).
      {.name = "capsule_conv2d",
       .meaning = "conv2d of matrices: Y[n, oh, ow, i, j, co] = X[n, h, w, i, l, ci] * W[kh, kw, "
                  "l, j, ci, co]; oh and ow as in conv2d",
       .keys = WindowKeys("hw", {Ci(), Co()},
                          {{"cap", "rows and columns of the matrix at each point", 4}}),
       .definitions = Windows("hw"),
       .checks = {Fit("hw")},
       .text = R"(
input X: {dtype}[{n}, {h}, {w}, {cap}, {cap}, {ci}]
input W: {dtype}[{kh}, {kw}, {cap}, {cap}, {ci}, {co}] constant
output Y[n: {n}, h: {oh}, w: {ow}, i: {cap}, j: {cap}, co: {co}] =
  sum(r: {kh}, s: {kw}, k: {cap}, ci: {ci} where {in_h}, {in_w})
  X[n, {at_h}, {at_w}, i, k, ci] * W[r, s, k, j, ci, co]
)"},
      Transposed({.name = "conv2d_transpose",
                  .meaning = "Y[n, h*sh + r - ph, w*sw + s - pw, co] += X[n, h, w, ci] * W[r, s, "
                             "ci, co]; oh = (h-1)*sh - 2ph + kh",
                  .text = R"(
input X: {dtype}[{n}, {h}, {w}, {ci}]
input W: {dtype}[{kh}, {kw}, {ci}, {co}] constant
Phases[n: {n}, qh: {rounds_h}, ah: {sh}, qw: {rounds_w}, aw: {sw}, co: {co}] =
  sum(th: {taps_h}, tw: {taps_w}, ci: {ci} where {in_h}, {in_w})
  X[n, {at_h}, {at_w}, ci] * W[{tap_h}, {tap_w}, ci, co]
output Y[n: {n}, h: {oh}, w: {ow}, co: {co}] =
  Phases[n, h / {sh}, h % {sh}, w / {sw}, w % {sw}, co]
)"}),
      // Where the last tiles extend past the image, the sum over one element has no terms and
      // gives 0.
      {.name = "winograd_conv2d",
       .meaning = "conv2d with k=3, s=1, p=0 by F(4,3), with weights that are already transformed: "
                  "U[:, :, ci, co] = G W[:, :, ci, co] G^T, G = [1/4 0 0; -1/6 -1/6 -1/6; -1/6 1/6 "
                  "-1/6; 1/24 1/12 1/6; 1/24 -1/12 1/6; 0 0 1]; oh = h - 2",
       .note = "The error of an output is relative to the largest magnitude in its tile: 6 x 6 "
               "inputs and 4 x 4 outputs, all input channels. An element whose own 3 x 3 window is "
               "much smaller than the rest of its tile has the error of the tile: with inputs of 1 "
               "beside inputs of 1e12 it may be wrong in every digit.",
       .types = Types::kFloats,
       .keys = {{"n", "batch"}, {"h", "input height"}, {"w", "input width"}, Ci(), Co()},
       .definitions = {{"oh", "{h - 2}"},
                       {"ow", "{w - 2}"},
                       {"th", "{(oh + 3)/4}"},
                       {"tw", "{(ow + 3)/4}"},
                       {"tiles", "{n*th*tw}"},
                       {"pads", "{(h < 4*th + 2) + (w < 4*tw + 2)}"},
                       {"image", "{pads ? Padded}{pads == 0 ? X}"},
                       {"tile", "w / 4 + h / 4 * {tw} + {th*tw}*n"}},
       .checks = {{"(3 <= h) * (3 <= w)",
                   "a kernel of 3x3 does not fit into the input of {h}x{w}"}},
       .text = absl::StrCat(
           R"(
input X: {dtype}[{n}, {h}, {w}, {ci}]
input U: {dtype}[6, 6, {ci}, {co}] constant
{pads ? Padded[n: {n}, h: {4*th + 2}, w: {4*tw + 2}, ci: {ci}] =
  sum(one: 1 where 0 <= h < {h}, 0 <= w < {w}) X[n, h, w, ci]}
RowsIn[r: 6, s: 6, p: {tiles}, ci: {ci}] = )",
           Row(kInputTransform, "r",
               "{image}[p / {th*tw}, p / {tw} % {th} * 4 + #, p % {tw} * 4 + s, ci]"),
           "\nV[r: 6, s: 6, p: {tiles}, ci: {ci}] = ",
           Row(kInputTransform, "s", "RowsIn[r, #, p, ci]"), R"(
M[r: 6, s: 6, p: {tiles}, co: {co}] = sum(ci: {ci}) V[r, s, p, ci] * U[r, s, ci, co]
RowsOut[i: 4, s: 6, p: {tiles}, co: {co}] = )",
           Row(kOutputTransform, "i", "M[#, s, p, co]"),
           "\noutput Y[n: {n}, h: {oh}, w: {ow}, co: {co}] = ",
           Row(kOutputTransform, "w % 4", "RowsOut[h % 4, #, {tile}, co]"), "\n")},
      // The guard excludes padding from the maximum.
      Pooling({.name = "max_pool2d",
               .meaning =
                   "Y[n, oh, ow, c] = maximum of X over kh x kw windows; oh = (h + 2ph - kh) "
                   "/ sh + 1",
               .note = "NaN elements are ignored, as numpy.fmax does; Y is -inf where all elements "
                       "of a window are NaN. Padding is ignored. It must be smaller than the "
                       "kernel, as ONNX Runtime requires.",
               .text = R"(
input X: {dtype}[{n}, {h}, {w}, {c}]
output Y[n: {n}, h: {oh}, w: {ow}, c: {c}] =
  max(r: {kh}, s: {kw} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, c]
)"}),
      // Counts the taps inside the image once for all channels.
      Pooling({.name = "avg_pool2d",
               .meaning = "Y[n, oh, ow, c] = mean of X over kh x kw windows; oh = (h + 2ph - kh) / "
                          "sh + 1",
               .note = "The padding must be smaller than the kernel, as ONNX Runtime requires.",
               .types = Types::kFloats,
               .keys = {{.name = "pad_counts",
                         .meaning = "1: padding counts as zeros, 0: the mean is over the elements "
                                    "inside the image",
                         .default_value = 1,
                         .minimum = 0,
                         .maximum = 1}},
               .definitions = {{"counts", "{(pad_counts == 0)*(ph + pw)}"}},
               .text = R"(
input X: {dtype}[{n}, {h}, {w}, {c}]
Sum[n: {n}, h: {oh}, w: {ow}, c: {c}] =
  sum(r: {kh}, s: {kw} where {in_h}, {in_w}) X[n, {at_h}, {at_w}, c]
{counts ? Count[h: {oh}, w: {ow}] = sum(r: {kh}, s: {kw} where {in_h}, {in_w}) {acc}(1)}
output Y[n: {n}, h: {oh}, w: {ow}, c: {c}] =
  Sum[n, h, w, c] {counts == 0 ? * {1.0/(kh*kw)}}{counts ? / Count[h, w]}
)"}),
      {.name = "global_avg_pool",
       .meaning = "Y[n, c] = mean of X[n, h, w, c] over h and w",
       .types = Types::kFloats,
       .keys = {{"n", "batch"}, {"h", "input height"}, {"w", "input width"}, Channels()},
       .text = R"(
input X: {dtype}[{n}, {h}, {w}, {c}]
Sum[n: {n}, c: {c}] = sum(h: {h}, w: {w}) X[n, h, w, c]
output Y[n: {n}, c: {c}] = Sum[n, c] * {1.0/(h*w)}
)"},
  };
}

}  // namespace hone::op
