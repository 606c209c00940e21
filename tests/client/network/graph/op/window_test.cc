// Convolutions and pooling against loops over the padded image.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;

// A random two-dimensional window over an image [n, c, h, w].
struct Case {
  int64_t n, groups, group_inputs, group_outputs;
  int64_t image[2], kernel[2], stride[2], dilation[2], pad[4];  // begin h, w, end h, w

  explicit Case(std::mt19937& random) {
    const auto draw = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(random);
    };
    n = draw(1, 2);
    groups = draw(1, 3);
    group_inputs = draw(1, 3);
    group_outputs = draw(1, 2);
    for (int d = 0; d < 2; ++d) {
      image[d] = draw(3, 7);
      kernel[d] = draw(1, 3);
      stride[d] = draw(1, 3);
      dilation[d] = draw(1, 2);
      pad[d] = draw(0, kernel[d] - 1);
      pad[2 + d] = draw(0, kernel[d] - 1);
    }
  }
  int64_t channels() const { return groups * group_inputs; }
  int64_t covered(int d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  bool fits() const {
    for (int d = 0; d < 2; ++d) {
      if (image[d] + pad[d] + pad[2 + d] < covered(d)) return false;
    }
    return true;
  }
  int64_t outputs(int d) const {
    return (image[d] + pad[d] + pad[2 + d] - covered(d)) / stride[d] + 1;
  }
  std::map<std::string, Attribute> attributes() const {
    return {{"strides", std::vector<int64_t>{stride[0], stride[1]}},
            {"dilations", std::vector<int64_t>{dilation[0], dilation[1]}},
            {"pads", std::vector<int64_t>(pad, pad + 4)},
            {"kernel_shape", std::vector<int64_t>{kernel[0], kernel[1]}}};
  }
  std::string ToText() const {
    return absl::StrCat(groups, " groups, image ", image[0], "x", image[1], ", kernel ", kernel[0],
                        "x", kernel[1], ", pads ", pad[0], " ", pad[1], " ", pad[2], " ", pad[3]);
  }
  // Calls visit(n, oh, ow, tap h, tap w, h, w, whether the element is in the image).
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (int64_t i = 0; i < outputs(0); ++i) {
      for (int64_t j = 0; j < outputs(1); ++j) {
        for (int64_t r = 0; r < kernel[0]; ++r) {
          for (int64_t s = 0; s < kernel[1]; ++s) {
            const int64_t h = i * stride[0] + r * dilation[0] - pad[0];
            const int64_t w = j * stride[1] + s * dilation[1] - pad[1];
            visit(i * outputs(1) + j, r * kernel[1] + s, h * image[1] + w,
                  h >= 0 && h < image[0] && w >= 0 && w < image[1]);
          }
        }
      }
    }
  }
};

TEST(WindowTest, Convolutions) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    const Case c(random);
    if (!c.fits()) continue;
    SCOPED_TRACE(c.ToText());
    const int64_t co = c.groups * c.group_outputs, plane = c.image[0] * c.image[1];
    const int64_t area = c.kernel[0] * c.kernel[1], out = c.outputs(0) * c.outputs(1);
    const Given x = Floats({c.n, c.channels(), c.image[0], c.image[1]}, random);
    const Given w = Floats({co, c.group_inputs, c.kernel[0], c.kernel[1]}, random, true);
    const Given bias = Floats({co}, random, true);
    std::vector<double> expected(c.n * co * out);
    for (int64_t n = 0; n < c.n; ++n) {
      for (int64_t o = 0; o < co; ++o) {
        for (int64_t p = 0; p < out; ++p)
          expected[(n * co + o) * out + p] = bias.elements[o].real();
        for (int64_t k = 0; k < c.group_inputs; ++k) {
          const int64_t channel = o / c.group_outputs * c.group_inputs + k;
          c.ForEach([&](int64_t to, int64_t tap, int64_t from, bool inside) {
            if (!inside) return;
            expected[(n * co + o) * out + to] +=
                x.elements[(n * c.channels() + channel) * plane + from].real() *
                w.elements[(o * c.group_inputs + k) * area + tap].real();
          });
        }
      }
    }
    auto attributes = c.attributes();
    attributes["group"] = c.groups;
    ExpectNear(Apply("Conv", {x, w, bias}, attributes), expected);
  }
}

