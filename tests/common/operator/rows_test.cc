// Compares softmax, norms, pooling, reductions and element-wise operators with loops in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/ir/workload.h"
#include "tests/common/operator/arrays.h"

namespace hone::op {
namespace {

struct Shape2d {
  int64_t m, n;
  std::string Keys() const { return absl::StrCat(" m=", m, " n=", n); }
};
constexpr Shape2d kShapes[] = {{4, 6}, {1, 1}, {1, 17}, {5, 1}, {3, 13}};

std::vector<double> Row(const Array& x, int64_t i) {
  return {x.data.begin() + i * x.shape[1], x.data.begin() + (i + 1) * x.shape[1]};
}
double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Runs an operator on X[m, n] in both float types and compares it with `row` applied to each row.
void CheckRows(const std::string& op,
               const std::function<std::vector<double>(std::vector<double> x,
                                                       const std::vector<Array>& inputs)>& row) {
  for (const Shape2d& shape : kShapes) {
    for (const auto& [dtype, tolerance] : {std::pair("f32", 2e-5), std::pair("f64", 1e-12)}) {
      const std::string line = absl::StrCat(op, shape.Keys(), " dtype=", dtype);
      const ir::Workload workload = Built(line);
      const auto inputs = Inputs(workload, 21, Kind::kReal);
      Array expected({shape.m, shape.n});
      for (int64_t i = 0; i < shape.m; ++i) {
        const std::vector<double> y = row(Row(inputs[0], i), inputs);
        std::copy(y.begin(), y.end(), expected.data.begin() + i * shape.n);
      }
      ExpectNear(Compute(workload, inputs)[0], expected, tolerance, line);
    }
  }
}

TEST(RowsTest, SoftmaxIsADistribution) {
  CheckRows("softmax", [](std::vector<double> x, const std::vector<Array>&) {
    for (double& v : x) v = std::exp(v);
    const double sum = Sum(x);
    for (double& v : x) v /= sum;
    return x;
  });
  // Exponentials of these overflow unless the maximum is subtracted.
  const ir::Workload workload = Built("softmax m=1 n=2");
  Array x({1, 2});
  x.data = {1000, 1000 + std::log(3.0)};
  Array expected({1, 2});
  expected.data = {0.25, 0.75};
  ExpectNear(Compute(workload, {x})[0], expected, 1e-4, "softmax of large numbers");
}

TEST(RowsTest, LayerNormTakesMeanAndVarianceOfARow) {
  CheckRows("layer_norm", [](std::vector<double> x, const std::vector<Array>& inputs) {
    const double mean = Sum(x) / static_cast<double>(x.size());
    double variance = 0;
    for (double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
    for (size_t j = 0; j < x.size(); ++j)
      x[j] = (x[j] - mean) / std::sqrt(variance + 1e-5) * inputs[1].data[j] + inputs[2].data[j];
    return x;
  });
}

TEST(RowsTest, RmsNormTakesTheMeanSquareOfARow) {
  CheckRows("rms_norm", [](std::vector<double> x, const std::vector<Array>& inputs) {
    double mean = 0;
    for (double v : x) mean += v * v / static_cast<double>(x.size());
    for (size_t j = 0; j < x.size(); ++j) x[j] *= inputs[1].data[j] / std::sqrt(mean + 1e-5);
    return x;
  });
}

TEST(RowsTest, UnaryOperators) {
  const std::pair<const char*, double (*)(double)> kFunctions[] = {
      {"relu", [](double v) { return std::max(v, 0.0); }},
      {"gelu", [](double v) { return 0.5 * v * std::erfc(-v / std::sqrt(2.0)); }},
      {"sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"silu", [](double v) { return v / (1 + std::exp(-v)); }},
      {"tanh", [](double v) { return std::tanh(v); }},
  };
  for (const auto& [op, function] : kFunctions) {
    CheckRows(op, [&function = function](std::vector<double> x, const std::vector<Array>&) {
      for (double& v : x) v = function(v);
      return x;
    });
  }
}

TEST(RowsTest, BinaryOperators) {
  const std::pair<const char*, double (*)(double, double)> kFunctions[] = {
      {"add", [](double a, double b) { return a + b; }},
      {"add_relu", [](double a, double b) { return std::max(a + b, 0.0); }},
      {"multiply", [](double a, double b) { return a * b; }},
  };
  for (const auto& [op, function] : kFunctions) {
    for (const char* dtype : {"f32", "f16", "i32"}) {
      const ir::Workload workload = Built(absl::StrCat(op, " m=3 n=5 dtype=", dtype));
      const auto inputs = Inputs(workload, 22, Kind::kWhole);
      Array expected({3, 5});
      for (size_t i = 0; i < expected.data.size(); ++i)
        expected.data[i] = function(inputs[0].data[i], inputs[1].data[i]);
      ExpectNear(Compute(workload, inputs)[0], expected, 0, absl::StrCat(op, " ", dtype));
    }
  }
}

TEST(RowsTest, BiasIsAddedToEveryRow) {
  const ir::Workload workload = Built("bias_add m=3 n=5");
  EXPECT_TRUE(workload.tensors[1].constant);
  const auto inputs = Inputs(workload, 23, Kind::kWhole);
  Array expected({3, 5});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 5; ++j) expected(i, j) = inputs[0](i, j) + inputs[1](j);
  }
  ExpectNear(Compute(workload, inputs)[0], expected, 0, "bias_add");
}

TEST(RowsTest, NormIsTheRootOfTheSumOfSquares) {
  for (const auto& [b, m, n] : {std::tuple(1, 4, 6), std::tuple(3, 5, 1), std::tuple(2, 1, 7)}) {
    const ir::Workload workload = Built(absl::StrCat("norm b=", b, " m=", m, " n=", n));
    const auto inputs = Inputs(workload, 24, Kind::kReal);
    Array expected({b});
    for (int64_t z = 0; z < b; ++z) {
      double sum = 0;
      for (int64_t i = 0; i < m * n; ++i) sum += std::pow(inputs[0].data[z * m * n + i], 2);
      expected(z) = std::sqrt(sum);
    }
    ExpectNear(Compute(workload, inputs)[0], expected, 1e-5, "norm");
  }
}

TEST(RowsTest, ReductionsGoAlongEitherAxis) {
  for (const Shape2d& shape : kShapes) {
    for (const int64_t axis : {1, 0}) {
      const std::string keys = absl::StrCat(shape.Keys(), " axis=", axis);
      const int64_t kept = axis == 1 ? shape.m : shape.n, reduced = axis == 1 ? shape.n : shape.m;
      const auto inputs = Inputs(Built("reduce_sum" + keys), 25, Kind::kWhole);
      Array sum({kept}), max({kept}), mean({kept}), index({kept});
      for (int64_t i = 0; i < kept; ++i) {
        max(i) = -std::numeric_limits<double>::infinity();
        for (int64_t k = 0; k < reduced; ++k) {
          const double value = axis == 1 ? inputs[0](i, k) : inputs[0](k, i);
          sum(i) += value;
          mean(i) += value / static_cast<double>(reduced);
          if (value > max(i)) {
            max(i) = value;
            index(i) = static_cast<double>(k);
          }
        }
      }
      ExpectNear(Compute(Built("reduce_sum" + keys), inputs)[0], sum, 0, keys);
      ExpectNear(Compute(Built("reduce_max" + keys), inputs)[0], max, 0, keys);
      ExpectNear(Compute(Built("reduce_mean" + keys), inputs)[0], mean, 1e-6, keys);
      const auto best = Compute(Built("argmax" + keys), inputs);
      ASSERT_EQ(best.size(), 2u);
      ExpectNear(best[0], max, 0, keys);
      ExpectNear(best[1], index, 0, keys);
    }
  }
}

TEST(RowsTest, Transpositions) {
  const ir::Workload workload = Built("transpose m=3 n=5"),
                     batched = Built("batch_transpose b=2 m=3 n=5");
  const auto inputs = Inputs(batched, 26, Kind::kReal);
  Array expected({2, 5, 3}), one({5, 3}), first({3, 5});
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        expected(b, j, i) = inputs[0](b, i, j);
        first(i, j) = inputs[0](0, i, j);
        one(j, i) = first(i, j);
      }
    }
  }
  ExpectNear(Compute(batched, inputs)[0], expected, 0, "batch_transpose");
  ExpectNear(Compute(workload, {first})[0], one, 0, "transpose");
}

