// Operators at infinities, NaN, zeros of both signs and the ends of their types. Where ONNX's
// reference implementation and ONNX Runtime agree, this is what they give.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/client/network/graph/op/apply.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;
using Ints = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

Given Of(DType dtype, Ints shape, std::vector<double> elements) {
  Given given{TensorType{dtype, std::move(shape)}};
  for (const double element : elements) {
    given.elements.push_back(ir::CastTo(dtype, ir::Scalar(element)));
  }
  return given;
}

Given Row(std::vector<double> elements) {
  const auto count = static_cast<int64_t>(elements.size());
  return Of(DType::kF32, {count}, std::move(elements));
}

// Whether two numbers are the same, with the sign of zero. NaN is the same as NaN.
bool IsSame(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

void ExpectSame(const absl::StatusOr<std::vector<ir::Scalars>>& actual,
                const std::vector<double>& expected, int output = 0) {
  ASSERT_THAT(actual, IsOk());
  const ir::Scalars& elements = (*actual)[output];
  ASSERT_EQ(elements.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(IsSame(elements[i].real(), expected[i]))
        << "element " << i << " is " << elements[i] << " instead of " << expected[i];
  }
}

TEST(SpecialValuesTest, LogSumExpOfInfinities) {
  const Given x = Of(DType::kF32, {5, 3},
                     {1, kInfinity, 2, -kInfinity, -kInfinity, -kInfinity, 0, -kInfinity, 0,
                      kInfinity, -kInfinity, 1, 1, kNotANumber, kInfinity});
  const std::vector<double> expected = {kInfinity, -kInfinity, std::log(2), kInfinity, kNotANumber};
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kF64}) {
    Given rows = x;
    rows.type->dtype = dtype;
    const auto actual = Apply("ReduceLogSumExp", {rows, List({1})}, {{"keepdims", int64_t{0}}});
    if (dtype == DType::kF16) continue;  // log(2) is rounded
    ExpectNear(actual, expected);
  }
}

TEST(SpecialValuesTest, RowsWithoutLengthNormalizeToZero) {
  const Given x = Of(DType::kF32, {4, 3}, {3, 4, 0, 0, 0, 0, kNotANumber, 1, 1, kInfinity, 1, 1});
  ExpectNear(Apply("LpNormalization", {x}),
             {0.6, 0.8, 0, 0, 0, 0, kNotANumber, kNotANumber, kNotANumber, kNotANumber, 0, 0});
  ExpectNear(Apply("LpNormalization",
                   {
                       Row({0, -2, 2}),
                   },
                   {{"p", int64_t{1}}}),
             {0, -0.5, 0.5});
  ExpectNear(Apply("LpNormalization", {Row({0, 0})}, {{"p", int64_t{1}}}), {0, 0});
}

TEST(SpecialValuesTest, RemaindersOfFloatsAreExact) {
  const std::map<std::string, Attribute> fmod = {{"fmod", int64_t{1}}};
  const std::vector<double> values = {0,
                                      -0.0,
                                      1,
                                      -1,
                                      0.1F,
                                      5,
                                      -5,
                                      3,
                                      1e10F,
                                      -6,
                                      kInfinity,
                                      -kInfinity,
                                      kNotANumber,
                                      0x1p-149,
                                      -7.5,
                                      0x1p-126,
                                      1e-30F,
                                      1e38F,
                                      3.4028234663852886e38,
                                      16777215,
                                      0.333333343F};
  Given a{TensorType{DType::kF32, {}}}, b = a;
  std::vector<double> expected;
  for (const double x : values) {
    for (const double y : values) {
      a.elements.push_back(x);
      b.elements.push_back(y);
      expected.push_back(std::fmod(x, y));
    }
  }
  a.type->shape = b.type->shape = {static_cast<int64_t>(expected.size())};
  ExpectSame(Apply("Mod", {a, b}, fmod), expected);
  // A constant divisor needs fewer steps.
  std::vector<double> divisors = values;
  divisors.insert(divisors.end(), {10, 2, 0.5, 6.2831855F, 0x1p-100, 0x1.8p100});
  for (const double y : divisors) {
    std::vector<double> remainders;
    for (const double x : values) remainders.push_back(std::fmod(x, y));
    ExpectSame(Apply("Mod", {Row(values), Number(static_cast<float>(y))}, fmod), remainders);
  }
}

