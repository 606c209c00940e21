#include "common/ir/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/ir/workload_parser.h"

namespace hone::ir {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Workload Parse(const std::string& body) {
  auto workload = ParseWorkload(absl::StrCat("workload w\n", body, "\n"));
  EXPECT_TRUE(workload.ok()) << workload.status();
  return std::move(workload).value();
}

std::vector<Values> Compute(const std::string& body, const std::vector<Values>& inputs) {
  auto outputs = Interpret(Parse(body), inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return std::move(outputs).value();
}

TEST(InterpreterTest, Reducers) {
  const std::string input = "input A: f32[2, 3]\n";
  const Values a = {3, -1, 2, 5, 5, -7};
  EXPECT_THAT(Compute(input + "output B[i: 2] = sum(k: 3) A[i, k]", {a})[0], ElementsAre(4, 3));
  EXPECT_THAT(Compute(input + "output B[i: 2] = prod(k: 3) A[i, k]", {a})[0], ElementsAre(-6, -175));
  EXPECT_THAT(Compute(input + "output B[i: 2] = min(k: 3) A[i, k]", {a})[0], ElementsAre(-1, -7));
  EXPECT_THAT(Compute(input + "output B[i: 2] = max(k: 3) A[i, k]", {a})[0], ElementsAre(3, 5));
}

TEST(InterpreterTest, ArgmaxTakesTheLowestIndexOfEquals) {
  const std::string text =
      "input A: i32[3, 4]\noutput (V, I)[i: 3] = argmax(k: 4) (A[i, k], i32(index(k)))\n"
      "output (W, J)[i: 3] = argmin(k: 4) (A[i, k], index(k))";
  const auto outputs = Compute(text, {{1, 7, 7, 0, -5, -5, -5, -5, -2147483648.0, -2147483648.0, 3, 3}});
  EXPECT_THAT(outputs[0], ElementsAre(7, -5, 3));
  EXPECT_THAT(outputs[1], ElementsAre(1, 0, 2));
  EXPECT_THAT(outputs[2], ElementsAre(0, -5, -2147483648.0));
  EXPECT_THAT(outputs[3], ElementsAre(3, 0, 0));
}

// Where every value is the neutral element itself, the index is still a real one.
TEST(InterpreterTest, ArgmaxOfTheNeutralElement) {
  const auto outputs =
      Compute("input A: f32[1, 3]\noutput (V, I)[i: 1] = argmax(k: 3) (A[i, k], index(k))", {{-INFINITY, -INFINITY, -INFINITY}});
  EXPECT_EQ(outputs[0][0], -INFINITY);
  EXPECT_EQ(outputs[1][0], 0);
}

TEST(InterpreterTest, OnlineSoftmaxIsMaximumAndSum) {
  const Values a = {1, 3, -2, 0.5, -INFINITY, -INFINITY, 2, -INFINITY};
  const auto outputs = Compute(
      "input A: f64[2, 4]\noutput (M, S)[i: 2] = online_softmax(k: 4) (A[i, k], 1.0)", {a});
  EXPECT_THAT(outputs[0], ElementsAre(3, 2));
  EXPECT_THAT(outputs[1], Pointwise(DoubleNear(1e-12),
                                    {std::exp(-2.0) + 1 + std::exp(-5.0) + std::exp(-2.5), 1.0}));
}

TEST(InterpreterTest, GuardsNarrowTheDomain) {
  // Where the guard fails nothing is read and nothing is added, not even 0 · infinity.
  const Values x = {1, 2, INFINITY, 4};
  const auto outputs = Compute(
      "input X: f32[4]\ninput W: f32[3]\n"
      "output Y[i: 4] = sum(r: 3 where 0 <= i + r - 1 < 4) X[i + r - 1] * W[r]\n"
      "output Z[i: 2] = max(r: 3 where 0 <= i + r - 3 < 4) X[i + r - 3]",
      {x, {0, 1, 0}});
  EXPECT_EQ(outputs[0][0], 1);
  EXPECT_TRUE(std::isnan(outputs[0][1]));  // 0 · infinity that is in the domain
  EXPECT_EQ(outputs[0][2], INFINITY);
  EXPECT_EQ(outputs[1][0], -INFINITY);     // an empty domain gives the neutral element
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
  const auto i32 = Compute(
      "input A: i32[4]\noutput S[u: 1] = sum(k: 4) A[k]\noutput P[i: 4] = A[i] * A[i]",
      {{2147483647, 1, 5, 1 << 30}});
  EXPECT_THAT(i32[0], ElementsAre(-2147483648.0 + 5 + (1 << 30)));
  EXPECT_THAT(i32[1], ElementsAre(1, 1, 25, 0));
  const auto u8 = Compute("input A: u8[2]\noutput B[i: 2] = A[i] - 3", {{2, 250}});
  EXPECT_THAT(u8[0], ElementsAre(255, 247));
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

TEST(InterpreterTest, Functions) {
  const auto outputs = Compute(
      "input A: f64[1]\n"
      "output B[i: 1] = exp(A[i]) + log(A[i]) * sqrt(A[i]) - rsqrt(A[i])\n"
      "output C[i: 1] = tanh(A[i]) + erf(A[i]) + sigmoid(A[i])\n"
      "output D[i: 1] = select(A[i] < 1.0 or not(A[i] <= 2.0 and A[i] == A[i]), min(A[i], 1.0), max(A[i], 4.0))\n"
      "output E[i: 1] = abs(-A[i]) / 0.5",
      {{2.0}});
  EXPECT_NEAR(outputs[0][0], std::exp(2.0) + std::log(2.0) * std::sqrt(2.0) - 1 / std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(outputs[1][0], std::tanh(2.0) + std::erf(2.0) + 1 / (1 + std::exp(-2.0)), 1e-12);
  EXPECT_EQ(outputs[2][0], 4);
  EXPECT_EQ(outputs[3][0], 4);
}

TEST(InterpreterTest, RefusesInputsThatDoNotFit) {
  const Workload workload = Parse("input A: f32[2]\noutput B[i: 2] = A[i]");
  EXPECT_THAT(std::string(Interpret(workload, {}).status().message()), HasSubstr("has 1 inputs, not 0"));
  EXPECT_THAT(std::string(Interpret(workload, {Values(3)}).status().message()),
              HasSubstr("input A has 2 elements, not 3"));
  EXPECT_EQ(Interpret(workload, {Values(2)}, /*max_steps=*/1).status().code(), absl::StatusCode::kResourceExhausted);
}

// A program whose loops are wrong is found out, not computed.
TEST(InterpreterTest, FindsUnwrittenElementsAndStrayIndices) {
  const auto workload = std::make_shared<const Workload>(
      Parse("input A: f32[4]\nB[i: 4] = A[i]\noutput C[i: 4] = B[i]"));
  Program program = Program::FromWorkload(workload);
  const NodeId loop = program.LoopsAbove(program.FindBlock("B"))[0];
  program.node(loop).extent = ExtentTable::Constant(3);
  const absl::Status unwritten = Interpret(program, {Values(4, 1)}).status();
  EXPECT_EQ(unwritten.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unwritten.message()), HasSubstr("of B is read before it is written"));
  program.node(loop).extent = ExtentTable::Constant(5);
  const absl::Status stray = Interpret(program, {Values(4, 1)}).status();
  EXPECT_EQ(stray.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(stray.message()), HasSubstr("index 0 of B[i] is 4, the extent 4"));
}

TEST(InterpretElementTest, AgreesWithTheInterpreter) {
  const Workload workload = Parse(
      "input A: f64[5, 6]\ninput B: f64[6, 4]\n"
      "C[i: 5, j: 4] = sum(k: 6 where 0 <= k - i < 6) A[i, k] * B[k, j]\n"
      "(V, I)[i: 5] = argmax(j: 4) (C[i, j], index(j))\n"
      "output D[i: 5, j: 4] = max(C[i, j], 0.0) - V[i] * 2.0\n"
      "output E[i: 5] = I[i]\n"
      "output P[i: 5] = prod(k: 6) A[i, k]");
  Rng rng(11);
  std::vector<Values> inputs = {Values(30), Values(24)};
  for (Values& input : inputs) {
    for (double& value : input) value = rng.Uniform() * 4 - 2;
  }
  const auto outputs = Interpret(workload, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const auto read = [&](BufferId tensor, int64_t offset) { return inputs[tensor][offset]; };
  const std::vector<BufferId> ids = workload.Outputs();
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_DOUBLE_EQ(InterpretElement(workload, ids[0], {i, j}, read).value, (*outputs)[0][i * 4 + j]);
    }
    EXPECT_EQ(InterpretElement(workload, ids[1], {i}, read).value, (*outputs)[1][i]);
    EXPECT_DOUBLE_EQ(InterpretElement(workload, ids[2], {i}, read).value, (*outputs)[2][i]);
    double product = 1;
    for (int64_t k = 0; k < 6; ++k) product *= std::abs(inputs[0][i * 6 + k]);
    EXPECT_DOUBLE_EQ(InterpretElement(workload, ids[2], {i}, read).magnitude, product);
  }
}

// The magnitude of a sum does not cancel.
TEST(InterpretElementTest, MagnitudeOfASumOfProducts) {
  const Workload workload = Parse("input A: f64[3]\noutput S[u: 1] = sum(k: 3) A[k] * A[k] - 2.0");
  const Values a = {1, -1, 2};
  const ElementValue element = InterpretElement(workload, workload.Outputs()[0], {0}, [&](BufferId, int64_t o) { return a[o]; });
  EXPECT_EQ(element.value, 0);
  EXPECT_EQ(element.magnitude, 12);
}

// An element of a layer norm reads each number of its row a few times, not once for each of the others.
TEST(InterpretElementTest, SumsOfARowAreComputedOnce) {
  const Workload workload = Parse(
      "input X: f32[4, 1024]\nS[i: 4] = sum(k: 1024) X[i, k]\n"
      "Q[i: 4] = sum(k: 1024) (X[i, k] - S[i]) * (X[i, k] - S[i])\n"
      "output Y[i: 4, j: 1024] = (X[i, j] - S[i]) * Q[i]");
  int64_t reads = 0;
  const auto read = [&](BufferId, int64_t offset) {
    ++reads;
    return static_cast<double>(offset % 3);
  };
  const ElementValue element = InterpretElement(workload, workload.Outputs()[0], {2, 0}, read);
  EXPECT_NE(element.value, 0);
  EXPECT_LE(reads, 4 * 1024);
}

// A small difference of large numbers is known badly, and so is what it divides or is the exponent
// of.
TEST(InterpreterTest, QuotientsAndExponentialsCarryTheErrorOfTheirOperands) {
  const Workload workload = Parse(
      "input X: f32[2]\n"
      "output Q[i: 1] = 1.0 / (X[0] - X[1])\n"
      "output E[i: 1] = exp(X[0] - X[1])\n");
  const double inputs[] = {100.25, 100};
  const auto magnitude = [&](int output) {
    return InterpretElement(workload, workload.Outputs()[output], {0},
                            [&](BufferId, int64_t offset) { return inputs[offset]; })
        .magnitude;
  };
  EXPECT_DOUBLE_EQ(magnitude(0), 4 * (200.25 / 0.25));
  EXPECT_DOUBLE_EQ(magnitude(1), std::exp(0.25) * 200.25);
}

}  // namespace
}  // namespace hone::ir
