#include "common/ir/reference_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"
#include "tests/common/ir/interpret_element.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The reference computes the same value and magnitude as InterpretElement for every element.
TEST(ReferenceWorkloadTest, AgreesWithTheElements) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ParseWorkload("workload w\n"
                    "input X: f32[7, 5]\n"
                    "input W: f32[3, 5] constant\n"
                    "Y[i: 7, j: 5] = sum(r: 3 where 0 <= i + r - 1 < 7) X[i + r - 1, j] * W[r, j]\n"
                    "M[i: 7] = max(j: 5) Y[i, j]\n"
                    "output Z[i: 7, j: 5] = exp(Y[i, j] - M[i]) / (1.0 + abs(X[i, j]))\n"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, ReferenceWorkload(workload));
  Rng rng(3);
  std::vector<Values> inputs = {Values(35), Values(15)};
  for (Values& input : inputs) {
    for (double& value : input) value = static_cast<float>(rng.Uniform() * 2 - 1);
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(reference, inputs));
  ASSERT_EQ(outputs.size(), 2u);
  const BufferId z = workload.Outputs()[0];
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      const ElementValue element =
          InterpretElement(workload, z, {i, j},
                           [&](BufferId tensor, int64_t offset) { return inputs[tensor][offset]; });
      const double value = element.value.real();
      EXPECT_NEAR(outputs[0][i * 5 + j], value, 1e-12 * std::abs(value));
      EXPECT_NEAR(outputs[1][i * 5 + j], element.magnitude, 1e-12 * element.magnitude);
      EXPECT_GE(element.magnitude, std::abs(value));
    }
  }
}

std::string ReferenceText(absl::string_view text) {
  const auto workload = ParseWorkload(text);
  EXPECT_THAT(workload, IsOk());
  const auto reference = ReferenceWorkload(*workload);
  EXPECT_THAT(reference, IsOk());
  return reference->ToText();
}

// Conditions on exact values need no magnitudes.
TEST(ReferenceWorkloadTest, UnusedMagnitudesAreNotComputed) {
  const std::string text = ReferenceText(
      "workload w\n"
      "input X: f32[7, 5]\n"
      "P[i: 7] = min(j: 5) X[i, j]\n"
      "M[i: 7] = max(j: 5) X[i, j]\n"
      "output Z[i: 7, j: 5] = select(P[i] < 0.0, X[i, j], X[i, j] / M[i])\n");
  EXPECT_THAT(text, Not(HasSubstr("P_magnitude")));
  EXPECT_THAT(text, HasSubstr("M_magnitude"));
}

// Compares all tensors of a reference with InterpretElement().
void ExpectReferenceOfElements(const Workload& workload, const std::vector<Values>& inputs) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, ReferenceWorkload(workload));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(reference, inputs));
  const size_t count = workload.Outputs().size();
  ASSERT_EQ(outputs.size(), 3 * count);
  const auto read = [&](BufferId, int64_t offset) { return inputs[0][offset]; };
  for (size_t o = 0; o < count; ++o) {
    const BufferId id = workload.Outputs()[o];
    const bool matrix = workload.tensors[id].shape.size() == 2;
    for (int64_t i = 0; i < 7; ++i) {
      for (int64_t j = 0; j < (matrix ? 5 : 1); ++j) {
        const std::vector<int64_t> at = matrix ? std::vector{i, j} : std::vector{i};
        const ElementValue element = InterpretElement(workload, id, at, read);
        const double expected[] = {element.value.real(), element.magnitude, element.rounding};
        for (size_t tensor = 0; tensor < 3; ++tensor) {
          const double found = outputs[tensor * count + o][matrix ? i * 5 + j : i];
          if (!std::isfinite(expected[tensor])) {
            EXPECT_FALSE(std::isfinite(found)) << "output " << o << ", tensor " << tensor;
            continue;
          }
          EXPECT_NEAR(found, expected[tensor], 1e-12 * std::abs(expected[tensor]))
              << "output " << o << ", tensor " << tensor;
        }
      }
    }
  }
}

