#include "common/ir/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Workload ParseBody(const std::string& body) {
  auto workload = ParseWorkload(absl::StrCat("workload w\n", body, "\n"));
  EXPECT_THAT(workload, IsOk());
  return std::move(workload).value();
}

std::vector<Values> Compute(const std::string& body, const std::vector<Values>& inputs) {
  auto outputs = Interpret(ParseBody(body), inputs);
  EXPECT_THAT(outputs, IsOk());
  return std::move(outputs).value();
}

TEST(InterpreterTest, Reducers) {
  const std::string input = "input A: f32[2, 3]\n";
  const Values a = {3, -1, 2, 5, 5, -7};
  EXPECT_THAT(Compute(input + "output B[i: 2] = sum(k: 3) A[i, k]", {a})[0], ElementsAre(4, 3));
  EXPECT_THAT(Compute(input + "output B[i: 2] = prod(k: 3) A[i, k]", {a})[0],
              ElementsAre(-6, -175));
  EXPECT_THAT(Compute(input + "output B[i: 2] = min(k: 3) A[i, k]", {a})[0], ElementsAre(-1, -7));
  EXPECT_THAT(Compute(input + "output B[i: 2] = max(k: 3) A[i, k]", {a})[0], ElementsAre(3, 5));
}

TEST(InterpreterTest, ArgmaxTakesTheLowestIndexOfEquals) {
  const std::string text =
      "input A: i32[3, 4]\noutput (V, I)[i: 3] = argmax(k: 4) (A[i, k], i32(index(k)))\n"
      "output (W, J)[i: 3] = argmin(k: 4) (A[i, k], index(k))";
  const auto outputs =
      Compute(text, {{1, 7, 7, 0, -5, -5, -5, -5, -2147483648.0, -2147483648.0, 3, 3}});
  EXPECT_THAT(outputs[0], ElementsAre(7, -5, 3));
  EXPECT_THAT(outputs[1], ElementsAre(1, 0, 2));
  EXPECT_THAT(outputs[2], ElementsAre(0, -5, -2147483648.0));
  EXPECT_THAT(outputs[3], ElementsAre(3, 0, 0));
}

// The index is valid even if every value equals the neutral element.
TEST(InterpreterTest, ArgmaxOfTheNeutralElement) {
  const auto outputs =
      Compute("input A: f32[1, 3]\noutput (V, I)[i: 1] = argmax(k: 3) (A[i, k], index(k))",
              {{-INFINITY, -INFINITY, -INFINITY}});
  EXPECT_EQ(outputs[0][0], -INFINITY);
  EXPECT_EQ(outputs[1][0], 0);
}

TEST(InterpreterTest, OnlineSoftmaxIsMaximumAndSum) {
  const Values a = {1, 3, -2, 0.5, -INFINITY, -INFINITY, 2, -INFINITY};
  const auto outputs =
      Compute("input A: f64[2, 4]\noutput (M, S)[i: 2] = online_softmax(k: 4) (A[i, k], 1.0)", {a});
  EXPECT_THAT(outputs[0], ElementsAre(3, 2));
  EXPECT_THAT(outputs[1], Pointwise(DoubleNear(1e-12),
                                    {std::exp(-2.0) + 1 + std::exp(-5.0) + std::exp(-2.5), 1.0}));
}

TEST(InterpreterTest, GuardsNarrowTheDomain) {
  // Where the guard fails, nothing is read or added, not even 0 · infinity.
  const Values x = {1, 2, INFINITY, 4};
  const auto outputs = Compute(
      "input X: f32[4]\ninput W: f32[3]\n"
      "output Y[i: 4] = sum(r: 3 where 0 <= i + r - 1 < 4) X[i + r - 1] * W[r]\n"
      "output Z[i: 2] = max(r: 3 where 0 <= i + r - 3 < 4) X[i + r - 3]",
      {x, {0, 1, 0}});
  EXPECT_EQ(outputs[0][0], 1);
  EXPECT_TRUE(std::isnan(outputs[0][1]));  // 0 · infinity inside the domain
  EXPECT_EQ(outputs[0][2], INFINITY);
  EXPECT_EQ(outputs[1][0], -INFINITY);  // an empty domain gives the neutral element
  EXPECT_EQ(outputs[1][1], 1);
}