// The transpose of a convolution distributes what the convolution gathers.
TEST(WindowTest, TransposedConvolutions) {
  std::mt19937 random(2);
  for (int round = 0; round < 120; ++round) {
    Case c(random);
    if (!c.fits()) continue;
    SCOPED_TRACE(c.ToText());
    // The convolution's image is the result here. It may end with rows that no window meets.
    int64_t rest[2];
    for (int d = 0; d < 2; ++d) {
      rest[d] = (c.image[d] + c.pad[d] + c.pad[2 + d] - c.covered(d)) % c.stride[d];
    }
    const int64_t ci = c.groups * c.group_outputs, co = c.channels();
    const int64_t plane = c.image[0] * c.image[1], area = c.kernel[0] * c.kernel[1];
    const int64_t in = c.outputs(0) * c.outputs(1);
    const Given x = Floats({c.n, ci, c.outputs(0), c.outputs(1)}, random);
    const Given w = Floats({ci, c.group_inputs, c.kernel[0], c.kernel[1]}, random, true);
    std::vector<double> expected(c.n * co * plane);
    for (int64_t n = 0; n < c.n; ++n) {
      for (int64_t i = 0; i < ci; ++i) {
        for (int64_t k = 0; k < c.group_inputs; ++k) {
          const int64_t channel = i / c.group_outputs * c.group_inputs + k;
          c.ForEach([&](int64_t from, int64_t tap, int64_t to, bool inside) {
            if (!inside) return;
            expected[(n * co + channel) * plane + to] +=
                x.elements[(n * ci + i) * in + from].real() *
                w.elements[(i * c.group_inputs + k) * area + tap].real();
          });
        }
      }
    }
    auto attributes = c.attributes();
    attributes["group"] = c.groups;
    attributes["output_padding"] = std::vector<int64_t>{rest[0], rest[1]};
    ExpectNear(Apply("ConvTranspose", {x, w}, attributes), expected);
  }
}

// One dimension of a transposed convolution against the sum over all inputs and taps, where strides
// and dilations have common divisors.
TEST(WindowTest, TransposedConvolutionsWithStridesAndDilations) {
  std::mt19937 random(21);
  for (int64_t stride = 1; stride <= 6; ++stride) {
    for (int64_t dilation = 1; dilation <= 6; ++dilation) {
      for (const int64_t begin : {0, 1, 3}) {
        const int64_t n = 5, kernel = 4, outputs = (n - 1) * stride + 3 * dilation + 1 - begin;
        if (outputs < 1) continue;
        SCOPED_TRACE(absl::StrCat("stride ", stride, ", dilation ", dilation, ", pad ", begin));
        const Given x = Floats({1, 1, n}, random), w = Floats({1, 1, kernel}, random, true);
        std::vector<double> expected(outputs);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t r = 0; r < kernel; ++r) {
            const int64_t o = i * stride + r * dilation - begin;
            if (o >= 0) expected[o] += x.elements[i].real() * w.elements[r].real();
          }
        }
        ExpectNear(Apply("ConvTranspose", {x, w},
                         {{"strides", std::vector<int64_t>{stride}},
                          {"dilations", std::vector<int64_t>{dilation}},
                          {"pads", std::vector<int64_t>{begin, 0}}}),
                   expected);
      }
    }
  }
}