// The third kind of tensor of a reference: the roundings.
TEST(ReferenceWorkloadTest, RoundingsAgreeWithTheElements) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ParseWorkload("workload w\n"
                    "input X: bf16[7, 5]\n"
                    "E[i: 7, j: 5] = exp(X[i, j])\n"
                    "S[i: 7] = sum(j: 5) E[i, j]\n"
                    "T[i: 7] = prod(j: 5) E[i, j]\n"
                    "(M, Z)[i: 7] = online_softmax(j: 5) (f32(E[i, j]), 1.0)\n"
                    "output A[i: 7, j: 5] = E[i, j] / S[i] + sqrt(S[i]) * log(S[i])\n"
                    "output B[i: 7] = f32(T[i]) + Z[i] + rsqrt(f32(S[i])) + M[i]\n"
                    "output C[i: 7, j: 5] = X[i, j]\n"
                    "output D[i: 7] = max(j: 5 where 0 <= j - 9 < 2) E[i, j]\n"
                    "(V, I)[i: 7] = argmax(j: 5) (f32(E[i, j]) * 0.7, index(j))\n"
                    "output G[i: 7] = I[i]\n"
                    "(W, Q)[i: 7] = argmin(j: 5) (rsqrt(abs(X[i, j]) + 0.3), index(j))\n"
                    "output L[i: 7] = W[i]\n"
                    "output H[i: 7, j: 5] = (f32(E[i, j]) - 0.5) * (f32(S[i]) + 0.1)\n"));
  ASSERT_TRUE(RoundsOnTheWay(workload));
  Rng rng(3);
  std::vector<Values> inputs = {Values(35)};
  // There are few different values, so that rows have ties.
  for (double& value : inputs[0]) value = RoundTo(DType::kBF16, rng.Below(3) * 0.25);
  ExpectReferenceOfElements(workload, inputs);
  EXPECT_FALSE(RoundsOnTheWay(*ParseWorkload(
      "workload w\ninput X: bf16[7, 5]\noutput S[i: 7] = sum(j: 5) X[i, j] * X[i, j]\n")));
}

// Each conversion repeats the error of its operand, over fewer axes than the sum.
TEST(ReferenceWorkloadTest, QuantizedProductsAgreeWithTheElements) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ParseWorkload("workload w\n"
                    "input X: f32[7, 5]\n"
                    "M[i: 7] = max(k: 5) abs(X[i, k])\n"
                    "output Y[i: 7, j: 5] = sum(k: 5) f32(i8(max(min(X[i, k] * (127.0 / M[i]), "
                    "127.0), -128.0)))"
                    " * f32(i32(X[k, j] * 3.0) * i32(3) / i32(2) + i32(index(j)))\n"
                    "output Z[i: 7, j: 5] = i8(max(min(i32(X[i, j] * 100.3) + i32(3), i32(127)), "
                    "i32(-128)))\n"));
  Rng rng(5);
  std::vector<Values> inputs = {Values(35)};
  for (double& value : inputs[0]) value = 0.25 + rng.Below(9) * 0.25;
  ExpectReferenceOfElements(workload, inputs);
}

// Comparisons and conversions of computed floats jump where arithmetic errors cross a boundary.
TEST(ReferenceWorkloadTest, JumpsAgreeWithTheElements) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ParseWorkload(
          "workload w\n"
          "input X: f32[7, 5]\n"
          "Z[i: 7, j: 5] = X[i, j] * 3.0 - 0.75\n"
          "B[i: 7, j: 5] = 0.0 < Z[i, j] and Z[i, j] <= 2.25\n"
          "I[i: 7, j: 5] = i32(Z[i, j] * 4.0)\n"
          "output A[i: 7, j: 5] = select(0.0 < Z[i, j], Z[i, j] * 2.0 + 1.0, Z[i, j] / 3.0)\n"
          "output C[i: 7, j: 5] = B[i, j]\n"
          "output D[i: 7, j: 5] = select(not(B[i, j]), X[i, j], 5.0)\n"
          "output E[i: 7, j: 5] = I[i, j] / i32(2)\n"
          "output F[i: 7, j: 5] = i8(I[i, j]) * i8(42)\n"
          "output G[i: 7, j: 5] = bool(Z[i, j])\n"
          "output H[i: 7] = sum(j: 5) log(1.0625 - X[i, j] * X[i, j]) * sqrt(Z[i, j] * Z[i, j])\n"
          "output J[i: 7] = sum(j: 5) rsqrt(Z[i, j] * Z[i, j] + 1.0) / (Z[i, j] - 7.0)\n"
          "(V, P)[i: 7] = argmax(j: 5) (select(Z[i, j] < 2.25, 0, 1), index(j))\n"
          "output K[i: 7] = P[i]\n"
          "output L[i: 7, j: 5] = round(Z[i, j]) * 0.3 + floor(Z[i, j] * 2.0) - ceil(Z[i, j])\n"
          "output M[i: 7] = sum(j: 5) trunc(Z[i, j] / 3.0) * X[i, j]\n"
          "output N[i: 7, j: 5] = (I[i, j] << 3) + (i32(7) >> I[i, j]) + (I[i, j] >> 1)\n"
          "output O[i: 7, j: 5] = pow(Z[i, j], 2.0) + pow(1.0 + X[i, j] * 0.3, Z[i, j])\n"
          "output Q[i: 7, j: 5] = pow(round(Z[i, j]) + 9.0, 1.5 + floor(Z[i, j]))\n"));
  EXPECT_TRUE(RoundsOnTheWay(workload));
  Rng rng(3);
  std::vector<Values> inputs = {Values(35)};
  for (double& value : inputs[0]) value = rng.Below(5) * 0.25;
  ExpectReferenceOfElements(workload, inputs);
  EXPECT_FALSE(RoundsOnTheWay(*ParseWorkload(
      "workload w\ninput X: f32[7]\noutput S[i: 7] = select(X[i] < 0.0, X[i] * 0.1, X[i])\n")));
}

