// Functions of elements against the C library's, in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ElementsTest, FunctionsOfOneElement) {
  const std::map<std::string, double (*)(double)> functions = {
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Celu", [](double x) { return std::max(x, 0.0) + std::min(0.0, std::expm1(x)); }},
      {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Gelu", [](double x) { return x * std::erfc(-x / std::sqrt(2)) / 2; }},
      {"HardSigmoid", [](double x) { return std::min(std::max(0.2 * x + 0.5, 0.0), 1.0); }},
      {"HardSwish", [](double x) { return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"Log", [](double x) { return std::log(x); }},
      {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"Neg", [](double x) { return -x; }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"Round", [](double x) { return std::nearbyint(x); }},
      {"Selu",
       [](double x) {
         return 1.05070102214813232 * (x < 0 ? 1.67326319217681885 * std::expm1(x) : x);
       }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Sign", [](double x) { return x < 0   ? -1.0
                                     : x > 0 ? 1.0
                                             : x; }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"ThresholdedRelu", [](double x) { return x <= 1 ? 0 : x; }},
  };
  std::mt19937 random(1);
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    Given x = Floats({5, 7}, random);
    x.elements[0] = kNaN;
    std::vector<double> expected;
    for (const ir::Scalar& element : x.elements) expected.push_back(function(element.real()));
    // The C library's min and max drop NaN; a network keeps it, unless it is compared with a
    // threshold that an element must exceed.
    expected[0] = name == "ThresholdedRelu" ? 0 : kNaN;
    ExpectNear(Apply(name, {x}), expected);
  }
}

TEST(ElementsTest, LargeArgumentsDoNotOverflow) {
  const Given x{TensorType{DType::kF32, {4}}, {-200.0, -100.0, 100.0, 200.0}};
  ExpectNear(Apply("Mish", {x}), {0, 0, 100, 200});
  ExpectNear(Apply("Softplus", {x}), {0, 0, 100, 200});
  ExpectNear(Apply("Elu", {x}), {-1, -1, 100, 200});
}

TEST(ElementsTest, GeluWithTanh) {
  std::mt19937 random(2);
  const Given x = Floats({20}, random);
  std::vector<double> expected;
  for (const ir::Scalar& element : x.elements) {
    const double v = element.real();
    expected.push_back(v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))));
  }
  ExpectNear(Apply("Gelu", {x}, {{"approximate", std::string("tanh")}}), expected);
  GoldenOfTest().Add(Apply("Gelu", {x}, {{"approximate", std::string("near")}}).status().message());
}

TEST(ElementsTest, AttributesChangeFunctions) {
  const Given x{TensorType{DType::kF32, {4}}, {-2.0, -0.5, 0.5, 2.0}};
  ExpectNear(Apply("LeakyRelu", {x}, {{"alpha", 0.25}}), {-0.5, -0.125, 0.5, 2});
  ExpectNear(Apply("HardSigmoid", {x}, {{"alpha", 0.5}, {"beta", 0.25}}), {0, 0, 0.5, 1});
  ExpectNear(Apply("Celu", {x}, {{"alpha", 2.0}}),
             {2 * std::expm1(-1), 2 * std::expm1(-0.25), 0.5, 2});
  ExpectNear(Apply("Shrink", {x}, {{"lambd", 1.0}, {"bias", 0.25}}), {-1.75, 0, 0, 1.75});
  ExpectNear(Apply("Clip", {x, Number(-1), Number(1)}), {-1, -0.5, 0.5, 1});
  ExpectNear(Apply("Clip", {x, {}, Number(1)}), {-2, -0.5, 0.5, 1});
  Given bound = Number(0);
  bound.constant = false;
  ExpectNear(Apply("Clip", {x, bound}), {0, 0, 0.5, 2});
  const Given slope{TensorType{DType::kF32, {1}}, {0.5}};
  ExpectNear(Apply("PRelu", {x, slope}), {-1, -0.25, 0.5, 2});
}

