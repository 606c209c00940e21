// Operators of language models against loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"

namespace hone::graph {
namespace {

using ir::DType;
using Options = std::map<std::string, Attribute>;

double Real(const Given& given, int64_t i) { return given.elements[i].real(); }

TEST(SwishTest, HasAFactor) {
  const Given x{TensorType{DType::kF32, {3}}, {-1.0, 0.0, 2.0}};
  std::vector<double> expected;
  for (const double each : {-1.0, 0.0, 2.0}) {
    expected.push_back(each / (1 + std::exp(-1.5 * each)));
  }
  ExpectNear(Apply("Swish", {x}, {{"alpha", 1.5}}), expected);
}

// [batch, heads, sequence, size]; cosines and sines by position or by token.
std::vector<double> Rotate(const Given& x, int64_t rotated, bool interleaved,
                           const std::function<double(int64_t, int64_t, int64_t)>& cos,
                           const std::function<double(int64_t, int64_t, int64_t)>& sin) {
  const std::vector<int64_t>& shape = x.type->shape;
  const int64_t size = shape[3];
  std::vector<double> result;
  for (int64_t at = 0; at < x.type->elements(); ++at) {
    const int64_t d = at % size, token = at / size % shape[2], b = at / size / shape[2] / shape[1];
    const int64_t row = at - d;
    if (d >= rotated) {
      result.push_back(Real(x, at));
      continue;
    }
    const int64_t pair = interleaved ? d / 2 : d % (rotated / 2);
    const int64_t first = interleaved ? 2 * pair : pair;
    const int64_t second = interleaved ? 2 * pair + 1 : pair + rotated / 2;
    const double c = cos(b, token, pair), s = sin(b, token, pair);
    result.push_back(d == first ? c * Real(x, row + first) - s * Real(x, row + second)
                                : s * Real(x, row + first) + c * Real(x, row + second));
  }
  return result;
}

TEST(RotaryEmbeddingTest, RotatesPairs) {
  std::mt19937 random(1);
  const Given x = Floats({2, 3, 5, 8}, random);
  for (const int64_t rotated : {8, 4}) {
    for (const int64_t interleaved : {0, 1}) {
      const Options options = {{"interleaved", interleaved}, {"rotary_embedding_dim", rotated}};
      const int64_t pairs = rotated / 2;
      const Given cos = Floats({7, pairs}, random, true), sin = Floats({7, pairs}, random);
      const Given positions = Wholes(DType::kI64, {2, 5}, 0, 6, random);
      const auto by_position = [&](const Given& table) {
        return [&](int64_t b, int64_t token, int64_t pair) {
          return Real(table, positions.elements[b * 5 + token].whole() * pairs + pair);
        };
      };
      ExpectNear(Apply("RotaryEmbedding", {x, cos, sin, positions}, options),
                 Rotate(x, rotated, interleaved != 0, by_position(cos), by_position(sin)));
      const Given row = Wholes(DType::kI32, {1, 5}, 0, 6, random);
      const auto by_row = [&](const Given& table) {
        return [&](int64_t, int64_t token, int64_t pair) {
          return Real(table, row.elements[token].whole() * pairs + pair);
        };
      };
      ExpectNear(Apply("RotaryEmbedding", {x, cos, sin, row}, options),
                 Rotate(x, rotated, interleaved != 0, by_row(cos), by_row(sin)));
      const Given own_cos = Floats({2, 5, pairs}, random), own_sin = Floats({2, 5, pairs}, random);
      const auto own = [&](const Given& table) {
        return [&](int64_t b, int64_t token, int64_t pair) {
          return Real(table, (b * 5 + token) * pairs + pair);
        };
      };
      ExpectNear(Apply("RotaryEmbedding", {x, own_cos, own_sin}, options),
                 Rotate(x, rotated, interleaved != 0, own(own_cos), own(own_sin)));
    }
  }
}

TEST(RotaryEmbeddingTest, ConstantPositionsMustExist) {
  std::mt19937 random(5);
  const Given x = Floats({1, 1, 2, 4}, random), table = Floats({7, 2}, random);
  const auto rotates = [&](int64_t position) {
    const Given positions{TensorType{DType::kI64, {1, 2}}, {0, position}, /*constant=*/true};
    return Apply("RotaryEmbedding", {x, table, table, positions}).ok();
  };
  EXPECT_TRUE(rotates(6));
  for (const int64_t position : {7, -1}) EXPECT_FALSE(rotates(position)) << position;
}

TEST(TensorScatterTest, WritesEachBatchAtItsPlace) {
  std::mt19937 random(2);
  const Given cache = Floats({2, 3, 6, 2}, random);
  for (const int64_t count : {1, 2, 6}) {
    const Given update = Floats({2, 3, count, 2}, random);
    for (const bool circular : {false, true}) {
      const std::vector<int64_t> places = circular     ? std::vector<int64_t>{5, 13}
                                          : count == 6 ? std::vector<int64_t>{0, 0}
                                                       : std::vector<int64_t>{4, 1};
      std::vector<double> expected;
      for (int64_t at = 0; at < 72; ++at) expected.push_back(Real(cache, at));
      for (int64_t at = 0; at < update.type->elements(); ++at) {
        const int64_t d = at % 2, i = at / 2 % count, row = at / 2 / count;
        const int64_t place = (places[row / 3] + i) % 6;
        expected[(row * 6 + place) * 2 + d] = Real(update, at);
      }
      const Given indices{TensorType{DType::kI64, {2}}, ir::Scalars(places.begin(), places.end())};
      ExpectNear(Apply("TensorScatter", {cache, update, indices},
                       {{"mode", std::string(circular ? "circular" : "linear")}}),
                 expected);
    }
    std::vector<double> first;
    for (int64_t at = 0; at < 72; ++at) {
      const int64_t place = at / 2 % 6;
      first.push_back(place < count ? Real(update, (at / 12 * count + place) * 2 + at % 2)
                                    : Real(cache, at));
    }
    ExpectNear(Apply("TensorScatter", {cache, update}, {{"axis", int64_t{2}}}), first);
  }
}

TEST(MatMulNBitsTest, ScalesBlocksOfColumns) {
  std::mt19937 random(3);
  const int64_t inner = 37, columns = 5, block = 16, blocks = 3;
  const Given a = Floats({2, 3, inner}, random);
  const Given scales = Floats({blocks, columns}, random, true);
  for (const DType dtype : {DType::kU4, DType::kI4, DType::kU8, DType::kI8}) {
    const bool is_signed = dtype == DType::kI4 || dtype == DType::kI8;
    const int64_t most = ir::IsPacked(dtype) ? 15 : 255, least = is_signed ? -(most + 1) / 2 : 0;
    const Given weights = Wholes(dtype, {inner, columns}, least, least + most, random, true);
    const Given zeros = Wholes(dtype, {blocks, columns}, least, least + most, random, true);
    for (const bool has_zeros : {false, true}) {
      std::vector<double> expected;
      for (int64_t row = 0; row < 6; ++row) {
        for (int64_t n = 0; n < columns; ++n) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k) {
            const int64_t of_block = k / block * columns + n;
            sum += Real(a, row * inner + k) *
                   (Real(weights, k * columns + n) - (has_zeros ? Real(zeros, of_block) : 0)) *
                   Real(scales, of_block);
          }
          expected.push_back(sum);
        }
      }
      std::vector<Given> inputs = {a, weights, scales};
      if (has_zeros) inputs.push_back(zeros);
      ExpectNear(Apply("com.microsoft.MatMulNBits", inputs, {{"block_size", block}}), expected);
    }
  }
}