struct Pooling {
  int64_t h, w, kh, kw, sh, sw, ph, pw;
  std::string Keys() const {
    return absl::StrCat(" n=2 c=3 h=", h, " w=", w, " kh=", kh, " kw=", kw, " sh=", sh, " sw=", sw,
                        " ph=", ph, " pw=", pw);
  }
};
constexpr Pooling kPoolings[] = {{4, 6, 2, 2, 2, 2, 0, 0},
                                 {7, 5, 3, 3, 2, 2, 1, 1},
                                 {5, 9, 3, 1, 1, 3, 2, 0},
                                 {3, 3, 3, 3, 1, 1, 0, 0}};

// Applies `of` to the elements of every window, without padding.
Array Pooled(const Array& x, const Pooling& p,
             const std::function<double(const std::vector<double>&)>& of) {
  const int64_t oh = (p.h + 2 * p.ph - p.kh) / p.sh + 1, ow = (p.w + 2 * p.pw - p.kw) / p.sw + 1;
  Array y({2, oh, ow, 3});
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t i = 0; i < oh; ++i) {
      for (int64_t j = 0; j < ow; ++j) {
        for (int64_t c = 0; c < 3; ++c) {
          std::vector<double> elements;
          for (int64_t h = i * p.sh - p.ph; h < i * p.sh - p.ph + p.kh; ++h) {
            for (int64_t w = j * p.sw - p.pw; w < j * p.sw - p.pw + p.kw; ++w) {
              if (h >= 0 && h < p.h && w >= 0 && w < p.w) elements.push_back(x(n, h, w, c));
            }
          }
          y(n, i, j, c) = of(elements);
        }
      }
    }
  }
  return y;
}