TEST(ElementsTest, BoundsAtTheEndsOfF64) {
  const double most = std::numeric_limits<double>::max();
  const double least = std::numeric_limits<double>::denorm_min();
  const auto number = [](double value) {
    return Given{TensorType{DType::kF64, {}}, {value}, /*constant=*/true};
  };
  const Given x{TensorType{DType::kF64, {2}}, {1e300, -1.0}};
  HONE_ASSERT_OK_AND_ASSIGN(const auto clipped, Apply("Clip", {x, number(least), number(most)}));
  EXPECT_EQ(clipped[0], ir::Scalars({1e300, least}));
}

TEST(ElementsTest, SpecialValues) {
  const Given x{TensorType{DType::kF32, {4}}, {-kInf, kNaN, 0.0, kInf}};
  ExpectNear(Apply("IsNaN", {x}), {0, 1, 0, 0});
  ExpectNear(Apply("IsInf", {x}), {1, 0, 0, 1});
  ExpectNear(Apply("IsInf", {x}, {{"detect_negative", int64_t{0}}}), {0, 0, 0, 1});
  ExpectNear(Apply("IsInf", {x}, {{"detect_positive", int64_t{0}}}), {1, 0, 0, 0});
}

TEST(ElementsTest, FunctionsOfTwoElements) {
  const std::map<std::string, double (*)(double, double)> functions = {
      {"Add", [](double a, double b) { return a + b; }},
      {"Div", [](double a, double b) { return a / b; }},
      {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"Max", [](double a, double b) { return std::max(a, b); }},
      {"Mean", [](double a, double b) { return (a + b) / 2; }},
      {"Min", [](double a, double b) { return std::min(a, b); }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"Pow", [](double a, double b) { return std::pow(a, b); }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Sum", [](double a, double b) { return a + b; }},
  };
  std::mt19937 random(3);
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    Given a = Floats({2, 1, 3}, random), b = Floats({4, 1}, random);
    b.elements[1] = a.elements[2];
    std::vector<double> expected;
    for (int64_t i = 0; i < 24; ++i) {
      expected.push_back(
          function(a.elements[i / 12 * 3 + i % 3].real(), b.elements[i / 3 % 4].real()));
    }
    ExpectNear(Apply(name, {a, b}), expected);
  }
}

TEST(ElementsTest, FunctionsOfManyElements) {
  std::vector<Given> inputs;
  for (int i = 0; i < 100; ++i) inputs.push_back({TensorType{DType::kF32, {1}}, {double(i)}});
  ExpectNear(Apply("Max", inputs), {99});
  ExpectNear(Apply("Mean", inputs), {49.5});
  ExpectNear(Apply("Min", inputs), {0});
  ExpectNear(Apply("Sum", inputs), {4950});
  inputs.resize(300, inputs[0]);
  GoldenOfTest().Add(Apply("Sum", inputs).status().message());
}

TEST(ElementsTest, WholeNumbers) {
  const TensorType type{DType::kI32, {4}};
  const Given a{type, {7, -7, 7, -7}}, b{type, {2, 2, -2, -2}};
  ExpectNear(Apply("Div", {a, b}), {3, -3, -3, 3});
  ExpectNear(Apply("Mod", {a, b}), {1, 1, -1, -1});
  ExpectNear(Apply("Mod", {a, b}, {{"fmod", int64_t{1}}}), {1, -1, 1, -1});
  const Given three{type, {3, 3, 2, 2}};
  ExpectNear(Apply("Pow", {a, three}), {343, -343, 49, 49});
  const Given bytes{TensorType{DType::kU8, {2}}, {200, 0}},
      shift{TensorType{DType::kU8, {2}}, {1, 1}};
  ExpectNear(Apply("BitShift", {bytes, shift}, {{"direction", std::string("LEFT")}}), {144, 0});
  ExpectNear(Apply("BitShift", {bytes, shift}, {{"direction", std::string("RIGHT")}}), {100, 0});
  ExpectNear(Apply("Sign", {bytes}), {1, 0});
  ExpectNear(Apply("Sign", {a}), {1, -1, 1, -1});
}