TEST(SpecialValuesTest, RemaindersOfDoubles) {
  const Given a = Of(DType::kF64, {8}, {7.5, -7.5, 0.3, -0.0, kInfinity, 5, -5, 3}),
              b = Of(DType::kF64, {8}, {2, 2, 0.1, 3, 1, kInfinity, -kInfinity, 0});
  std::vector<double> expected;
  for (size_t i = 0; i < 8; ++i) {
    expected.push_back(std::fmod(a.elements[i].real(), b.elements[i].real()));
  }
  ExpectNear(Apply("Mod", {a, b}, {{"fmod", int64_t{1}}}), expected);
}

TEST(SpecialValuesTest, RemaindersOfShortFloatsAreExact) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    SCOPED_TRACE(ir::DTypeName(dtype));
    std::mt19937 random(1);
    std::uniform_int_distribution<int> exponent(-30, 30);
    Given a{TensorType{dtype, {500}}}, b = a;
    std::vector<double> expected;
    for (int i = 0; i < 500; ++i) {
      const auto draw = [&] {
        return ir::CastTo(
            dtype, std::ldexp(1.0 + static_cast<double>(random() % 2048) / 2048, exponent(random)));
      };
      a.elements.push_back(draw());
      b.elements.push_back(draw());
      expected.push_back(std::fmod(a.elements.back().real(), b.elements.back().real()));
    }
    ExpectSame(Apply("Mod", {a, b}, {{"fmod", int64_t{1}}}), expected);
  }
}

TEST(SpecialValuesTest, AcoshBelowOneIsNaN) {
  ExpectNear(
      Apply("Acosh",
            {Row({-kInfinity, -10, -3, -2, -1, -0.5, 0, 0.5, 1, 2, kInfinity, kNotANumber})}),
      {kNotANumber, kNotANumber, kNotANumber, kNotANumber, kNotANumber, kNotANumber, kNotANumber,
       kNotANumber, 0, std::acosh(2), kInfinity, kNotANumber});
}

TEST(SpecialValuesTest, NaNInAnyInputOfMaxAndMin) {
  const Given a = Row({1, kNotANumber, kNotANumber, 2, kInfinity}),
              b = Row({kNotANumber, 1, kNotANumber, 3, -kInfinity}),
              c = Row({0, 0, 0, kNotANumber, 0});
  ExpectSame(Apply("Max", {a, b}), {kNotANumber, kNotANumber, kNotANumber, 3, kInfinity});
  ExpectSame(Apply("Min", {a, b}), {kNotANumber, kNotANumber, kNotANumber, 2, -kInfinity});
  ExpectSame(Apply("Max", {a, b, c}),
             {kNotANumber, kNotANumber, kNotANumber, kNotANumber, kInfinity});
  ExpectSame(Apply("Min", {c, b, a}),
             {kNotANumber, kNotANumber, kNotANumber, kNotANumber, -kInfinity});
  ExpectSame(Apply("Max", {a, Number(static_cast<float>(kNotANumber))}),
             {kNotANumber, kNotANumber, kNotANumber, kNotANumber, kNotANumber});
  ExpectSame(Apply("Max", {a, Number(0)}), {1, kNotANumber, kNotANumber, 2, kInfinity});
  ExpectSame(Apply("Max", {Number(0), a}), {1, kNotANumber, kNotANumber, 2, kInfinity});
  std::vector<Given> many(60, Row({1, 2}));
  ExpectSame(Apply("Max", many), {1, 2});
  for (const size_t place : {0, 1, 29, 30, 31, 59}) {
    std::vector<Given> inputs = many;
    inputs[place].elements[1] = kNotANumber;
    ExpectSame(Apply("Max", inputs), {1, kNotANumber});
    ExpectSame(Apply("Min", inputs), {1, kNotANumber});
  }
}