TEST(InterpreterTest, IntegersWrapAtEachOperation) {
  const auto i8 = Compute(
      "input A: i8[3]\ninput B: i8[3]\n"
      "output C[i: 3] = A[i] * B[i]\n"
      "output D[i: 3] = i32(A[i] + B[i])\n"
      "output E[i: 3] = i32(A[i]) + i32(B[i])\n"
      "output F[i: 3] = -A[i]\n"
      "output G[i: 3] = A[i] / B[i]",
      {{100, -128, 7}, {100, -1, -2}});
  EXPECT_THAT(i8[0], ElementsAre(16, -128, -14));
  EXPECT_THAT(i8[1], ElementsAre(-56, 127, 5));
  EXPECT_THAT(i8[2], ElementsAre(200, -129, 5));
  EXPECT_THAT(i8[3], ElementsAre(-100, -128, -7));
  EXPECT_THAT(i8[4], ElementsAre(1, -128, -3));
  const auto i32 =
      Compute("input A: i32[4]\noutput S[u: 1] = sum(k: 4) A[k]\noutput P[i: 4] = A[i] * A[i]",
              {{2147483647, 1, 5, 1 << 30}});
  EXPECT_THAT(i32[0], ElementsAre(-2147483648.0 + 5 + (1 << 30)));
  EXPECT_THAT(i32[1], ElementsAre(1, 1, 25, 0));
  const auto u8 = Compute("input A: u8[2]\noutput B[i: 2] = A[i] - 3", {{2, 250}});
  EXPECT_THAT(u8[0], ElementsAre(255, 247));
}

// Counts are taken as written: they do not wrap at the width.
TEST(InterpreterTest, ShiftsByAnyCount) {
  const auto i8 = Compute(
      "input A: i8[7]\ninput N: i8[7]\noutput L[i: 7] = A[i] << N[i]\n"
      "output R[i: 7] = A[i] >> N[i]",
      {{3, -128, 100, 127, -5, 5, -1}, {6, 7, 0, 8, 100, -1, -128}});
  EXPECT_THAT(i8[0], ElementsAre(-64, 0, 100, 0, 0, 0, 0));
  EXPECT_THAT(i8[1], ElementsAre(0, -1, 100, 0, -1, 0, -1));
  const auto u8 = Compute(
      "input A: u8[4]\ninput N: u8[4]\noutput L[i: 4] = A[i] << N[i]\n"
      "output R[i: 4] = A[i] >> N[i]",
      {{255, 255, 255, 129}, {1, 8, 255, 7}});
  EXPECT_THAT(u8[0], ElementsAre(254, 0, 0, 128));
  EXPECT_THAT(u8[1], ElementsAre(127, 0, 0, 1));
  const auto i32 = Compute(
      "input A: i32[3]\noutput L[i: 3] = A[i] << 31\noutput R[i: 3] = A[i] >> 31\n"
      "output S[i: 3] = i64(A[i]) << 62 >> 62",
      {{1, -1, 2}});
  EXPECT_THAT(i32[0], ElementsAre(-0x1p31, -0x1p31, 0));
  EXPECT_THAT(i32[1], ElementsAre(0, -1, 0));
  EXPECT_THAT(i32[2], ElementsAre(1, -1, -2));
}

TEST(InterpreterTest, RoundingToWholeNumbers) {
  const auto outputs = Compute(
      "input A: f32[7]\noutput R[i: 7] = round(A[i])\noutput F[i: 7] = floor(A[i])\n"
      "output C[i: 7] = ceil(A[i])\noutput T[i: 7] = trunc(A[i])",
      {{0.5, 1.5, -2.5, -0.75, 3, 16777215, INFINITY}});
  EXPECT_THAT(outputs[0], ElementsAre(0, 2, -2, -1, 3, 16777215, INFINITY));
  EXPECT_THAT(outputs[1], ElementsAre(0, 1, -3, -1, 3, 16777215, INFINITY));
  EXPECT_THAT(outputs[2], ElementsAre(1, 2, -2, 0, 3, 16777215, INFINITY));
  EXPECT_THAT(outputs[3], ElementsAre(0, 1, -2, 0, 3, 16777215, INFINITY));
}