TEST(ElementsTest, PowersOfWholeNumbersAreExact) {
  const Given three{TensorType{DType::kI64, {2}}, {3, -3}};
  const Given exponent{TensorType{DType::kI64, {}}, {39}, /*constant=*/true};
  HONE_ASSERT_OK_AND_ASSIGN(const auto power, Apply("Pow", {three, exponent}));
  EXPECT_EQ(power[0], (ir::Scalars{int64_t{4052555153018976267}, int64_t{-4052555153018976267}}));
  Given bases{TensorType{DType::kI32, {400}}, {}};
  std::vector<double> expected;
  for (int i = -200; i < 200; ++i) {
    bases.elements.emplace_back(int64_t{i});
    expected.push_back(std::pow(i, 4));
  }
  const Given fourth{TensorType{DType::kF32, {400}}, ir::Scalars(400, 4.0)};
  ExpectNear(Apply("Pow", {bases, fourth}), expected);
  ExpectNear(Apply("Pow", {Given{TensorType{DType::kI32, {1}}, {4}}, Number(2.5F)}), {32});
}

TEST(ElementsTest, PowersByNumbers) {
  std::mt19937 random(4);
  Given x = Floats({6}, random);
  for (ir::Scalar& element : x.elements) element = std::fabs(element.real());
  for (const float exponent : {-1.0F, 0.5F, 1.0F, 2.0F, 3.0F, 2.5F}) {
    std::vector<double> expected;
    for (const ir::Scalar& element : x.elements) {
      expected.push_back(std::pow(element.real(), double{exponent}));
    }
    ExpectNear(Apply("Pow", {x, Number(exponent)}), expected);
  }
}

TEST(ElementsTest, Logic) {
  const Given a{TensorType{DType::kBool, {4}}, {0, 0, 1, 1}},
      b{TensorType{DType::kBool, {4}}, {0, 1, 0, 1}};
  ExpectNear(Apply("And", {a, b}), {0, 0, 0, 1});
  ExpectNear(Apply("Or", {a, b}), {0, 1, 1, 1});
  ExpectNear(Apply("Xor", {a, b}), {0, 1, 1, 0});
  ExpectNear(Apply("Not", {a}), {1, 1, 0, 0});
  const Given x{TensorType{DType::kF32, {4}}, {1.0, 2.0, 3.0, 4.0}}, y = Number(9);
  ExpectNear(Apply("Where", {a, x, y}), {9, 9, 3, 4});
}

TEST(ElementsTest, Casts) {
  const Given x{TensorType{DType::kF32, {4}}, {-1.75, 0.0, 2.5, 1e6}};
  ExpectNear(Apply("Cast", {x}, {{"to", int64_t{6}}}), {-1, 0, 2, 1000000});
  ExpectNear(Apply("Cast", {x}, {{"to", int64_t{9}}}), {1, 0, 1, 1});
  ExpectNear(Apply("Cast", {x}, {{"to", int64_t{10}}}), {-1.75, 0, 2.5, kInf});
  ExpectNear(Apply("Cast", {x}, {{"to", int64_t{17}}}), {-1.75, 0, 2.5, 448});
  const Given infinite{TensorType{DType::kF32, {2}}, {-kInf, kInf}};
  ExpectNear(Apply("Cast", {infinite}, {{"to", int64_t{19}}}), {-57344, 57344});
  const Given like{TensorType{DType::kI64, {1}}, {0}};
  ExpectNear(Apply("CastLike", {x, like}), {-1, 0, 2, 1000000});
  GoldenOfTest().Add(Apply("Cast", {x}, {{"to", int64_t{4}}}).status().message());
}

TEST(ElementsTest, Errors) {
  GoldenOfTest golden;
  std::mt19937 random(5);
  const Given x = Floats({2}, random), n = Wholes(DType::kI32, {2}, 0, 9, random);
  golden.Add(Apply("Exp", {n}).status().message());
  golden.Add(Apply("Add", {x, n}).status().message());
  golden.Add(Apply("Max", {x, n}).status().message());
  golden.Add(Apply("Max", {x, {}}).status().message());
  golden.Add(Apply("And", {x, x}).status().message());
  golden.Add(Apply("Mod", {x, x}).status().message());
}

}  // namespace
}  // namespace hone::graph
