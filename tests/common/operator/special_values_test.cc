// Checks the results for NaN, infinities and −0 that common/operator/README.md states, in the
// interpreter and in compiled code with the default schedule.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/program.h"
#include "common/schedule/default_schedule.h"
#include "tests/common/operator/arrays.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::op {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsNan;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The outputs of the interpreter, and of the default schedule on each target.
std::vector<std::vector<ir::Values>> Outputs(const std::string& line,
                                             const std::vector<ir::Values>& inputs) {
  const auto workload = std::make_shared<const ir::Workload>(Built(line));
  std::vector<std::vector<ir::Values>> all;
  auto interpreted = ir::Interpret(*workload, inputs);
  EXPECT_THAT(interpreted, IsOk());
  if (interpreted.ok()) all.push_back(*std::move(interpreted));
  for (const target::Target& target : codegen::RunnableTargets()) {
    ir::Program program = ir::Program::FromWorkload(workload);
    EXPECT_THAT(schedule::ApplyDefaultSchedule(program, target.vector_bits / 32), IsOk());
    const auto compiled = codegen::CompiledProgram::Load(program, target);
    EXPECT_THAT(compiled, IsOk());
    if (!compiled.ok()) continue;
    auto computed = (*compiled)->Run(inputs);
    EXPECT_THAT(computed, IsOk());
    if (computed.ok()) all.push_back(*std::move(computed));
  }
  return all;
}

// Three rows: NaN first, NaN last, only NaN.
constexpr int kSpecialColumns = 37;
ir::Values RowsWithNan() {
  ir::Values x;
  for (int row = 0; row < 3; ++row) {
    for (int k = 0; k < kSpecialColumns; ++k) x.push_back(row == 2 ? kNan : k * 5 % 11 - 20);
  }
  x[0] = x[2 * kSpecialColumns - 1] = kNan;
  return x;
}

TEST(SpecialValuesTest, MaximumIgnoresNan) {
  for (const char* dtype : {"f32", "f64", "bf16"}) {
    const std::string keys = absl::StrCat(" m=3 n=", kSpecialColumns, " dtype=", dtype);
    for (const auto& outputs : Outputs("reduce_max" + keys, {RowsWithNan()})) {
      EXPECT_THAT(outputs[0], ElementsAre(-10, -10, -kInfinity)) << dtype;
    }
    for (const auto& outputs : Outputs("argmax" + keys, {RowsWithNan()})) {
      EXPECT_THAT(outputs[0], ElementsAre(-10, -10, -kInfinity)) << dtype;
      EXPECT_THAT(outputs[1], ElementsAre(2, 2, -1)) << dtype;
    }
  }
}

TEST(SpecialValuesTest, MaxPoolIgnoresNanAndPadding) {
  // Two rows of two pixels. The first window contains only the NaN. Three other windows contain the
  // NaN and other pixels.
  const ir::Values x = {kNan, -5, -7, -3};
  for (const auto& outputs : Outputs("max_pool2d n=1 h=2 w=2 c=1 k=2 s=1 p=1", {x})) {
    EXPECT_THAT(outputs[0], ElementsAre(-kInfinity, -5, -5, -7, -3, -3, -7, -3, -3));
  }
}

TEST(SpecialValuesTest, ReluKeepsNanAndTheSignOfZero) {
  const ir::Values x = {kNan, -0.0, 0.0, -2, 3, kInfinity, -kInfinity, kNan};
  for (const auto& outputs : Outputs("relu m=1 n=8", {x})) {
    EXPECT_THAT(outputs[0], ElementsAre(IsNan(), 0, 0, 0, 3, kInfinity, 0, IsNan()));
    EXPECT_TRUE(std::signbit(outputs[0][1]));
  }
  for (const auto& outputs : Outputs("add_relu m=1 n=8", {x, ir::Values(8, 1)})) {
    EXPECT_THAT(outputs[0], ElementsAre(IsNan(), 1, 1, 0, 4, kInfinity, 0, IsNan()));
  }
}

TEST(SpecialValuesTest, NanMakesASoftmaxRowNan) {
  for (const auto& outputs :
       Outputs(absl::StrCat("softmax m=3 n=", kSpecialColumns), {RowsWithNan()})) {
    EXPECT_THAT(outputs[0], Each(IsNan()));
  }
}

TEST(SpecialValuesTest, GeluAndSiluOfSpecialValues) {
  const ir::Values x = {kNan, kInfinity, -kInfinity, 0.0, -0.0, -1e30};
  for (const char* dtype : {"f32", "f64"}) {
    for (const char* op : {"gelu", "silu"}) {
      for (const auto& outputs : Outputs(absl::StrCat(op, " m=1 n=6 dtype=", dtype), {x})) {
        EXPECT_THAT(outputs[0], ElementsAre(IsNan(), kInfinity, IsNan(), 0, 0, 0)) << op;
        EXPECT_FALSE(std::signbit(outputs[0][3])) << op;
        EXPECT_TRUE(std::signbit(outputs[0][4])) << op;
      }
    }
  }
}

}  // namespace
}  // namespace hone::op