TEST(WindowTest, Pooling) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const Case c(random);
    if (!c.fits()) continue;
    SCOPED_TRACE(c.ToText());
    const int64_t planes = c.n * c.channels(), plane = c.image[0] * c.image[1];
    const int64_t out = c.outputs(0) * c.outputs(1);
    const Given x = Floats({c.n, c.channels(), c.image[0], c.image[1]}, random);
    std::vector<double> most(planes * out, -std::numeric_limits<double>::infinity());
    std::vector<double> mean(planes * out), padded(planes * out), count(planes * out);
    for (int64_t q = 0; q < planes; ++q) {
      c.ForEach([&](int64_t to, int64_t, int64_t from, bool inside) {
        if (!inside) return;
        const double element = x.elements[q * plane + from].real();
        most[q * out + to] = std::max(most[q * out + to], element);
        mean[q * out + to] += element;
        ++count[q * out + to];
      });
      for (int64_t p = q * out; p < (q + 1) * out; ++p) {
        padded[p] = mean[p] / static_cast<double>(c.kernel[0] * c.kernel[1]);
        mean[p] /= count[p];
      }
    }
    auto attributes = c.attributes();
    ExpectNear(Apply("MaxPool", {x}, attributes), most);
    ExpectNear(Apply("AveragePool", {x}, attributes), mean);
    attributes["count_include_pad"] = int64_t{1};
    ExpectNear(Apply("AveragePool", {x}, attributes), padded);
  }
}

TEST(WindowTest, PlacesOfMaxima) {
  const Given x{TensorType{DType::kF32, {1, 2, 2, 3}},
                {1.0, 2.0, 3.0, 4.0, 9.0, 6.0, 9.0, 2.0, 3.0, 4.0, 5.0, 6.0}};
  std::map<std::string, Attribute> attributes = {{"kernel_shape", std::vector<int64_t>{2, 2}},
                                                 {"strides", std::vector<int64_t>{2, 2}},
                                                 {"pads", std::vector<int64_t>{0, 1, 0, 0}}};
  auto outputs = Apply("MaxPool", {x}, attributes, 2);
  ExpectNear(outputs, {4, 9, 9, 6}, 0);
  ExpectNear(outputs, {3, 4, 6, 11}, 1);
  attributes["storage_order"] = int64_t{1};
  outputs = Apply("MaxPool", {x}, attributes, 2);
  ExpectNear(outputs, {1, 3, 6, 11}, 1);
  // Of equal maxima, the first one in row-major order counts in both orders.
  const Given equal{TensorType{DType::kF32, {1, 2, 2, 2}},
                    {1.0, 5.0, 5.0, 0.0, 7.0, 7.0, 7.0, 7.0}};
  attributes = {{"kernel_shape", std::vector<int64_t>{2, 2}}};
  ExpectNear(Apply("MaxPool", {equal}, attributes, 2), {1, 4}, 1);
  attributes["storage_order"] = int64_t{1};
  outputs = Apply("MaxPool", {equal}, attributes, 2);
  ExpectNear(outputs, {5, 7}, 0);
  ExpectNear(outputs, {2, 4}, 1);
}

TEST(WindowTest, CeilModeIgnoresWindowsThatBeginAfterTheImage) {
  std::mt19937 random(4);
  const Given x = Floats({1, 1, 5}, random);
  const auto type = [&](int64_t stride, int64_t end) {
    return TypeOf("MaxPool", {x},
                  {{"kernel_shape", std::vector<int64_t>{2}},
                   {"strides", std::vector<int64_t>{stride}},
                   {"pads", std::vector<int64_t>{0, end}},
                   {"ceil_mode", int64_t{1}}})
        ->shape;
  };
  EXPECT_EQ(type(2, 0), std::vector<int64_t>({1, 1, 3}));  // 0-1, 2-3, 4-
  EXPECT_EQ(type(5, 1), std::vector<int64_t>({1, 1, 1}));  // the second would begin at 5
}

TEST(WindowTest, GlobalPooling) {
  std::mt19937 random(5);
  const Given x = Floats({2, 3, 4, 5}, random);
  std::vector<double> most, mean;
  for (int64_t p = 0; p < 6; ++p) {
    most.push_back(-10);
    mean.push_back(0);
    for (int64_t i = 0; i < 20; ++i) {
      most[p] = std::max(most[p], x.elements[p * 20 + i].real());
      mean[p] += x.elements[p * 20 + i].real() / 20;
    }
  }
  ExpectNear(Apply("GlobalMaxPool", {x}), most);
  ExpectNear(Apply("GlobalAveragePool", {x}), mean);
}

