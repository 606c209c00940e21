// Random schedules for GPUs: what lowering accepts computes the workload, in whatever order the
// threads of a block run, and without races. Taking out a barrier that is needed is noticed.
//
// HONE_GPU_TRACES: number of schedules over all shards. HONE_SEED: first seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <utility>

#include "tests/common/schedule/seed_range.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/status.h"
#include "tests/worker/compile/lower/random_gpu_schedule.h"
#include "worker/compile/lower/lower.h"

namespace hone::lower {
namespace {

constexpr int kShards = 4;
constexpr int64_t kSchedules = 20000;
constexpr ThreadOrder kOrders[] = {ThreadOrder::kForward, ThreadOrder::kBackward,
                                   ThreadOrder::kShuffled};

// Two thirds of the schedules are for devices with sub-groups of 2 or 4 threads.
target::Target SmallGpu(int64_t seed) {
  target::Target target = target::TargetByName("generic/opencl").value();
  target.features = {"shuffle"};
  target.gpu.sub_group = 1 << seed % 3;
  return target;
}

// Returns "" or what is wrong.
std::string Problem(const RandomGpuSchedule& example, const LoweredProgram& lowered) {
  if (const absl::Status verified = Verify(lowered); !verified.ok()) {
    return std::string(verified.message());
  }
  for (const ThreadOrder order : kOrders) {
    const auto actual =
        Interpret(lowered, *example.workload, example.inputs, int64_t{1} << 32, order);
    if (!actual.ok()) return std::string(actual.status().message());
    if (*actual != example.outputs) return "the results differ";
  }
  return "";
}

class GpuRandomTraces : public testing::TestWithParam<int> {};

TEST_P(GpuRandomTraces, ComputeTheWorkload) {
  const schedule::SeedRange range =
      schedule::SeedRange::FromEnvironment("HONE_GPU_TRACES", kSchedules)
          .Shard(GetParam(), kShards);
  int64_t lowered_count = 0, with_barriers = 0, noticed = 0, planted = 0, with_shuffles = 0,
          wrong_lanes = 0;
  std::map<std::string, int> refusals;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    HONE_ASSERT_OK_AND_ASSIGN(const RandomGpuSchedule example,
                              MakeRandomGpuSchedule(static_cast<uint64_t>(seed)));
    absl::StatusOr<LoweredProgram> lowered = Lower(example.program, SmallGpu(seed));
    if (absl::IsInvalidArgument(lowered.status())) {
      const std::string message(lowered.status().message());
      ++refusals[message.substr(0, message.find('\n'))];
      continue;
    }
    ASSERT_THAT(lowered, IsOk()) << example.program.ToText();
    ++lowered_count;
    const std::string problem = Problem(example, *lowered);
    ASSERT_EQ(problem, "") << example.program.ToText() << lowered->ToText()
                           << schedule::RepeatHint(seed, "HONE_GPU_TRACES");
    const auto shuffle =
        std::ranges::find_if(lowered->stmts, [](const Stmt& stmt) { return stmt.lane_xor > 0; });
    if (shuffle != lowered->stmts.end()) {
      ++with_shuffles;
      const int distance = std::exchange(shuffle->lane_xor, shuffle->lane_xor ^ 3);
      wrong_lanes += Problem(example, *lowered).empty() ? 0 : 1;
      shuffle->lane_xor = distance;
    }
    const auto barrier = std::ranges::find(lowered->stmts, Stmt::Kind::kBarrier, &Stmt::kind);
    if (barrier == lowered->stmts.end()) continue;
    ++with_barriers;
    // Each barrier that is taken out is missed, or it only separated phases that another barrier
    // separates as well.
    ++planted;
    barrier->kind = Stmt::Kind::kSeq;
    noticed += Problem(example, *lowered).empty() ? 0 : 1;
  }
  std::cout << range.count << " schedules from seed " << range.first << " on: " << lowered_count
            << " lowered, " << with_barriers << " with barriers; " << noticed << " of " << planted
            << " missing barriers noticed; " << with_shuffles << " with shuffles, " << wrong_lanes
            << " wrong lanes noticed\n";
  for (const auto& [message, count] : refusals)
    std::cout << "  " << count << "x " << message << "\n";
  EXPECT_GE(lowered_count, range.count / 2);
  if (range.count >= 1000) {
    EXPECT_GE(noticed, 10);
    EXPECT_GE(wrong_lanes, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, GpuRandomTraces, testing::Range(0, kShards));

}  // namespace
}  // namespace hone::lower
