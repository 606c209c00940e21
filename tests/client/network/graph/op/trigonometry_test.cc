// Trigonometric functions against the C library's, in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/client/network/graph/op/apply.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Function {
  const char* op;
  double (*function)(double);
  double least, most;  // the arguments
};

constexpr Function kFunctions[] = {
    {"Acos", std::acos, -1, 1},     {"Acosh", std::acosh, 1, 1e9},
    {"Asin", std::asin, -1, 1},     {"Asinh", std::asinh, -1e9, 1e9},
    {"Atan", std::atan, -1e3, 1e3}, {"Atanh", std::atanh, -0.999, 0.999},
    {"Cos", std::cos, -1e4, 1e4},   {"Cosh", std::cosh, -80, 80},
    {"Sin", std::sin, -1e4, 1e4},   {"Sinh", std::sinh, -80, 80},
    {"Tan", std::tan, -1e4, 1e4},
};

// Each result is within 8 units in its last place in f32: relative to itself, not to the largest.
TEST(TrigonometryTest, Accuracy) {
  constexpr int kCount = 2000;
  for (const Function& f : kFunctions) {
    ir::Scalars arguments;
    for (int i = 0; i < kCount; ++i) {
      // Many arguments near the middle, where some functions are near 0.
      const double share = 2.0 * i / (kCount - 1) - 1;
      const double x = f.least + (f.most - f.least) * (share * share * share + 1) / 2;
      arguments.push_back(static_cast<double>(static_cast<float>(x)));
    }
    const auto outputs = Apply(f.op, {{TensorType{DType::kF32, {kCount}}, arguments}});
    ASSERT_THAT(outputs, IsOk()) << f.op;
    for (int i = 0; i < kCount; ++i) {
      const double expected = f.function(arguments[i].real());
      const double unit = std::ldexp(std::max(std::fabs(expected), 1e-30), -23);
      EXPECT_NEAR((*outputs)[0][i].real(), expected, 8 * unit)
          << f.op << "(" << arguments[i] << ")";
    }
  }
}

TEST(TrigonometryTest, EndsOfTheDomains) {
  const auto values = [](const char* op, ir::Scalars arguments) {
    const int64_t count = static_cast<int64_t>(arguments.size());
    return Apply(op, {{TensorType{DType::kF32, {count}}, std::move(arguments)}});
  };
  ExpectNear(values("Atan", {kInf, -kInf, 0.0}), {M_PI_2, -M_PI_2, 0});
  ExpectNear(values("Asin", {1.0, -1.0, 0.5, -0.5}), {M_PI_2, -M_PI_2, M_PI / 6, -M_PI / 6});
  ExpectNear(values("Acos", {1.0, -1.0}), {0, M_PI});
  for (const auto& [op, x] :
       {std::pair("Asin", 1.5), {"Acos", -1.5}, {"Acosh", 0.5}, {"Atanh", 2.0}}) {
    EXPECT_TRUE(std::isnan((*values(op, {x}))[0][0].real())) << op;
  }
  EXPECT_EQ((*values("Sinh", {-kInf}))[0][0], ir::Scalar(-kInf));
  EXPECT_EQ((*values("Cosh", {-kInf}))[0][0], ir::Scalar(kInf));
  EXPECT_EQ((*values("Asinh", {-kInf}))[0][0], ir::Scalar(-kInf));
  EXPECT_EQ((*values("Acosh", {kInf}))[0][0], ir::Scalar(kInf));
  EXPECT_EQ((*values("Atanh", {1.0, -1.0}))[0], ir::Scalars({kInf, -kInf}));
}

TEST(TrigonometryTest, Types) {
  const Given half{TensorType{DType::kF16, {}}, {0.5}};
  ExpectNear(Apply("Cos", {half}), {0.87744140625});  // rounded to f16
  const Given whole{TensorType{DType::kF64, {1}}, {0.5}};
  EXPECT_THAT(Apply("Cos", {whole}).status().message(), HasSubstr("its elements are f64"));
}

}  // namespace
}  // namespace hone::graph