// The formula of a rounding repeats its operands.
TEST(ReferenceWorkloadTest, DeepExpressionsStaySmall) {
  std::string value = "C[i]";
  for (int depth = 0; depth < 30; ++depth) value = "C[i] / (C[i] * " + value + ")";
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ParseWorkload("workload w\ninput X: f16[2]\nC[i: 2] = X[i] + 1.0\noutput D[i: 2] = " +
                    value));
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, ReferenceWorkload(workload));
  EXPECT_LT(reference.pool.size(), 100'000);
}

// Operands with long bounds become stages of their own.
void ExpectBoundsOfElements(const std::string& output) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ParseWorkload(
          "workload w\ninput X: bf16[8]\nC[i: 8] = X[i] * X[i]\nD[i: 8] = f32(C[i]) * 0.5\n"
          "output Y[i: 8] = " +
          output));
  HONE_ASSERT_OK_AND_ASSIGN(const auto reference, ReferenceWorkload(workload));
  // Their squares lie between two bf16 numbers.
  Values x;
  for (int i = 0; i < 8; ++i) x.push_back(std::ldexp(i % 2 == 0 ? 1.0625 : -1.0625, i - 4));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(reference, std::vector<Values>{x}));
  for (int64_t i = 0; i < 8; ++i) {
    const ElementValue element = InterpretElement(
        workload, workload.Outputs()[0], {i}, [&](BufferId, int64_t offset) { return x[offset]; });
    EXPECT_NEAR(outputs[1][i], element.magnitude, 1e-12 * element.magnitude) << i;
    EXPECT_NEAR(outputs[2][i], element.rounding, 1e-12 * element.rounding) << i;
    EXPECT_GT(element.rounding, 0);
  }
}

std::string Power(const std::string& base, int exponent) {
  std::string product = base;
  for (int factor = 1; factor < exponent; ++factor) product += " * " + base;
  return product;
}

TEST(ReferenceWorkloadTest, BoundsOfDeepExpressionsAgreeWithTheElements) {
  ExpectBoundsOfElements(Power("(D[i] + 1.5)", 12));
  ExpectBoundsOfElements(Power("(D[i] + 1.5)", 30));
}

// Only the load that is out of bounds where the guard fails must stay in the guarded stage.
TEST(ReferenceWorkloadTest, DeepExpressionsUnderGuardsHaveBounds) {
  ExpectBoundsOfElements("sum(j: 3 where 0 <= i + j - 1 < 8) D[i + j - 1] * (" +
                         Power("(D[i] + 1.5)", 30) + ")");
}

// f64 cannot represent all values of i64.
TEST(ReferenceWorkloadTest, Int64ValuesAreNotConverted) {
  const std::string text =
      ReferenceText("workload w\ninput A: i64[3]\noutput B[i: 3] = A[i] + 9007199254740993\n");
  EXPECT_THAT(text, HasSubstr("output B_value[i: 3] = A[i] + 9007199254740993\n"));
}

TEST(ReferenceWorkloadTest, OnlyFloatsAreComputedInDouble) {
  const std::string text = ReferenceText(
      "workload w\n"
      "input X: i8[7, 5]\n"
      "input B: bool[7]\n"
      "output S[i: 7] = sum(j: 5) X[i, j] * X[i, j]\n"
      "output Z[i: 7] = select(B[i], f16(f32(S[i])), f16(0.1))\n");
  EXPECT_THAT(text, HasSubstr("\nS_value[i: 7] = sum(j: 5) X[i, j] * X[i, j]\n"));
  EXPECT_THAT(text, HasSubstr("\noutput S_value_f64[i: 7] = f64(S_value[i])\n"));
  EXPECT_THAT(text, HasSubstr("select(B[i], f64(f16("));
}

}  // namespace
}  // namespace hone::ir