TEST(AttentionOperatorsTest, Errors) {
  GoldenOfTest golden;
  std::mt19937 random(4);
  const auto add = [&](const std::string& op, const std::vector<Given>& inputs,
                       const Options& options = {}) {
    golden.Add(Apply(op, inputs, options).status().message());
  };
  const Given x = Floats({2, 3, 5, 8}, random), table = Floats({7, 4}, random);
  add("RotaryEmbedding", {Floats({2, 5, 24}, random), table, table});
  add("RotaryEmbedding", {x, table, table});
  add("RotaryEmbedding", {x, table, table}, {{"rotary_embedding_dim", int64_t{10}}});
  add("RotaryEmbedding", {x, table, table, Wholes(DType::kI64, {5}, 0, 6, random)});
  add("RotaryEmbedding", {x, table, table, Floats({2, 5}, random)});
  add("TensorScatter", {x, Floats({2, 3, 6, 8}, random)});
  add("TensorScatter", {x, x}, {{"axis", int64_t{0}}});
  add("TensorScatter", {x, x}, {{"mode", std::string("ring")}});
  add("TensorScatter", {x, x, Wholes(DType::kI64, {3}, 0, 0, random)});
  const Given weights = Wholes(DType::kU4, {8, 6}, 0, 15, random, true);
  add("com.microsoft.MatMulNBits", {x, weights, Floats({1, 6}, random)});
  add("com.microsoft.MatMulNBits", {x, weights, Floats({2, 6}, random)},
      {{"block_size", int64_t{16}}});
  add("com.microsoft.MatMulNBits", {x, weights, Floats({1, 6}, random), Floats({1, 6}, random)},
      {{"block_size", int64_t{16}}});
  add("com.microsoft.MatMulNBits", {x, Floats({8, 6}, random), Floats({1, 6}, random)},
      {{"block_size", int64_t{16}}});
}

}  // namespace
}  // namespace hone::graph