TEST(SpecialValuesTest, NaNInAnyInputOfClip) {
  const Given x = Row({1, kNotANumber, -5, 5, kInfinity, -kInfinity});
  const auto number = [](double value, bool constant) {
    Given given = Number(static_cast<float>(value));
    given.constant = constant;
    return given;
  };
  const std::vector<double> none(6, kNotANumber);
  for (const bool constant : {false, true}) {
    ExpectSame(Apply("Clip", {x, number(kNotANumber, constant), number(2, constant)}), none);
    ExpectSame(Apply("Clip", {x, number(0, constant), number(kNotANumber, constant)}), none);
    ExpectSame(Apply("Clip", {x, number(0, constant), number(2, constant)}),
               {1, kNotANumber, 0, 2, 2, 0});
    ExpectSame(Apply("Clip", {x, number(3, constant), number(-3, constant)}),
               {-3, kNotANumber, -3, -3, -3, -3});
  }
}

TEST(SpecialValuesTest, PowersByOneHalf) {
  ExpectSame(Apply("Pow", {Row({-kInfinity, -0.0, 0, 4, kInfinity, -1, kNotANumber}), Number(0.5)}),
             {kInfinity, 0, 0, 2, kInfinity, kNotANumber, kNotANumber});
  ExpectSame(Apply("Pow", {Row({-kInfinity, -0.0, 0, 4, kInfinity}), Number(-1)}),
             {-0.0, -kInfinity, kInfinity, 0.25, 0});
}

TEST(SpecialValuesTest, RangeOfZerosIsOne) {
  const auto zeros = Apply("DynamicQuantizeLinear", {Row({0, -0.0, 0, 0})}, {}, 3);
  ExpectNear(zeros, {0, 0, 0, 0});
  ExpectNear(zeros, {1.0 / 255}, 1);
  ExpectNear(zeros, {0}, 2);
}

TEST(SpecialValuesTest, NaNIsTheLargestOfTopK) {
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kF64}) {
    SCOPED_TRACE(ir::DTypeName(dtype));
    const Given x = Of(dtype, {4, 4},
                       {kNotANumber, kNotANumber, kNotANumber, 7, 1, kNotANumber, kInfinity, 2,
                        kInfinity, kInfinity, -kInfinity, kNotANumber, 3, 3, 3, 3});
    const auto largest = Apply("TopK", {x, List({3})}, {}, 2);
    ExpectSame(largest, {kNotANumber, kNotANumber, kNotANumber, kNotANumber, kInfinity, 2,
                         kNotANumber, kInfinity, kInfinity, 3, 3, 3});
    ExpectSame(largest, {0, 1, 2, 1, 2, 3, 3, 0, 1, 0, 1, 2}, 1);
    const auto least = Apply("TopK", {x, List({3})}, {{"largest", int64_t{0}}}, 2);
    ExpectSame(least, {7, kNotANumber, kNotANumber, 1, 2, kInfinity, -kInfinity, kInfinity,
                       kInfinity, 3, 3, 3});
    ExpectSame(least, {3, 0, 1, 0, 3, 2, 2, 0, 1, 0, 1, 2}, 1);
  }
}

TEST(SpecialValuesTest, EveryRowHasAnExtreme) {
  const Given x =
      Of(DType::kF32, {5, 4},
         {kNotANumber, kNotANumber, kNotANumber, kNotANumber, 1,          kNotANumber, 2,
          kNotANumber, -kInfinity,  -kInfinity,  -kInfinity,  -kInfinity, kNotANumber, 5,
          4,           5,           kInfinity,   1,           2,          kInfinity});
  const auto place = [&](const std::string& op, int64_t last) {
    return Apply(op, {x},
                 {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}, {"select_last_index", last}});
  };
  ExpectSame(place("ArgMax", 0), {0, 1, 0, 0, 0});
  ExpectSame(place("ArgMax", 1), {3, 3, 3, 0, 3});
  ExpectSame(place("ArgMin", 0), {0, 1, 0, 0, 1});
  ExpectSame(place("ArgMin", 1), {3, 3, 3, 0, 1});
  ExpectSame(Apply("Hardmax", {x}), {1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0});
}

