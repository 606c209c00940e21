// Random schedules for GPUs compute their workloads on an OpenCL device, which may be the CPU.
//
// HONE_OPENCL_TRACES: number of schedules over all shards. HONE_SEED: first seed.

#include <gtest/gtest.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/ir/element_bytes.h"
#include "common/lower/lower.h"
#include "common/target/module_call.h"
#include "common/target/open_gpu.h"
#include "common/target/opencl/targets.h"
#include "tests/common/lower/random_gpu_schedule.h"
#include "tests/common/schedule/seed_range.h"
#include "worker/codegen/backend.h"

namespace hone::codegen {
namespace {

constexpr int kShards = 4;
// PoCL compiles a schedule in half a second. PoCL 3.1 aborts the process while it compiles one of
// the seeds 901 to 1200 ("Multiple outgoing edges from exit block"); a runner would report a crash.
constexpr int64_t kSchedules = 600;

std::string ToBytes(ir::DType dtype, const ir::Scalars& values) {
  std::string bytes(ir::BytesOf(dtype, static_cast<int64_t>(values.size())), '\0');
  for (size_t e = 0; e < values.size(); ++e) {
    ir::WriteElement(dtype, bytes.data(), static_cast<int64_t>(e), values[e]);
  }
  return bytes;
}

// Returns "" or what is wrong.
std::string Problem(const lower::RandomGpuSchedule& schedule, const lower::LoweredProgram& lowered,
                    const target::Target& target, target::GpuContext& gpu) {
  absl::StatusOr<Code> code = Generate(lowered, target);
  if (!code.ok()) return std::string(code.status().message());
  target::GpuModule module = *code->module;
  module.code = code->bytes;
  const ir::Workload& workload = *schedule.workload;
  std::vector<std::string> inputs;
  for (size_t i = 0; i < schedule.inputs.size(); ++i) {
    inputs.push_back(ToBytes(workload.tensors[workload.Inputs()[i]].dtype, schedule.inputs[i]));
  }
  std::vector<int64_t> sizes;
  for (const ir::BufferId id : workload.Outputs()) {
    const ir::Tensor& tensor = workload.tensors[id];
    sizes.push_back(tensor.bytes());
  }
  const auto outputs = target::CallModule(
      gpu, module, std::vector<absl::string_view>(inputs.begin(), inputs.end()), sizes);
  if (!outputs.ok()) return std::string(outputs.status().message());
  for (size_t o = 0; o < sizes.size(); ++o) {
    const ir::DType dtype = workload.tensors[workload.Outputs()[o]].dtype;
    std::string bytes = (*outputs)[o];
    for (size_t e = 0; e < schedule.outputs[o].size(); ++e) {
      const ir::Scalar want = schedule.outputs[o][e];
      const ir::Scalar got = ir::ReadElement(dtype, bytes.data(), static_cast<int64_t>(e));
      if (want == got) continue;
      return absl::StrCat("element ", e, " of output ", o, " is ", got.ToText(), ", expected ",
                          want.ToText());
    }
  }
  return "";
}

class OpenClRandomTraces : public testing::TestWithParam<int> {};

TEST_P(OpenClRandomTraces, ComputeTheWorkload) {
  const absl::StatusOr<target::Target> target = opencl::TargetOf("opencl");
  if (!target.ok()) GTEST_SKIP() << target.status().message();
  const auto gpu = target::OpenGpuFor(*target);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const schedule::SeedRange range =
      schedule::SeedRange::FromEnvironment("HONE_OPENCL_TRACES", kSchedules)
          .Shard(GetParam(), kShards);
  int64_t ran = 0;
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    const auto schedule = lower::MakeRandomGpuSchedule(static_cast<uint64_t>(seed));
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto lowered = lower::Lower(schedule->program, *target);
    if (absl::IsInvalidArgument(lowered.status())) continue;
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_EQ(Problem(*schedule, *lowered, *target, **gpu), "")
        << schedule->program.ToText() << lowered->ToText() << Generate(*lowered, *target)->bytes
        << schedule::RepeatHint(seed, "HONE_OPENCL_TRACES");
    ++ran;
  }
  std::cout << ran << " of " << range.count << " schedules from seed " << range.first
            << " on ran\n";
  EXPECT_GE(ran, range.count * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Shards, OpenClRandomTraces, testing::Range(0, kShards));

}  // namespace
}  // namespace hone::codegen