TEST(RowsTest, PoolingReducesWindows) {
  for (const Pooling& p : kPoolings) {
    const ir::Workload max = Built("max_pool2d" + p.Keys()), with = Built("avg_pool2d" + p.Keys());
    const ir::Workload without = Built("avg_pool2d" + p.Keys() + " pad_counts=0");
    auto inputs = Inputs(max, 27, Kind::kReal);
    for (double& v : inputs[0].data) v -= 4;  // negative, so that padding would win
    ExpectNear(
        Compute(max, inputs)[0],
        Pooled(inputs[0], p,
               [](const std::vector<double>& e) { return *std::max_element(e.begin(), e.end()); }),
        0, p.Keys());
    const double taps = static_cast<double>(p.kh * p.kw);
    ExpectNear(Compute(with, inputs)[0],
               Pooled(inputs[0], p, [&](const std::vector<double>& e) { return Sum(e) / taps; }),
               1e-5, p.Keys());
    ExpectNear(
        Compute(without, inputs)[0],
        Pooled(inputs[0], p,
               [](const std::vector<double>& e) { return Sum(e) / static_cast<double>(e.size()); }),
        1e-5, p.Keys());
  }
  EXPECT_EQ(Built("max_pool2d n=1 h=8 w=8 c=4 k=2").StructuralDigest(),
            Built("max_pool2d n=1 h=8 w=8 c=4 k=2 s=2").StructuralDigest());
}

TEST(RowsTest, GlobalAvgPoolIsTheMeanOfAnImage) {
  const ir::Workload workload = Built("global_avg_pool n=2 h=3 w=5 c=4");
  const auto inputs = Inputs(workload, 28, Kind::kReal);
  Array expected({2, 4});
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t h = 0; h < 3; ++h) {
      for (int64_t w = 0; w < 5; ++w) {
        for (int64_t c = 0; c < 4; ++c) expected(n, c) += inputs[0](n, h, w, c) / 15;
      }
    }
  }
  ExpectNear(Compute(workload, inputs)[0], expected, 1e-5, "global_avg_pool");
}

TEST(RowsTest, Flops) {
  const auto flops = [](const std::string& line) { return FlopCount(Built(line)); };
  EXPECT_EQ(flops("reduce_sum m=3 n=7"), 21);
  EXPECT_EQ(flops("transpose m=3 n=7"), 0);
  EXPECT_EQ(flops("add_relu m=3 n=7"), 42);
  EXPECT_EQ(flops("softmax m=3 n=7"), 21 + 42 + 21 + 21);  // max, subtract and exp, sum, divide
  EXPECT_EQ(flops("norm b=2 m=3 n=7"), 2 * 42 + 2);
  EXPECT_EQ(flops("max_pool2d n=1 h=4 w=4 c=5 k=3 s=1 p=1"), 100 * 5);
}

}  // namespace
}  // namespace hone::op
