// Products, norms, softmax and reductions against loops in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;
using Numbers = std::vector<double>;

// Applies a function to every row of x, [a, n, b], along the middle dimension.
Numbers PerRow(const Given& x, int64_t axis,
               const std::function<Numbers(const Numbers&)>& function) {
  const std::vector<int64_t>& shape = x.type->shape;
  int64_t a = 1, b = 1;
  for (int64_t d = 0; d < axis; ++d) a *= shape[d];
  for (size_t d = axis + 1; d < shape.size(); ++d) b *= shape[d];
  const int64_t n = shape[axis];
  Numbers result;
  int64_t length = 0;
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; ++j) {
      Numbers row;
      for (int64_t k = 0; k < n; ++k) row.push_back(x.elements[(i * n + k) * b + j].real());
      const Numbers out = function(row);
      length = static_cast<int64_t>(out.size());
      result.resize(a * b * length);
      for (int64_t k = 0; k < length; ++k) result[(i * length + k) * b + j] = out[k];
    }
  }
  return result;
}

Numbers Softmax(const Numbers& row) {
  double sum = 0;
  Numbers result;
  for (const double x : row) sum += std::exp(x);
  for (const double x : row) result.push_back(std::exp(x) / sum);
  return result;
}

TEST(RowsTest, Softmax) {
  std::mt19937 random(1);
  const Given x = Floats({3, 4, 5}, random);
  for (int64_t axis = -1; axis < 3; ++axis) {
    SCOPED_TRACE(axis);
    const int64_t at = axis < 0 ? 2 : axis;
    ExpectNear(Apply("Softmax", {x}, {{"axis", axis}}), PerRow(x, at, Softmax));
    ExpectNear(Apply("LogSoftmax", {x}, {{"axis", axis}}), PerRow(x, at, [](const Numbers& row) {
                 Numbers result = Softmax(row);
                 for (double& y : result) y = std::log(y);
                 return result;
               }));
    ExpectNear(Apply("Hardmax", {x}, {{"axis", axis}}), PerRow(x, at, [](const Numbers& row) {
                 Numbers result(row.size());
                 result[std::max_element(row.begin(), row.end()) - row.begin()] = 1;
                 return result;
               }));
  }
}

TEST(RowsTest, SoftmaxOfLargeElements) {
  const Given x{TensorType{DType::kF32, {2}}, {1000.0, 1000.0}};
  ExpectNear(Apply("Softmax", {x}), {0.5, 0.5});
  ExpectNear(Apply("LogSoftmax", {x}), {-std::log(2), -std::log(2)});
  ExpectNear(Apply("ReduceLogSumExp", {x}), {1000 + std::log(2)});
}

double Total(const Numbers& row, const std::function<double(double)>& f) {
  double sum = 0;
  for (const double x : row) sum += f(x);
  return sum;
}

