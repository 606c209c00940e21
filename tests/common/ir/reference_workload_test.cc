#include "common/ir/reference_workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload_parser.h"

namespace hone::ir {
namespace {

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

}  // namespace
}  // namespace hone::ir