TEST(WindowTest, QuantizedConvolutions) {
  std::mt19937 random(6);
  for (int round = 0; round < 40; ++round) {
    const Case c(random);
    if (!c.fits()) continue;
    SCOPED_TRACE(c.ToText());
    const int64_t co = c.groups * c.group_outputs, plane = c.image[0] * c.image[1];
    const int64_t area = c.kernel[0] * c.kernel[1], out = c.outputs(0) * c.outputs(1);
    const Given x = Wholes(DType::kU8, {c.n, c.channels(), c.image[0], c.image[1]}, 0, 255, random);
    const Given w =
        Wholes(DType::kI8, {co, c.group_inputs, c.kernel[0], c.kernel[1]}, -128, 127, random, true);
    const Given x_zero = Wholes(DType::kU8, {}, 0, 255, random, true);
    const Given w_zero =
        Wholes(DType::kI8, {co}, round % 2 == 0 ? 0 : -9, round % 2 == 0 ? 0 : 9, random, true);
    std::vector<double> expected(c.n * co * out);
    for (int64_t n = 0; n < c.n; ++n) {
      for (int64_t o = 0; o < co; ++o) {
        for (int64_t k = 0; k < c.group_inputs; ++k) {
          const int64_t channel = o / c.group_outputs * c.group_inputs + k;
          c.ForEach([&](int64_t to, int64_t tap, int64_t from, bool inside) {
            if (!inside) return;
            expected[(n * co + o) * out + to] += static_cast<double>(
                (x.elements[(n * c.channels() + channel) * plane + from].whole() -
                 x_zero.elements[0].whole()) *
                (w.elements[(o * c.group_inputs + k) * area + tap].whole() -
                 w_zero.elements[o].whole()));
          });
        }
      }
    }
    auto attributes = c.attributes();
    attributes["group"] = c.groups;
    ExpectNear(Apply("ConvInteger", {x, w, x_zero, w_zero}, attributes), expected);
    // The same, scaled to i8.
    const Given y_zero = Wholes(DType::kI8, {}, -20, 20, random, true);
    for (double& element : expected) {
      element = std::nearbyint(element * 0.001) + y_zero.elements[0].real();
      element = std::min(std::max(element, -128.0), 127.0);
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, Apply("QLinearConv",
                                                       {x, Number(0.5F), x_zero, w, Number(0.5F),
                                                        w_zero, Number(250.0F), y_zero},
                                                       attributes));
    for (size_t i = 0; i < expected.size(); ++i) {  // a tie may round to either side
      EXPECT_NEAR(actual[0][i].real(), expected[i], 1);
    }
  }
}

// The sum of the elements exceeds f16, their mean does not.
TEST(WindowTest, MeansOfManyShortFloats) {
  const Given x{TensorType{DType::kF16, {1, 1, 100, 100}}, ir::Scalars(10'000, 10.0)};
  ExpectNear(Apply("GlobalAveragePool", {x}), {10});
  ExpectNear(Apply("AveragePool", {x}, {{"kernel_shape", std::vector<int64_t>{100, 100}}}), {10});
}

TEST(WindowTest, Errors) {
  GoldenOfTest golden;
  std::mt19937 random(7);
  const Given x = Floats({1, 4, 5, 5}, random);
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  golden.Add(message(Apply("Conv", {x, Floats({2, 3, 3, 3}, random)})));
  golden.Add(message(Apply("Conv", {x, Floats({2, 4, 6, 3}, random)})));
  golden.Add(message(Apply("Conv", {x, Floats({2, 4, 3, 3}, random), Floats({3}, random)})));
  golden.Add(message(
      Apply("MaxPool", {x},
            {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"auto_pad", std::string("BIG")}})));
  golden.Add(message(Apply("MaxPool", {x}, {{"kernel_shape", std::vector<int64_t>{2}}})));
  golden.Add(message(Apply(
      "MaxPool", {x},
      {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{0, 1}}})));
}

}  // namespace
}  // namespace hone::graph