TEST(RowsTest, Reductions) {
  const std::map<std::string, std::function<double(const Numbers&)>> reductions = {
      {"ReduceL1",
       [](const Numbers& row) { return Total(row, [](double x) { return std::fabs(x); }); }},
      {"ReduceL2",
       [](const Numbers& row) { return std::sqrt(Total(row, [](double x) { return x * x; })); }},
      {"ReduceLogSum",
       [](const Numbers& row) { return std::log(Total(row, [](double x) { return x; })); }},
      {"ReduceLogSumExp",
       [](const Numbers& row) {
         return std::log(Total(row, [](double x) { return std::exp(x); }));
       }},
      {"ReduceMax", [](const Numbers& row) { return *std::max_element(row.begin(), row.end()); }},
      {"ReduceMean",
       [](const Numbers& row) {
         return Total(row, [](double x) { return x; }) / static_cast<double>(row.size());
       }},
      {"ReduceMin", [](const Numbers& row) { return *std::min_element(row.begin(), row.end()); }},
      {"ReduceProd",
       [](const Numbers& row) {
         double p = 1;
         for (const double x : row) p *= x;
         return p;
       }},
      {"ReduceSum", [](const Numbers& row) { return Total(row, [](double x) { return x; }); }},
      {"ReduceSumSquare",
       [](const Numbers& row) { return Total(row, [](double x) { return x * x; }); }},
  };
  std::mt19937 random(2);
  Given x = Floats({3, 4, 5}, random);
  for (ir::Scalar& element : x.elements) element = std::fabs(element.real());
  for (const auto& [name, reduce] : reductions) {
    for (int64_t axis = 0; axis < 3; ++axis) {
      SCOPED_TRACE(name);
      const Numbers expected =
          PerRow(x, axis, [&](const Numbers& row) { return Numbers{reduce(row)}; });
      ExpectNear(Apply(name, {x, List({axis})}), expected);
      ExpectNear(Apply(name, {x, List({axis - 3})}, {{"keepdims", int64_t{0}}}), expected);
    }
    Numbers all;
    for (const ir::Scalar& element : x.elements) all.push_back(element.real());
    ExpectNear(Apply(name, {x}, {{"keepdims", int64_t{0}}}), {reduce(all)});
    ExpectNear(Apply(name, {x, List({})}), {reduce(all)});
  }
}

