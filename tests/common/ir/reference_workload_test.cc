#include "common/ir/reference_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The reference computes what InterpretElement says of every element: value and magnitude.
TEST(ReferenceWorkloadTest, AgreesWithTheElements) {
  const auto workload = ParseWorkload(
      "workload w\n"
      "input X: f32[7, 5]\n"
      "input W: f32[3, 5] constant\n"
      "Y[i: 7, j: 5] = sum(r: 3 where 0 <= i + r - 1 < 7) X[i + r - 1, j] * W[r, j]\n"
      "M[i: 7] = max(j: 5) Y[i, j]\n"
      "output Z[i: 7, j: 5] = exp(Y[i, j] - M[i]) / (1.0 + abs(X[i, j]))\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto reference = ReferenceWorkload(*workload);
  ASSERT_TRUE(reference.ok()) << reference.status();
  Rng rng(3);
  std::vector<Values> inputs = {Values(35), Values(15)};
  for (Values& input : inputs) {
    for (double& value : input) value = static_cast<float>(rng.Uniform() * 2 - 1);
  }
  const auto outputs = Interpret(*reference, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), 2u);
  const BufferId z = workload->Outputs()[0];
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      const ElementValue element = InterpretElement(*workload, z, {i, j}, [&](BufferId tensor, int64_t offset) {
        return inputs[tensor][offset];
      });
      EXPECT_NEAR((*outputs)[0][i * 5 + j], element.value, 1e-12 * std::abs(element.value));
      EXPECT_NEAR((*outputs)[1][i * 5 + j], element.magnitude, 1e-12 * element.magnitude);
      EXPECT_GE(element.magnitude, std::abs(element.value));
    }
  }
}

std::string ReferenceText(absl::string_view text) {
  const auto workload = ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  const auto reference = ReferenceWorkload(*workload);
  EXPECT_TRUE(reference.ok()) << reference.status();
  return reference->ToText();
}

// Conditions take part by their values.
TEST(ReferenceWorkloadTest, SaysWhatIsTooLargeToBeChecked) {
  const auto small = ParseWorkload("workload w\ninput A: f32[4]\noutput B[i: 4] = A[i]\n");
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(ReferenceBytes(*small), 4 * 32);
  EXPECT_TRUE(CheckReferenceBytes(*small).ok());
  const auto large =
      ParseWorkload("workload w\ninput A: f32[1]\noutput B[i: 8589934592] = A[0]\n");
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_THAT(CheckReferenceBytes(*large).message(),
              ::testing::HasSubstr("262144 MiB, 32 bytes for each element; at most 4096 MiB"));
}

TEST(ReferenceWorkloadTest, MagnitudesThatNobodyReadsAreNotComputed) {
  const std::string text = ReferenceText(
      "workload w\n"
      "input X: f32[7, 5]\n"
      "P[i: 7] = prod(j: 5) X[i, j]\n"
      "M[i: 7] = max(j: 5) X[i, j]\n"
      "output Z[i: 7, j: 5] = select(P[i] < 0.0, X[i, j], X[i, j] / M[i])\n");
  EXPECT_THAT(text, Not(HasSubstr("P_magnitude")));
  EXPECT_THAT(text, HasSubstr("M_magnitude"));
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