TEST(InterpreterTest, Powers) {
  const auto outputs = Compute("input X: f64[6]\ninput Y: f64[6]\noutput P[i: 6] = pow(X[i], Y[i])",
                               {{2, -2, -2, NAN, 0, 1}, {10, 3, 0.5, 0, -1, NAN}});
  EXPECT_THAT(outputs[0], ElementsAre(1024, -8, ::testing::IsNan(), 1, INFINITY, 1));
}

TEST(InterpreterTest, StoresRoundToTheType) {
  const auto outputs = Compute(
      "input A: f32[2]\noutput B[i: 2] = f16(A[i])\noutput C[i: 2] = bf16(A[i])\n"
      "output D[i: 2] = i32(A[i])\noutput E[i: 2] = A[i] < 0.0",
      {{2049.0, -2.75}});
  EXPECT_THAT(outputs[0], ElementsAre(2048, -2.75));
  EXPECT_THAT(outputs[1], ElementsAre(2048, -2.75));
  EXPECT_THAT(outputs[2], ElementsAre(2049, -2));
  EXPECT_THAT(outputs[3], ElementsAre(0, 1));
}

TEST(InterpreterTest, EightBitFloatsSaturate) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto outputs = Compute(
      "input A: f32[5]\noutput B[i: 5] = f8e4m3(A[i])\noutput C[i: 5] = f8e5m2(A[i])\n"
      "output M[u: 1] = max(k: 5 where 0 <= k - 9 < 2) f8e4m3(A[k])\n"
      "output N[u: 1] = min(k: 5 where 0 <= k - 9 < 2) f8e5m2(A[k])",
      {{1.1, 300, -1e6, kInfinity, -kInfinity}});
  EXPECT_THAT(outputs[0], ElementsAre(1.125, 288, -448, 448, -448));
  EXPECT_THAT(outputs[1], ElementsAre(1, 320, -57344, kInfinity, -kInfinity));
  EXPECT_THAT(outputs[2], ElementsAre(-448));
  EXPECT_THAT(outputs[3], ElementsAre(kInfinity));
}

TEST(InterpreterTest, Functions) {
  const auto outputs = Compute(
      "input A: f64[1]\n"
      "output B[i: 1] = exp(A[i]) + log(A[i]) * sqrt(A[i]) - rsqrt(A[i])\n"
      "output C[i: 1] = tanh(A[i]) + erf(A[i]) + sigmoid(A[i])\n"
      "output D[i: 1] = select(A[i] < 1.0 or not(A[i] <= 2.0 and A[i] == A[i]), min(A[i], 1.0), "
      "max(A[i], 4.0))\n"
      "output E[i: 1] = abs(-A[i]) / 0.5",
      {{2.0}});
  EXPECT_NEAR(outputs[0][0], std::exp(2.0) + std::log(2.0) * std::sqrt(2.0) - 1 / std::sqrt(2.0),
              1e-12);
  EXPECT_NEAR(outputs[1][0], std::tanh(2.0) + std::erf(2.0) + 1 / (1 + std::exp(-2.0)), 1e-12);
  EXPECT_EQ(outputs[2][0], 4);
  EXPECT_EQ(outputs[3][0], 4);
}