TEST(SpecialValuesTest, EveryWindowHasAPlace) {
  const Given x = Of(
      DType::kF32, {1, 2, 4},
      {kNotANumber, kNotANumber, 1, kNotANumber, -kInfinity, -kInfinity, kNotANumber, kNotANumber});
  const std::map<std::string, Attribute> attributes = {{"kernel_shape", Ints{2}},
                                                       {"strides", Ints{2}}};
  ExpectSame(Apply("MaxPool", {x}, attributes, 2), {0, 2, 4, 6}, 1);
  std::map<std::string, Attribute> padded = attributes;
  padded["pads"] = Ints{1, 1};
  ExpectSame(Apply("MaxPool", {x}, padded, 2), {0, 2, 3, 4, 5, 7}, 1);
}

TEST(SpecialValuesTest, SmallResultsOfSoftplusKeepTheirDigits) {
  const std::vector<double> values = {-80, -30, -17, -7.5, -1, -0.1, 0, 0.1, 1, 7.5, 80};
  HONE_ASSERT_OK_AND_ASSIGN(const auto actual, Apply("Softplus", {Row(values)}));
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = std::log1p(std::exp(static_cast<float>(values[i])));
    EXPECT_NEAR(actual[0][i].real(), expected, 2e-7 * expected) << values[i];
  }
  ExpectSame(Apply("Softplus", {Row({-kInfinity, kInfinity, kNotANumber})}),
             {0, kInfinity, kNotANumber});
}

// An element that is not above the threshold is 0.
TEST(SpecialValuesTest, NaNIsNotAboveAThreshold) {
  ExpectSame(Apply("ThresholdedRelu", {Row({kNotANumber, -kInfinity, kInfinity, 1, 2})}),
             {0, 0, kInfinity, 0, 2});
}

TEST(SpecialValuesTest, NegativeStepsBeginInTheTensor) {
  const Given x = Row({10, 11, 12, 13, 14});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return Apply("Slice", {x, List({start}), List({end}), List({0}), List({step})});
  };
  ExpectSame(slice(-7, -100, -1), {10});
  ExpectSame(slice(-5, -100, -1), {10});
  ExpectSame(slice(-4, -100, -1), {11, 10});
  ExpectSame(slice(100, -100, -2), {14, 12, 10});
  ExpectSame(slice(-100, 2, 1), {10, 11});
}

// 32 · 32 · 256 is beyond the largest f16, and an eighth of it is not.
TEST(SpecialValuesTest, ProductsOfShortFloatsAreRoundedOnce) {
  const Given a = Of(DType::kF16, {1, 256}, std::vector<double>(256, 32)),
              b = Of(DType::kF16, {256, 1}, std::vector<double>(256, 32));
  const Given c = Of(DType::kF16, {1}, {-60000});
  const std::map<std::string, Attribute> alpha = {{"alpha", 0.125}};
  ExpectSame(Apply("Gemm", {a, b}, alpha), {32768});
  Given minus = Of(DType::kF16, {1}, {-65504});
  ExpectSame(Apply("Gemm", {a, b, minus}, {{"alpha", 0.25}}), {32});
  for (const std::string op : {"Conv", "ConvTranspose"}) {
    SCOPED_TRACE(op);
    // 80 · 1000 − 60000: the sum is too large, the result is not.
    const Given x = Of(DType::kF16, {1, 80, 1}, std::vector<double>(80, 10)),
                w = Of(DType::kF16, op == "Conv" ? Ints{1, 80, 1} : Ints{80, 1, 1},
                       std::vector<double>(80, 100));
    ExpectSame(Apply(op, {x, w, c}), {20000});
  }
}

TEST(SpecialValuesTest, RecurrentLayersRoundOnce) {
  const Given x = Of(DType::kF16, {1, 1, 80}, std::vector<double>(80, 10)),
              w = Of(DType::kF16, {1, 1, 80}, std::vector<double>(80, 100)),
              r = Of(DType::kF16, {1, 1, 1}, {0}), b = Of(DType::kF16, {1, 2}, {-60000, -19984});
  const std::map<std::string, Attribute> relu = {{"hidden_size", int64_t{1}},
                                                 {"activations", std::vector<std::string>{"Relu"}}};
  ExpectSame(Apply("RNN", {x, w, r, b}, relu), {16});
}

}  // namespace
}  // namespace hone::graph