// The totals exceed f16, the results do not.
TEST(RowsTest, ReductionsOfManyShortFloats) {
  const Given x{TensorType{DType::kF16, {70'000}}, ir::Scalars(70'000, 1.0)};
  const auto first = [&](const std::string& op) {
    const auto result = Apply(op, {x});
    return result.ok() ? (*result)[0][0].real() : NAN;
  };
  EXPECT_EQ(first("ReduceMean"), 1);
  EXPECT_NEAR(first("ReduceL2"), std::sqrt(70'000), 0.25);
  EXPECT_NEAR(first("ReduceLogSum"), std::log(70'000), 0.01);
  EXPECT_NEAR(first("ReduceLogSumExp"), 1 + std::log(70'000), 0.01);
}

TEST(RowsTest, ReductionsOverSeveralAxesAndNone) {
  GoldenOfTest golden;
  std::mt19937 random(3);
  const Given x = Floats({2, 3, 4}, random);
  Numbers expected(3);
  for (int64_t i = 0; i < 24; ++i) expected[i / 4 % 3] += x.elements[i].real();
  ExpectNear(Apply("ReduceSum", {x, List({2, 0})}), expected);
  EXPECT_EQ(TypeOf("ReduceSum", {x, List({2, 0})})->shape, std::vector<int64_t>({1, 3, 1}));
  EXPECT_EQ(TypeOf("ReduceSum", {x, List({2, 0})}, {{"keepdims", int64_t{0}}})->shape,
            std::vector<int64_t>({3}));
  Numbers same;
  for (const ir::Scalar& element : x.elements) same.push_back(element.real());
  ExpectNear(Apply("ReduceSum", {x, List({})}, {{"noop_with_empty_axes", int64_t{1}}}), same);
  golden.Add(Apply("ReduceSum", {x, List({3})}).status().message());
  golden.Add(Apply("ReduceSum", {x, List({1, -2})}).status().message());
}

TEST(RowsTest, ReductionsOfBoolsAreAnyAndAll) {
  const Given x{TensorType{DType::kBool, {2, 2}}, {0, 1, 1, 1}};
  ExpectNear(Apply("ReduceMax", {x, List({1})}), {1, 1});
  ExpectNear(Apply("ReduceMin", {x, List({1})}), {0, 1});
}

TEST(RowsTest, PlacesOfExtremes) {
  const Given x{TensorType{DType::kF32, {2, 4}}, {1.0, 5.0, 5.0, 1.0, 3.0, 3.0, 2.0, 2.0}};
  ExpectNear(Apply("ArgMax", {x}, {{"axis", int64_t{1}}}), {1, 0});
  ExpectNear(Apply("ArgMin", {x}, {{"axis", int64_t{1}}}), {0, 2});
  const std::map<std::string, Attribute> last = {{"axis", int64_t{-1}},
                                                 {"select_last_index", int64_t{1}}};
  ExpectNear(Apply("ArgMax", {x}, last), {2, 1});
  ExpectNear(Apply("ArgMin", {x}, last), {3, 3});
}

TEST(RowsTest, CumulativeSums) {
  const Given x{TensorType{DType::kF32, {4}}, {1.0, 2.0, 3.0, 4.0}};
  const auto sum = [&](int64_t exclusive, int64_t reverse) {
    return Apply("CumSum", {x, List({0})}, {{"exclusive", exclusive}, {"reverse", reverse}});
  };
  ExpectNear(sum(0, 0), {1, 3, 6, 10});
  ExpectNear(sum(1, 0), {0, 1, 3, 6});
  ExpectNear(sum(0, 1), {10, 9, 7, 4});
  ExpectNear(sum(1, 1), {9, 7, 4, 0});
}

// (x - mean) / sqrt(variance + 0.01) of a row.
Numbers Normalize(const Numbers& row) {
  const double n = static_cast<double>(row.size());
  const double mean = Total(row, [](double x) { return x; }) / n;
  const double variance = Total(row, [&](double x) { return (x - mean) * (x - mean); }) / n;
  Numbers result;
  for (const double x : row) result.push_back((x - mean) / std::sqrt(variance + 0.01));
  return result;
}

TEST(RowsTest, LayerNormalization) {
  std::mt19937 random(4);
  for (int64_t axis = 0; axis < 3; ++axis) {
    SCOPED_TRACE(axis);
    const Given x = Floats({2, 3, 4}, random);
    std::vector<int64_t> tail(x.type->shape.begin() + axis, x.type->shape.end());
    const Given scale = Floats(tail, random, true), bias = Floats(tail, random, true);
    const int64_t n = scale.type->elements();
    Given flat = x;
    flat.type->shape = {24 / n, n};
    Numbers expected = PerRow(flat, 1, Normalize);
    for (int64_t i = 0; i < 24; ++i) {
      expected[i] = expected[i] * scale.elements[i % n].real() + bias.elements[i % n].real();
    }
    const auto outputs =
        Apply("LayerNormalization", {x, scale, bias}, {{"axis", axis}, {"epsilon", 0.01}}, 3);
    ExpectNear(outputs, expected);
    const Numbers mean = PerRow(flat, 1, [](const Numbers& row) {
      return Numbers{Total(row, [](double x) { return x; }) / static_cast<double>(row.size())};
    });
    ExpectNear(outputs, mean, 1);
    const Numbers inverse = PerRow(flat, 1, [](const Numbers& row) {
      return Numbers{(Normalize(row)[1] - Normalize(row)[0]) / (row[1] - row[0])};
    });
    ExpectNear(outputs, inverse, 2);
  }
}

TEST(RowsTest, LayerNormalizationIgnoresALargeOffset) {
  const Given x{TensorType{DType::kF32, {4}}, {1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3}};
  const Given scale{TensorType{DType::kF32, {4}}, {1.0, 1.0, 1.0, 1.0}};
  ExpectNear(Apply("LayerNormalization", {x, scale}, {{"epsilon", 0.01}}), Normalize({0, 1, 2, 3}));
}

TEST(RowsTest, RmsNormalization) {
  std::mt19937 random(5);
  const Given x = Floats({3, 5}, random), scale = Floats({5}, random, true);
  Numbers expected = PerRow(x, 1, [](const Numbers& row) {
    Numbers result;
    const double mean = Total(row, [](double v) { return v * v; }) / 5;
    for (const double v : row) result.push_back(v / std::sqrt(mean + 1e-5));
    return result;
  });
  for (int i = 0; i < 15; ++i) expected[i] *= scale.elements[i % 5].real();
  ExpectNear(Apply("RMSNormalization", {x, scale}), expected);
}

TEST(RowsTest, NormalizationsOfChannels) {
  std::mt19937 random(6);
  const Given x = Floats({2, 4, 3, 2}, random);
  const Given scale = Floats({4}, random, true), bias = Floats({4}, random, true);
  for (const int64_t groups : {1, 2, 4}) {
    SCOPED_TRACE(groups);
    Given flat = x;
    flat.type->shape = {2 * groups, 24 / groups};
    Numbers expected = PerRow(flat, 1, Normalize);
    for (int64_t i = 0; i < 48; ++i) {
      const int64_t c = i / 6 % 4;
      expected[i] = expected[i] * scale.elements[c].real() + bias.elements[c].real();
    }
    ExpectNear(
        Apply("GroupNormalization", {x, scale, bias}, {{"num_groups", groups}, {"epsilon", 0.01}}),
        expected);
    if (groups == 4) {
      ExpectNear(Apply("InstanceNormalization", {x, scale, bias}, {{"epsilon", 0.01}}), expected);
    }
  }
  GoldenOfTest().Add(Apply("GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t{3}}})
                         .status()
                         .message());
}

TEST(RowsTest, BatchNormalization) {
  std::mt19937 random(7);
  const Given x = Floats({2, 3, 4}, random);
  const Given scale = Floats({3}, random, true), bias = Floats({3}, random, true);
  const Given mean = Floats({3}, random, true);
  Given variance = Floats({3}, random, true);
  for (ir::Scalar& v : variance.elements) v = std::fabs(v.real());
  Numbers expected;
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t c = i / 4 % 3;
    expected.push_back((x.elements[i].real() - mean.elements[c].real()) /
                           std::sqrt(variance.elements[c].real() + 1e-5) *
                           scale.elements[c].real() +
                       bias.elements[c].real());
  }
  ExpectNear(Apply("BatchNormalization", {x, scale, bias, mean, variance}), expected);
  GoldenOfTest().Add(
      Apply("BatchNormalization", {x, scale, bias, mean, variance}, {{"training_mode", int64_t{1}}})
          .status()
          .message());
}

TEST(RowsTest, NormsOfRows) {
  std::mt19937 random(8);
  const Given x = Floats({2, 5, 3}, random);
  for (const int64_t p : {1, 2}) {
    ExpectNear(Apply("LpNormalization", {x}, {{"axis", int64_t{1}}, {"p", p}}),
               PerRow(x, 1, [&](const Numbers& row) {
                 double norm = 0;
                 for (const double v : row) norm += std::pow(std::fabs(v), p);
                 norm = std::pow(norm, 1.0 / static_cast<double>(p));
                 Numbers result;
                 for (const double v : row) result.push_back(v / norm);
                 return result;
               }));
  }
  for (const int64_t size : {2, 3}) {
    ExpectNear(Apply("LRN", {x}, {{"size", size}, {"alpha", 0.5}, {"beta", 0.6}, {"bias", 2.0}}),
               PerRow(x, 1, [&](const Numbers& row) {
                 Numbers result;
                 for (int64_t c = 0; c < 5; ++c) {
                   double squares = 0;
                   const int64_t last = std::min<int64_t>(4, c + size / 2);
                   for (int64_t k = std::max<int64_t>(0, c - (size - 1) / 2); k <= last; ++k) {
                     squares += row[k] * row[k];
                   }
                   const double base = 2 + 0.5 / static_cast<double>(size) * squares;
                   result.push_back(row[c] / std::pow(base, 0.6));
                 }
                 return result;
               }));
  }
}

// The element of a matrix, which may be stored transposed.
double At(const Given& matrix, int64_t i, int64_t j, bool transposed) {
  const int64_t columns = matrix.type->shape[1];
  return matrix.elements[transposed ? j * columns + i : i * columns + j].real();
}

TEST(RowsTest, Gemm) {
  std::mt19937 random(9);
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(form);
    const bool ta = form % 2 != 0, tb = form / 2 != 0;
    const Given a = Floats(ta ? std::vector<int64_t>{4, 3} : std::vector<int64_t>{3, 4}, random);
    const Given b = Floats(tb ? std::vector<int64_t>{5, 4} : std::vector<int64_t>{4, 5}, random);
    const Given c = Floats({3, 1}, random);
    Numbers plain, scaled;
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 4; ++k) sum += At(a, i, k, ta) * At(b, k, j, tb);
        plain.push_back(sum);
        scaled.push_back(0.5 * sum + 2 * c.elements[i].real());
      }
    }
    std::map<std::string, Attribute> attributes = {{"transA", int64_t{ta}},
                                                   {"transB", int64_t{tb}}};
    ExpectNear(Apply("Gemm", {a, b}, attributes), plain);
    attributes["alpha"] = 0.5;
    attributes["beta"] = 2.0;
    ExpectNear(Apply("Gemm", {a, b, c}, attributes), scaled);
  }
  const Given wrong = Floats({3, 3}, random);
  GoldenOfTest().Add(Apply("Gemm", {wrong, Floats({4, 2}, random)}).status().message());
}

TEST(RowsTest, Einsum) {
  GoldenOfTest golden;
  std::mt19937 random(10);
  const Given a = Floats({2, 3, 4}, random), b = Floats({2, 4, 5}, random);
  Numbers product;
  for (int64_t i = 0; i < 30; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      sum += a.elements[(i / 15 * 3 + i / 5 % 3) * 4 + k].real() *
             b.elements[(i / 15 * 4 + k) * 5 + i % 5].real();
    }
    product.push_back(sum);
  }
  ExpectNear(Apply("Einsum", {a, b}, {{"equation", std::string("bij, bjk -> bik")}}), product);
  ExpectNear(Apply("Einsum", {a, b}, {{"equation", std::string("...ij,...jk")}}), product);
  golden.Add(
      Apply("Einsum", {a, b}, {{"equation", std::string("bij,bik->bjk")}}).status().message());
  golden.Add(
      Apply("Einsum", {a, b}, {{"equation", std::string("bij,bjk->bx")}}).status().message());
}

// Products of bytes with zero points per row and column, scaled in the end.
TEST(RowsTest, QuantizedProducts) {
  std::mt19937 random(11);
  const Given a = Wholes(DType::kU8, {2, 3, 4}, 0, 255, random);
  const Given b = Wholes(DType::kI8, {4, 5}, -128, 127, random, true);
  const Given zero{TensorType{DType::kU8, {}}, {0}, true},
      a_zero{TensorType{DType::kU8, {}}, {7}, true};
  const Given b_zero = Wholes(DType::kI8, {5}, -9, 9, random, true);
  for (const Given& shift : {zero, a_zero}) {
    Numbers expected;
    for (int64_t i = 0; i < 30; ++i) {
      int64_t sum = 0;
      for (int64_t k = 0; k < 4; ++k) {
        sum += (a.elements[i / 5 * 4 + k].whole() - shift.elements[0].whole()) *
               (b.elements[k * 5 + i % 5].whole() - b_zero.elements[i % 5].whole());
      }
      expected.push_back(static_cast<double>(sum));
    }
    ExpectNear(Apply("MatMulInteger", {a, b, shift, b_zero}), expected);
    const Given y_zero{TensorType{DType::kU8, {}}, {100}, true};
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto actual, Apply("QLinearMatMul", {a, Number(0.5F), shift, b, Number(0.5F), b_zero,
                                                   Number(100.0F), y_zero}));
    for (size_t i = 0; i < expected.size(); ++i) {
      const double y = std::min(std::max(std::nearbyint(expected[i] / 400) + 100, 0.0), 255.0);
      EXPECT_NEAR(actual[0][i].real(), y, 1);  // a tie may round to either side
    }
  }
}

}  // namespace
}  // namespace hone::graph
