// Quantization against the C library's rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(QuantizeTest, RoundsToEvenAndSaturates) {
  const Given x{TensorType{DType::kF32, {6}}, {-1000.0, -1.0, 1.0, 3.0, 5.0, 1000.0}};
  ExpectNear(Apply("QuantizeLinear", {x, Number(2)}), {0, 0, 0, 2, 2, 255});
  const Given zero{TensorType{DType::kI8, {}}, {3}, true};
  ExpectNear(Apply("QuantizeLinear", {x, Number(2), zero}), {-128, 3, 3, 5, 5, 127});
  const Given f8{TensorType{DType::kF8E4M3, {}}, {0.0}, true};
  ExpectNear(Apply("QuantizeLinear", {x, Number(2), f8}), {-448, -0.5, 0.5, 1.5, 2.5, 448});
}

TEST(QuantizeTest, PerAxis) {
  std::mt19937 random(1);
  const Given x = Floats({2, 3, 4}, random);
  const Given scale{TensorType{DType::kF32, {3}}, {0.5, 0.25, 0.125}, true};
  const Given zero{TensorType{DType::kU8, {3}}, {10, 20, 30}, true};
  std::vector<double> quantized, back;
  Given bytes{TensorType{DType::kU8, {2, 3, 4}}, {}};
  for (int64_t i = 0; i < 24; ++i) {
    const double s = scale.elements[i / 4 % 3].real(), z = zero.elements[i / 4 % 3].real();
    quantized.push_back(std::nearbyint(x.elements[i].real() / s) + z);
    bytes.elements.emplace_back(static_cast<int64_t>(quantized.back()));
    back.push_back((quantized.back() - z) * s);
  }
  ExpectNear(Apply("QuantizeLinear", {x, scale, zero}), quantized);
  ExpectNear(Apply("DequantizeLinear", {bytes, scale, zero}), back);
  GoldenOfTest().Add(
      Apply("QuantizeLinear", {x, scale, zero}, {{"axis", int64_t{2}}}).status().message());
}

// Weights of language models: 4 bits, and a scale for each block of a column.
TEST(QuantizeTest, DequantizesBlocksOfFourBits) {
  GoldenOfTest golden;
  std::mt19937 random(2);
  for (const DType dtype : {DType::kI4, DType::kU4}) {
    const int64_t least = dtype == DType::kI4 ? -8 : 0;
    const Given weights = Wholes(dtype, {7, 3}, least, least + 15, random, true);
    const Given scale = Floats({3, 3}, random, true);  // blocks of 3, 3 and 1
    const Given zero = Wholes(dtype, {3, 3}, least, least + 15, random, true);
    std::vector<double> expected;
    for (int64_t i = 0; i < 21; ++i) {
      const int64_t at = i / 3 / 3 * 3 + i % 3;
      expected.push_back((weights.elements[i].real() - zero.elements[at].real()) *
                         scale.elements[at].real());
    }
    const std::map<std::string, Attribute> blocks = {{"axis", int64_t{0}},
                                                     {"block_size", int64_t{3}}};
    ExpectNear(Apply("DequantizeLinear", {weights, scale, zero}, blocks), expected);
    golden.Add(Apply("DequantizeLinear", {weights, Floats({2, 3}, random, true)}, blocks)
                   .status()
                   .message());
    golden.Add(Apply("Transpose", {weights}).status().message());
  }
}

// ONNX Runtime's quantization tools write such models.
TEST(QuantizeTest, OneScaleMayHaveAnotherRankThanItsZeroPoint) {
  const Given bytes{TensorType{DType::kI8, {2}}, {1, 2}};
  const Given scale{TensorType{DType::kF32, {1}}, {0.5}, true};
  const Given zero{TensorType{DType::kI8, {}}, {3}, true};
  ExpectNear(Apply("DequantizeLinear", {bytes, scale, zero}), {-1, -0.5});
}

TEST(QuantizeTest, DynamicRangeContainsZero) {
  const Given x{TensorType{DType::kF32, {3}}, {1.0, 2.0, 5.1}};
  const auto outputs = Apply("DynamicQuantizeLinear", {x}, {}, 3);
  ExpectNear(outputs, {50, 100, 255}, 0);
  ExpectNear(outputs, {0.02}, 1);
  ExpectNear(outputs, {0}, 2);
}

}  // namespace
}  // namespace hone::graph
