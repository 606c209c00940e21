// The modelled cost of kernels: how often their blocks run, and how costs compare.
#include "worker/compile/llvm/modelled_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ::testing::HasSubstr;

ModelledCost CostOf(const target::Target& target, const std::string& trace) {
  const auto program = ReplayText(trace);
  EXPECT_THAT(program, IsOk());
  const auto lowered = lower::Lower(*program, target);
  EXPECT_THAT(lowered, IsOk());
  const auto cost = ModelCost(*lowered, target);
  EXPECT_THAT(cost, IsOk());
  return cost.ok() ? *cost : ModelledCost();
}

// The most executions of a block.
double MostExecutions(const ModelledCost& cost) {
  double most = 0;
  for (const ModelledBlock& block : cost.blocks) most = std::max(most, block.executions);
  return most;
}

constexpr char kMatmul[] = R"(workload matmul
input A: f32[64, 48]
input B: f32[48, 32]
output C[i: 64, j: 32] = sum(k: 48) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
)";

TEST(ModelledCostTest, CountsTheIterationsOfLoops) {
  for (const char* const name :
       {"x86-avx2", "arm/cortex-a72", "arm/cortex-a53", "arm/neoverse-v1"}) {
    const ModelledCost cost = CostOf(Preset(name), kMatmul);
    EXPECT_EQ(MostExecutions(cost), 64 * 32 * 48) << name;
    EXPECT_EQ(cost.blocks[0].executions, 64 * 32 * 48) << name << ": not the costliest";
    // A load of each operand and a dependent multiply-add cannot take less than a cycle.
    EXPECT_GE(cost.cycles, 64 * 32 * 48) << name;
    double sum = 0;
    for (const ModelledBlock& block : cost.blocks) sum += block.executions * block.cycles;
    EXPECT_NEAR(sum, cost.cycles, 1e-6 * cost.cycles) << name;
  }
}

// The bounds of the inner loops depend on the outer ones, and the cases of the padding have
// branches.
TEST(ModelledCostTest, CountsTheIterationsOfLoopsWithVariableBounds) {
  const ModelledCost cost = CostOf(Preset("arm/cortex-a72"), R"(workload triangle
input A: f32[40, 40]
output C[i: 40] = sum(k: 40 where k <= i) A[i, k]
trace 1
b0 = block("C")
)");
  EXPECT_EQ(MostExecutions(cost), 40 * 41 / 2);
}

// exp has a branch for vectors with a lane whose result may be denormal, 0 or infinite.
TEST(ModelledCostTest, ABranchThatDependsOnTheDataGoesTheUsualWay) {
  const ModelledCost cost = CostOf(Preset("x86-avx2"), R"(workload powers
input A: f32[64]
output C[i: 64] = exp(A[i])
trace 1
b0 = block("C")
l0 = loops(b0)
l1, l2 = split(l0, 0, 8)
vectorize(l2)
)");
  double usual = 0, rare = 0;
  for (const ModelledBlock& block : cost.blocks) {
    if (absl::StrContains(block.name, "/usual")) usual += block.executions;
    if (absl::StrContains(block.name, "/rare")) rare += block.executions;
  }
  EXPECT_EQ(usual, 8);
  EXPECT_EQ(rare, 0);
}

// NEON has no loads with masks: LLVM loads each element in a block of its own, and what follows in
// the block is another one, which must count as well.
TEST(ModelledCostTest, CodeBehindALoadWithAMaskCounts) {
  const auto cycles = [](const char* const function) {
    return CostOf(Preset("arm/cortex-a72"),
                  absl::StrCat("workload shifted\ninput X: f32[64]\noutput Y[i: 64, j: 64] = (",
                               function,
                               "(X[j - i]) where i <= j, (j + i) / 3 <= i else 0.0)\ntrace 1\n",
                               "b0 = block(\"Y\")\nl0, l1 = loops(b0)\n",
                               "l2, l3 = split(l1, 0, 4)\nvectorize(l3)\n"))
        .cycles;
  };
  // 527 vectors have an element that is read.
  EXPECT_GT(cycles("exp"), cycles("abs") + 527 * 10);
}

TEST(ModelledCostTest, VectorsAndTilesCostLess) {
  const target::Target target = Preset("arm/cortex-a72");
  const ModelledCost plain = CostOf(target, kMatmul);
  const ModelledCost vectors =
      CostOf(target, absl::StrCat(kMatmul,
                                  "l3, l4 = split(l1, 8, 4)\nreorder(l0, l3, l2, l4)\n"
                                  "vectorize(l4)\n"));
  const ModelledCost tile = CostOf(
      target, absl::StrCat(kMatmul, "l3, l4, l5 = register_tile(b0, l0, l1, l2, 8, 2, 4, 4)\n"));
  EXPECT_LT(vectors.cycles, plain.cycles / 2);
  EXPECT_LT(tile.cycles, vectors.cycles / 2);
}

TEST(ModelledCostTest, CoresShareTheIterationsOfParallelLoops) {
  target::Target target = Preset("arm/cortex-a72");
  const std::string trace = absl::StrCat(kMatmul, "parallel(l0)\n");
  target.cores = 1;
  const double alone = CostOf(target, trace).cycles;
  target.cores = 4;
  EXPECT_NEAR(CostOf(target, trace).cycles, alone / 4, 0.01 * alone);
  // Of 64 iterations, the busiest of 5 cores runs 13.
  target.cores = 5;
  EXPECT_NEAR(CostOf(target, trace).cycles, alone * 13 / 64, 0.01 * alone);
}

TEST(ModelledCostTest, IsDeterministic) {
  const target::Target target = Preset("arm/neoverse-v1");
  EXPECT_EQ(CostOf(target, kMatmul).cycles, CostOf(target, kMatmul).cycles);
}

TEST(ModelledCostTest, RefusesGpus) {
  const auto program = ReplayText(kMatmul);
  ASSERT_THAT(program, IsOk());
  target::Target target = Preset("x86-avx2");
  const auto lowered = lower::Lower(*program, target);
  ASSERT_THAT(lowered, IsOk());
  target.kind = target::Kind::kOpenCl;
  EXPECT_THAT(ModelCost(*lowered, target),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("CPUs only")));
}

}  // namespace
}  // namespace hone::codegen
