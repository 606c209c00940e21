// Compares convolutions with loops that follow the definition and pad explicitly.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/ir/workload.h"
#include "tests/common/operator/arrays.h"

namespace hone::op {
namespace {

// One dimension of a convolution.
struct Dim {
  int64_t extent, kernel, stride, padding, dilation = 1;
  int64_t out() const { return (extent + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1; }
  int64_t At(int64_t o, int64_t r) const { return o * stride + r * dilation - padding; }
  bool Inside(int64_t at) const { return at >= 0 && at < extent; }
};

// Three dimensions, channels last; with fewer dimensions, the first extents are 1.
Array Reference(const Array& x, const Array& w, Dim d, Dim h, Dim v, int64_t groups) {
  const int64_t n = x.shape[0], ci = x.shape.back(), co = w.shape.back(), group_in = ci / groups,
                group_out = co / groups;
  Array y({n, d.out(), h.out(), v.out(), co});
  const auto read = [&](int64_t in, int64_t id, int64_t ih, int64_t iv, int64_t ic) {
    if (!d.Inside(id) || !h.Inside(ih) || !v.Inside(iv)) return 0.0;
    return x.data[(((in * d.extent + id) * h.extent + ih) * v.extent + iv) * ci + ic];
  };
  for (int64_t in = 0; in < n; ++in) {
    for (int64_t od = 0; od < d.out(); ++od) {
      for (int64_t oh = 0; oh < h.out(); ++oh) {
        for (int64_t ov = 0; ov < v.out(); ++ov) {
          for (int64_t c = 0; c < co; ++c) {
            double sum = 0;
            for (int64_t a = 0; a < d.kernel; ++a) {
              for (int64_t b = 0; b < h.kernel; ++b) {
                for (int64_t e = 0; e < v.kernel; ++e) {
                  for (int64_t i = 0; i < group_in; ++i) {
                    sum += read(in, d.At(od, a), h.At(oh, b), v.At(ov, e),
                                c / group_out * group_in + i) *
                           w.data[(((a * h.kernel + b) * v.kernel + e) * group_in + i) * co + c];
                  }
                }
              }
            }
            y(in, od, oh, ov, c) = sum;
          }
        }
      }
    }
  }
  return y;
}

constexpr Dim kOne{1, 1, 1, 0};

struct Case2d {
  int64_t n, ci, co;
  Dim h, w;
  int64_t groups = 1;
  std::string Keys() const {
    return absl::StrCat("n=", n, " h=", h.extent, " w=", w.extent, " ci=", ci, " co=", co,
                        " kh=", h.kernel, " kw=", w.kernel, " sh=", h.stride, " sw=", w.stride,
                        " ph=", h.padding, " pw=", w.padding, " dil=", h.dilation,
                        " groups=", groups);
  }
};

const Case2d kCases2d[] = {
    {1, 2, 3, {5, 3, 1, 1}, {6, 3, 1, 1}},          {2, 1, 2, {7, 3, 2, 0}, {5, 3, 2, 0}},
    {1, 3, 2, {8, 5, 3, 4}, {8, 5, 3, 4}},          {2, 2, 2, {4, 1, 2, 0}, {4, 1, 2, 0}},
    {1, 1, 1, {3, 3, 1, 2}, {3, 3, 1, 2}},          {1, 2, 2, {6, 2, 2, 1}, {4, 2, 2, 1}},
    {1, 2, 3, {9, 3, 1, 2, 2}, {8, 3, 1, 2, 2}},     // dilated
    {1, 2, 2, {11, 3, 2, 3, 3}, {7, 3, 2, 3, 3}},    // dilated, strided
    {1, 4, 6, {5, 3, 1, 1}, {5, 3, 1, 1}, 2},        // groups
    {2, 6, 3, {5, 3, 2, 1, 2}, {6, 3, 2, 1, 2}, 3},  // groups of one output channel, dilated
    {1, 4, 4, {4, 3, 1, 1}, {4, 3, 1, 1}, 4},        // as many groups as channels
    {1, 2, 2, {5, 1, 1, 0}, {9, 7, 1, 3}},           // 1 × 7
    {1, 2, 2, {7, 4, 3, 1}, {9, 2, 2, 0}},           // not square anywhere
    {1, 2, 2, {4, 1, 1, 1}, {3, 1, 1, 2}},           // 1 × 1, with windows entirely in the padding
    {1, 2, 2, {3, 2, 2, 5}, {4, 3, 3, 7}},           // whole strides of such windows
    {1, 4, 2, {3, 2, 1, 4, 2}, {4, 2, 2, 3, 2}, 2},  // taps on both sides, none inside
};

TEST(ConvolutionTest, Conv2dMatchesItsDefinition) {
  for (const Case2d& c : kCases2d) {
    const ir::Workload workload = Built(absl::StrCat("conv2d ", c.Keys()));
    EXPECT_TRUE(workload.tensors[1].constant);
    const auto inputs = Inputs(workload, 4, Kind::kWhole);
    Array expected = Reference(inputs[0], inputs[1], kOne, c.h, c.w, c.groups);
    expected.shape.erase(expected.shape.begin() + 1);
    ExpectNear(Compute(workload, inputs)[0], expected, 0, c.Keys());
  }
}

TEST(ConvolutionTest, ChannelsFirstIsChannelsLastTransposed) {
  for (const Case2d& c : kCases2d) {
    const ir::Workload workload = Built(absl::StrCat("conv2d_nchw ", c.Keys()));
    EXPECT_TRUE(workload.tensors[1].constant);
    const auto inputs = Inputs(workload, 5, Kind::kWhole);
    const int64_t group_in = c.ci / c.groups;
    Array x({c.n, c.h.extent, c.w.extent, c.ci}), w({c.h.kernel, c.w.kernel, group_in, c.co});
    for (int64_t n = 0; n < c.n; ++n) {
      for (int64_t i = 0; i < c.ci; ++i) {
        for (int64_t h = 0; h < c.h.extent; ++h) {
          for (int64_t v = 0; v < c.w.extent; ++v) x(n, h, v, i) = inputs[0](n, i, h, v);
        }
      }
    }
    for (int64_t o = 0; o < c.co; ++o) {
      for (int64_t i = 0; i < group_in; ++i) {
        for (int64_t r = 0; r < c.h.kernel; ++r) {
          for (int64_t s = 0; s < c.w.kernel; ++s) w(r, s, i, o) = inputs[1](o, i, r, s);
        }
      }
    }
    const Array last = Reference(x, w, kOne, c.h, c.w, c.groups);
    Array expected({c.n, c.co, c.h.out(), c.w.out()});
    for (int64_t n = 0; n < c.n; ++n) {
      for (int64_t o = 0; o < c.co; ++o) {
        for (int64_t h = 0; h < c.h.out(); ++h) {
          for (int64_t v = 0; v < c.w.out(); ++v) expected(n, o, h, v) = last(n, 0, h, v, o);
        }
      }
    }
    ExpectNear(Compute(workload, inputs)[0], expected, 0, c.Keys());
  }
}

TEST(ConvolutionTest, QuantizedConv2dSumsInI32) {
  for (const Case2d& c : kCases2d) {
    const ir::Workload workload = Built(absl::StrCat("quantized_conv2d ", c.Keys()));
    EXPECT_EQ(workload.tensors[0].dtype, ir::DType::kU8);
    EXPECT_EQ(workload.tensors[1].dtype, ir::DType::kI8);
    EXPECT_EQ(workload.tensors[2].dtype, ir::DType::kI32);
    auto inputs = Inputs(workload, 6, Kind::kWhole);
    inputs[0].data[0] = 255;  // exceeds i8
    inputs[1].data[0] = -128;
    Array expected = Reference(inputs[0], inputs[1], kOne, c.h, c.w, c.groups);
    expected.shape.erase(expected.shape.begin() + 1);
    ExpectNear(Compute(workload, inputs)[0], expected, 0, c.Keys());
  }
}

TEST(ConvolutionTest, Conv2dBnReluIsAConvolutionThenAnAffineMapThenRelu) {
  for (const Case2d& c : kCases2d) {
    const ir::Workload workload = Built(absl::StrCat("conv2d_bn_relu ", c.Keys()));
    for (int input = 1; input < 5; ++input) EXPECT_TRUE(workload.tensors[input].constant);
    const auto inputs = Inputs(workload, 7, Kind::kWhole);
    Array expected = Reference(inputs[0], inputs[1], kOne, c.h, c.w, c.groups);
    expected.shape.erase(expected.shape.begin() + 1);
    for (size_t i = 0; i < expected.data.size(); ++i) {
      const int64_t channel = static_cast<int64_t>(i) % c.co;
      expected.data[i] = std::max(
          0.0, (expected.data[i] + inputs[2](channel)) * inputs[3](channel) + inputs[4](channel));
    }
    ExpectNear(Compute(workload, inputs)[0], expected, 0, c.Keys());
  }
}

TEST(ConvolutionTest, Conv1dMatchesItsDefinition) {
  const std::pair<Dim, int64_t> kCases[] = {
      {{16, 3, 2, 1}, 1}, {{9, 1, 2, 0}, 1}, {{8, 5, 1, 2}, 1}, {{17, 3, 2, 2, 4}, 1},
      {{7, 3, 1, 1}, 2},  {{3, 3, 1, 0}, 1}, {{5, 2, 1, 3}, 2}};
  for (const auto& [l, groups] : kCases) {
    const std::string line =
        absl::StrCat("conv1d n=2 l=", l.extent, " ci=4 co=6 k=", l.kernel, " s=", l.stride,
                     " p=", l.padding, " dil=", l.dilation, " groups=", groups);
    const ir::Workload workload = Built(line);
    const auto inputs = Inputs(workload, 8, Kind::kWhole);
    Array expected = Reference(inputs[0], inputs[1], kOne, kOne, l, groups);
    expected.shape.erase(expected.shape.begin() + 1, expected.shape.begin() + 3);
    ExpectNear(Compute(workload, inputs)[0], expected, 0, line);
  }
}

TEST(ConvolutionTest, Conv3dMatchesItsDefinition) {
  struct Case {
    Dim d, h, w;
    int64_t groups;
  };
  for (const Case& c : {Case{{3, 3, 1, 1}, {4, 3, 1, 1}, {5, 3, 1, 1}, 1},
                        Case{{4, 2, 2, 0}, {5, 3, 2, 1}, {5, 1, 1, 0}, 1},
                        Case{{5, 3, 2, 2, 2}, {5, 3, 2, 2, 2}, {6, 3, 2, 2, 2}, 2},
                        Case{{2, 1, 1, 1}, {3, 2, 1, 2}, {2, 1, 2, 3}, 1}}) {
    const std::string line = absl::StrCat(
        "conv3d n=2 d=", c.d.extent, " h=", c.h.extent, " w=", c.w.extent,
        " ci=2 co=4 kd=", c.d.kernel, " kh=", c.h.kernel, " kw=", c.w.kernel, " sd=", c.d.stride,
        " sh=", c.h.stride, " sw=", c.w.stride, " pd=", c.d.padding, " ph=", c.h.padding,
        " pw=", c.w.padding, " dil=", c.d.dilation, " groups=", c.groups);
    const ir::Workload workload = Built(line);
    const auto inputs = Inputs(workload, 9, Kind::kWhole);
    ExpectNear(Compute(workload, inputs)[0],
               Reference(inputs[0], inputs[1], c.d, c.h, c.w, c.groups), 0, line);
  }
}

TEST(ConvolutionTest, DepthwiseConv2dIsAConvolutionOfEachChannel) {
  for (const Case2d& c : kCases2d) {
    const std::string line =
        absl::StrCat("depthwise_conv2d n=", c.n, " h=", c.h.extent, " w=", c.w.extent, " c=", c.ci,
                     " kh=", c.h.kernel, " kw=", c.w.kernel, " sh=", c.h.stride, " sw=", c.w.stride,
                     " ph=", c.h.padding, " pw=", c.w.padding, " dil=", c.h.dilation);
    const ir::Workload workload = Built(line);
    EXPECT_TRUE(workload.tensors[1].constant);
    const auto inputs = Inputs(workload, 10, Kind::kWhole);
    Array w = inputs[1];
    w.shape = {c.h.kernel, c.w.kernel, 1, c.ci};
    Array expected = Reference(inputs[0], w, kOne, c.h, c.w, /*groups=*/c.ci);
    expected.shape.erase(expected.shape.begin() + 1);
    ExpectNear(Compute(workload, inputs)[0], expected, 0, line);
  }
}

TEST(ConvolutionTest, CapsuleConv2dMultipliesMatrices) {
  struct Case {
    Dim h, w;
    int64_t cap;
  };
  for (const Case& c : {Case{{4, 3, 2, 1}, {5, 3, 2, 1}, 4}, Case{{3, 3, 1, 1}, {4, 2, 1, 0}, 4},
                        Case{{5, 2, 1, 1}, {3, 3, 1, 2}, 3}, Case{{3, 1, 1, 1}, {2, 2, 1, 3}, 2}}) {
    const int64_t n = 2, ci = 2, co = 3;
    const std::string line =
        absl::StrCat("capsule_conv2d n=2 h=", c.h.extent, " w=", c.w.extent,
                     " ci=2 co=3 kh=", c.h.kernel, " kw=", c.w.kernel, " s=", c.h.stride,
                     " ph=", c.h.padding, " pw=", c.w.padding, " sw=", c.w.stride, " cap=", c.cap);
    const ir::Workload workload = Built(line);
    const auto inputs = Inputs(workload, 11, Kind::kWhole);
    Array expected({n, c.h.out(), c.w.out(), c.cap, c.cap, co});
    for (int64_t in = 0; in < n; ++in) {
      for (int64_t oh = 0; oh < c.h.out(); ++oh) {
        for (int64_t ow = 0; ow < c.w.out(); ++ow) {
          for (int64_t r = 0; r < c.h.kernel; ++r) {
            for (int64_t s = 0; s < c.w.kernel; ++s) {
              const int64_t ih = c.h.At(oh, r), iw = c.w.At(ow, s);
              if (!c.h.Inside(ih) || !c.w.Inside(iw)) continue;
              for (int64_t i = 0; i < c.cap; ++i) {
                for (int64_t j = 0; j < c.cap; ++j) {
                  for (int64_t k = 0; k < c.cap; ++k) {
                    for (int64_t a = 0; a < ci; ++a) {
                      for (int64_t o = 0; o < co; ++o) {
                        expected(in, oh, ow, i, j, o) +=
                            inputs[0](in, ih, iw, i, k, a) * inputs[1](r, s, k, j, a, o);
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
    ExpectNear(Compute(workload, inputs)[0], expected, 0, line);
  }
}

// Scatters, as the operator is defined; the builder gathers.
TEST(ConvolutionTest, Conv2dTransposeIsTheTransposedMap) {
  for (const auto& [h, w] :
       {std::pair(Dim{4, 4, 2, 1}, Dim{4, 4, 2, 1}),  // from a published benchmark
        std::pair(Dim{3, 3, 2, 1}, Dim{4, 3, 2, 1}),  // an odd output, phases of 1 and 2 taps
        std::pair(Dim{5, 3, 1, 1}, Dim{3, 3, 1, 2}),  // stride 1
        std::pair(Dim{3, 2, 3, 0}, Dim{2, 2, 3, 1}),  // outputs that no input reaches
        std::pair(Dim{3, 5, 3, 2}, Dim{4, 7, 2, 3}), std::pair(Dim{1, 3, 2, 0}, Dim{1, 1, 5, 0}),
        std::pair(Dim{2, 6, 4, 4}, Dim{3, 5, 2, 4}),
        std::pair(Dim{6, 1, 1, 1}, Dim{6, 3, 2, 4})}) {  // padding that crops whole inputs
    const int64_t n = 2, ci = 3, co = 2;
    const std::string line = absl::StrCat(
        "conv2d_transpose n=2 h=", h.extent, " w=", w.extent, " ci=3 co=2 kh=", h.kernel,
        " kw=", w.kernel, " sh=", h.stride, " sw=", w.stride, " ph=", h.padding, " pw=", w.padding);
    const ir::Workload workload = Built(line);
    EXPECT_TRUE(workload.tensors[1].constant);
    const auto inputs = Inputs(workload, 12, Kind::kWhole);
    const auto outputs = [](const Dim& d) {
      return (d.extent - 1) * d.stride - 2 * d.padding + d.kernel;
    };
    Array expected({n, outputs(h), outputs(w), co});
    double pairs = 0;  // taps that meet an output
    for (int64_t ih = 0; ih < h.extent; ++ih) {
      for (int64_t iw = 0; iw < w.extent; ++iw) {
        for (int64_t r = 0; r < h.kernel; ++r) {
          for (int64_t s = 0; s < w.kernel; ++s) {
            const int64_t oh = ih * h.stride + r - h.padding, ow = iw * w.stride + s - w.padding;
            if (oh < 0 || oh >= outputs(h) || ow < 0 || ow >= outputs(w)) continue;
            pairs += 1;
            for (int64_t in = 0; in < n; ++in) {
              for (int64_t i = 0; i < ci; ++i) {
                for (int64_t o = 0; o < co; ++o)
                  expected(in, oh, ow, o) += inputs[0](in, ih, iw, i) * inputs[1](r, s, i, o);
              }
            }
          }
        }
      }
    }
    ExpectNear(Compute(workload, inputs)[0], expected, 0, line);
    // No tap is wasted.
    EXPECT_EQ(FlopCount(workload), 2.0 * pairs * n * ci * co) << line;
  }
}

TEST(ConvolutionTest, WinogradConv2dIsAConvolutionWithTransformedWeights) {
  const double g[6][3] = {{1 / 4.0, 0, 0},
                          {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                          {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                          {1 / 24.0, 1 / 12.0, 1 / 6.0},
                          {1 / 24.0, -1 / 12.0, 1 / 6.0},
                          {0, 0, 1}};
  for (const auto& [h, w] :
       {std::pair<int64_t, int64_t>(14, 14), {6, 10}, {3, 3}, {5, 9}, {8, 7}}) {
    const int64_t n = 2, ci = 3, co = 4;
    const std::string line =
        absl::StrCat("winograd_conv2d n=2 ci=3 co=4 h=", h, " w=", w, " dtype=f64");
    const ir::Workload workload = Built(line);
    EXPECT_TRUE(workload.tensors[1].constant);
    auto inputs = Inputs(workload, 13, Kind::kReal);
    Array weight({3, 3, ci, co});
    for (size_t i = 0; i < weight.data.size(); ++i) weight.data[i] = static_cast<double>(i % 7) - 3;
    for (int64_t a = 0; a < 6; ++a) {
      for (int64_t b = 0; b < 6; ++b) {
        for (int64_t i = 0; i < ci; ++i) {
          for (int64_t o = 0; o < co; ++o) {
            double sum = 0;
            for (int64_t r = 0; r < 3; ++r) {
              for (int64_t s = 0; s < 3; ++s) sum += g[a][r] * weight(r, s, i, o) * g[b][s];
            }
            inputs[1](a, b, i, o) = sum;
          }
        }
      }
    }
    Array expected = Reference(inputs[0], weight, kOne, Dim{h, 3, 1, 0}, Dim{w, 3, 1, 0}, 1);
    expected.shape = {n, h - 2, w - 2, co};
    ExpectNear(Compute(workload, inputs)[0], expected, 1e-12, line);
  }
}

TEST(ConvolutionTest, FlopsExcludePaddedTaps) {
  const auto flops = [](const std::string& line) { return FlopCount(Built(line)); };
  EXPECT_EQ(flops("conv2d n=1 h=4 w=4 ci=8 co=16 k=3 p=1"),
            2.0 * 100 * 8 * 16);  // 4·9 + 8·6 + 4·4 taps
  EXPECT_EQ(flops("conv2d n=1 h=4 w=4 ci=8 co=16 k=1 p=3"), 2.0 * 16 * 8 * 16);
  EXPECT_EQ(flops("conv2d n=1 h=5 w=5 ci=8 co=16 k=3 groups=4"), 2.0 * 9 * 9 * 2 * 16);
  EXPECT_EQ(flops("conv2d n=1 h=9 w=9 ci=8 co=16 k=3 dil=2"), 2.0 * 25 * 9 * 8 * 16);
  EXPECT_EQ(flops("conv3d n=1 d=4 h=5 w=6 ci=2 co=3 k=2"), 2.0 * 3 * 4 * 5 * 8 * 2 * 3);
  EXPECT_EQ(flops("depthwise_conv2d n=1 h=5 w=5 c=7 k=3"), 2.0 * 9 * 9 * 7);
  EXPECT_EQ(flops("capsule_conv2d n=1 h=5 w=5 ci=2 co=3 k=3"), 2.0 * 9 * 9 * 64 * 2 * 3);
  // 36 products of 9 × 128 × 128, plus transforms, in which a select chooses one row at a time;
  // less than a third more.
  const double winograd = flops("winograd_conv2d n=1 h=14 w=14 ci=128 co=128"),
               products = 2.0 * 36 * 9 * 128 * 128;
  EXPECT_GT(winograd, products);
  EXPECT_LT(winograd, 1.3 * products);
}

}  // namespace
}  // namespace hone::op