TEST(InterpreterTest, RefusesInputsThatDoNotFit) {
  const Workload workload = ParseBody("input A: f32[2]\noutput B[i: 2] = A[i]");
  EXPECT_THAT(std::string(Interpret(workload, std::vector<Values>{}).status().message()),
              HasSubstr("has 1 inputs, not 0"));
  EXPECT_THAT(std::string(Interpret(workload, std::vector<Values>{Values(3)}).status().message()),
              HasSubstr("input A has 2 elements, not 3"));
  EXPECT_THAT(Interpret(workload, std::vector<Values>{Values(2)}, /*max_steps=*/1),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// Incorrect loops are detected.
TEST(InterpreterTest, DetectsUnwrittenElementsAndOutOfRangeIndices) {
  const auto workload = std::make_shared<const Workload>(
      ParseBody("input A: f32[4]\nB[i: 4] = A[i]\noutput C[i: 4] = B[i]"));
  Program program = Program::FromWorkload(workload);
  const NodeId loop = program.LoopsAbove(program.FindBlock("B"))[0];
  program.node(loop).extent = ExtentTable::Constant(3);
  EXPECT_THAT(Interpret(program, std::vector<Values>{Values(4, 1)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("of B is read before it is written")));
  program.node(loop).extent = ExtentTable::Constant(5);
  EXPECT_THAT(
      Interpret(program, std::vector<Values>{Values(4, 1)}),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("index 0 of B[i] is 4, the extent 4")));
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kOdd = (int64_t{1} << 53) + 1;  // not representable as a double

std::vector<Scalars> RunExactly(const std::string& text, const std::vector<Scalars>& inputs) {
  const auto outputs = Interpret(ParseBody(text), inputs);
  EXPECT_THAT(outputs, IsOk());
  return outputs.ok() ? *outputs : std::vector<Scalars>();
}

TEST(InterpreterTest, IntegersOf64BitsAreExact) {
  const auto outputs = RunExactly(
      "input A: i64[3]\n"
      "output Min[u: 1] = min(k: 3) A[k]\n"
      "output Max[u: 1] = max(k: 3) A[k]\n"
      "output Sum[u: 1] = sum(k: 3) A[k]\n"
      "output (V, P)[u: 1] = argmin(k: 3) (A[k], i32(index(k)))\n"
      "output Next[i: 3] = A[i] + 9007199254740993\n"
      "output Third[i: 3] = A[i] / 3\n"
      "output Least[i: 3] = select(A[i] == -9223372036854775808, i32(1), i32(0)) + i32(A[i])\n",
      {{kMost, kMost - 1, kOdd}});
  ASSERT_EQ(outputs.size(), 8u);
  EXPECT_EQ(outputs[0][0], kOdd);
  EXPECT_EQ(outputs[1][0], kMost);
  EXPECT_EQ(outputs[2][0], static_cast<int64_t>(2 * static_cast<uint64_t>(kMost) - 1 + kOdd));
  EXPECT_EQ(outputs[3][0], kOdd);
  EXPECT_EQ(outputs[4][0], 2);
  EXPECT_EQ(outputs[5][2], 2 * kOdd);
  EXPECT_EQ(outputs[6][2], kOdd / 3);
  EXPECT_EQ(outputs[7][0], -1);
}

// Above 2^53, where the neutral element of a minimum used to lie.
TEST(InterpreterTest, MinimumOfLargeIntegersIsExact) {
  const Scalars nanoseconds = {1763800000000000007, 1763800000000000009};
  const auto outputs =
      RunExactly("input A: i64[2]\noutput M[u: 1] = min(k: 2) A[k]\n", {nanoseconds});
  EXPECT_EQ(outputs[0][0], nanoseconds[0]);
}

TEST(InterpreterTest, DivisionAndNegationWrapAtTheLeastInteger) {
  const auto outputs = RunExactly(
      "input A: i64[1]\n"
      "output Q[i: 1] = A[i] / (-1)\n"
      "output N[i: 1] = -A[i]\n"
      "output B[i: 1] = abs(A[i])\n"
      "output Z[i: 1] = A[i] / (A[i] - A[i])\n",
      {{kLeast}});
  EXPECT_EQ(outputs[0][0], kLeast);
  EXPECT_EQ(outputs[1][0], kLeast);
  EXPECT_EQ(outputs[2][0], kLeast);
  EXPECT_EQ(outputs[3][0], 0);
}

// f16 and bf16 have few digits: a sum rounded at each step would stop at 256 or 2048.
TEST(InterpreterTest, SumsOfShortFormatsAreRoundedOnce) {
  for (const absl::string_view dtype : {"f16", "bf16", "f8e5m2"}) {
    const auto outputs =
        RunExactly(absl::StrCat("input A: ", dtype, "[4096]\noutput S[u: 1] = sum(k: 4096) A[k]\n"),
                   {Scalars(4096, 1)});
    EXPECT_EQ(outputs[0][0], 4096) << dtype;
  }
}

// Powers of e inside of it overflow, but the result is only denormal.
TEST(InterpreterTest, SigmoidOfSmallNumbersIsDenormal) {
  const auto outputs = Compute("input A: f64[2]\noutput Y[i: 2] = sigmoid(A[i])", {{-720, -700.5}});
  EXPECT_THAT(outputs[0], ElementsAre(std::exp(-720.0), std::exp(-700.5)));
}

}  // namespace
}  // namespace hone::ir
