// Random schedules for GPUs, printed as CUDA C++, compute their workloads. The printed text itself
// runs on the CPU, with threads in adversarial orders.
//
// HONE_CUDA_TRACES: number of schedules over all shards. HONE_SEED: first seed.

#include <gtest/gtest.h>

#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/status.h"
#include "tests/worker/compile/cuda_target.h"
#include "tests/worker/compile/emulated_program.h"
#include "tests/worker/compile/lower/random_gpu_schedule.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

constexpr int kShards = 4;
constexpr int64_t kSchedules = 1000;
constexpr int64_t kBatch = 50;  // programs that are compiled at once

// Returns "" or what is wrong.
std::string Problem(const lower::RandomGpuSchedule& schedule, EmulatedPrograms& programs,
                    size_t number, int64_t seed) {
  for (const auto order : {cuda::EmulatedOrder::kForward, cuda::EmulatedOrder::kBackward,
                           cuda::EmulatedOrder::kRandom}) {
    const auto outputs = programs.Run(number, *schedule.workload, schedule.inputs, order,
                                      static_cast<uint64_t>(seed));
    if (!outputs.ok()) return std::string(outputs.status().message());
    for (size_t o = 0; o < outputs->size(); ++o) {
      for (size_t e = 0; e < schedule.outputs[o].size(); ++e) {
        const ir::Scalar want = schedule.outputs[o][e], got = (*outputs)[o][e];
        if (want == got) continue;
        return absl::StrCat("element ", e, " of output ", o, " is ", got.ToText(), ", expected ",
                            want.ToText(), " (order ", static_cast<int>(order), ")");
      }
    }
  }
  return "";
}

class CudaRandomTraces : public testing::TestWithParam<int> {};

TEST_P(CudaRandomTraces, ComputeTheWorkload) {
  const target::Target target = CudaTarget();
  const schedule::SeedRange range =
      schedule::SeedRange::FromEnvironment("HONE_CUDA_TRACES", kSchedules)
          .Shard(GetParam(), kShards);
  int64_t ran = 0, with_barriers = 0, with_copies = 0, with_dots = 0, with_shuffles = 0;
  for (int64_t first = range.first; first < range.end(); first += kBatch) {
    std::vector<lower::RandomGpuSchedule> schedules;
    std::vector<int64_t> seeds;
    std::vector<Code> codes;
    for (int64_t seed = first; seed < std::min(first + kBatch, range.end()); ++seed) {
      HONE_ASSERT_OK_AND_ASSIGN(auto schedule,
                                lower::MakeRandomGpuSchedule(static_cast<uint64_t>(seed), &target));
      const auto lowered = lower::Lower(schedule.program, target);
      if (absl::IsInvalidArgument(lowered.status())) continue;
      ASSERT_THAT(lowered, IsOk());
      absl::StatusOr<Code> code = Generate(*lowered, target);
      ASSERT_THAT(code, IsOk()) << lowered->ToText();
      with_barriers += absl::StrContains(code->bytes, "__syncthreads") ? 1 : 0;
      with_copies += absl::StrContains(code->bytes, "hone_copy_async") ? 1 : 0;
      with_dots += absl::StrContains(code->bytes, "hone_dp4a") ? 1 : 0;
      with_shuffles += absl::StrContains(code->bytes, "hone_shuffle_xor") ? 1 : 0;
      codes.push_back(*std::move(code));
      schedules.push_back(std::move(schedule));
      seeds.push_back(seed);
    }
    HONE_ASSERT_OK_AND_ASSIGN(const auto programs, EmulatedPrograms::Build(std::move(codes)));
    for (size_t p = 0; p < schedules.size(); ++p) {
      ASSERT_EQ(Problem(schedules[p], *programs, p, seeds[p]), "")
          << schedules[p].program.ToText() << programs->code(p).bytes
          << schedule::RepeatHint(seeds[p], "HONE_CUDA_TRACES");
      ++ran;
    }
  }
  std::cout << ran << " of " << range.count << " schedules from seed " << range.first << " on ran, "
            << with_barriers << " with barriers, " << with_copies << " with asynchronous copies, "
            << with_dots << " with dp4a, " << with_shuffles << " with shuffles\n";
  EXPECT_GE(ran, range.count * 9 / 10);
  if (range.count >= kSchedules / kShards) {
    EXPECT_GE(with_dots, 1);
    EXPECT_GE(with_shuffles, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, CudaRandomTraces, testing::Range(0, kShards));

}  // namespace
}  // namespace hone::codegen
