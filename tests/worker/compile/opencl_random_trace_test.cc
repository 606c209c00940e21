// Random schedules for GPUs compute their workloads on an OpenCL device, which may be the CPU.
//
// HONE_OPENCL_TRACES: number of schedules over all shards. HONE_SEED: first seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/ir/dtype.h"
#include "common/target/module_call.h"
#include "common/target/open_gpu.h"
#include "common/target/opencl/targets.h"
#include "tests/common/schedule/seed_range.h"
#include "tests/status.h"
#include "tests/worker/compile/lower/random_gpu_schedule.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

constexpr int kShards = 16;
constexpr int64_t kSchedules = 2000;
constexpr size_t kBatch = 20;  // modules that are compiled as one program

struct Example {
  int64_t seed;
  lower::RandomGpuSchedule schedule;
  Code code;
};

std::string ToBytes(ir::DType dtype, const ir::Scalars& values) {
  std::string bytes(ir::BytesOf(dtype, static_cast<int64_t>(values.size())), '\0');
  for (size_t e = 0; e < values.size(); ++e) {
    ir::WriteElement(dtype, bytes.data(), static_cast<int64_t>(e), values[e]);
  }
  return bytes;
}

// What extensions define that PoCL does not have. Batches without these functions are built as
// usual.
constexpr char kDotProducts[] = R"(
#define HONE_DOT(A, B) (a.s0 * b.s0 + a.s1 * b.s1 + a.s2 * b.s2 + a.s3 * b.s3)
static int dot_4x8packed_ss_int(uint x, uint y) {
  const int4 a = convert_int4(as_char4(x)), b = convert_int4(as_char4(y));
  return HONE_DOT(a, b);
}
static uint dot_4x8packed_uu_uint(uint x, uint y) {
  const uint4 a = convert_uint4(as_uchar4(x)), b = convert_uint4(as_uchar4(y));
  return HONE_DOT(a, b);
}
static int dot_4x8packed_us_int(uint x, uint y) {
  const int4 a = convert_int4(as_uchar4(x)), b = convert_int4(as_char4(y));
  return HONE_DOT(a, b);
}
static int __attribute__((overloadable)) arm_dot_acc(char4 a, char4 b, int sum) {
  return sum + dot_4x8packed_ss_int(as_uint(a), as_uint(b));
}
static uint __attribute__((overloadable)) arm_dot_acc(uchar4 a, uchar4 b, uint sum) {
  return sum + dot_4x8packed_uu_uint(as_uint(a), as_uint(b));
}
)";

// The text of a module, with a number in the names of its functions.
std::string Numbered(const std::string& text, size_t number) {
  std::string defines, undefines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool is_function = absl::StartsWith(line, "static ") || absl::StartsWith(line, "void ");
    const size_t end = line.find('(');
    if (!is_function || end == absl::string_view::npos) continue;
    const absl::string_view name =
        line.substr(line.rfind(' ', end) + 1, end - line.rfind(' ', end) - 1);
    absl::StrAppend(&defines, "#define ", name, " ", name, "_", number, "\n");
    absl::StrAppend(&undefines, "#undef ", name, "\n");
  }
  return absl::StrCat(defines, text, undefines);
}

bool UsesDots(const std::string& text) {
  return absl::StrContains(text, "hone_dot4_") || absl::StrContains(text, "hone_arm_dot4_");
}

// Returns "" or what is wrong.
std::string Problem(const Example& example, target::GpuContext& gpu, target::GpuProgram& program,
                    size_t first_launch) {
  const lower::RandomGpuSchedule& schedule = example.schedule;
  const ir::Workload& workload = *schedule.workload;
  std::vector<std::string> inputs;
  for (size_t i = 0; i < schedule.inputs.size(); ++i) {
    inputs.push_back(ToBytes(workload.tensors[workload.Inputs()[i]].dtype, schedule.inputs[i]));
  }
  std::vector<int64_t> sizes;
  for (const ir::BufferId id : workload.Outputs()) sizes.push_back(workload.tensors[id].bytes());
  const auto outputs =
      target::CallLoaded(gpu, program, first_launch, *example.code.module,
                         std::vector<absl::string_view>(inputs.begin(), inputs.end()), sizes);
  if (!outputs.ok()) return std::string(outputs.status().message());
  for (size_t o = 0; o < sizes.size(); ++o) {
    const ir::DType dtype = workload.tensors[workload.Outputs()[o]].dtype;
    for (size_t e = 0; e < schedule.outputs[o].size(); ++e) {
      const ir::Scalar want = schedule.outputs[o][e];
      const ir::Scalar got = ir::ReadElement(dtype, (*outputs)[o].data(), static_cast<int64_t>(e));
      if (want == got) continue;
      return absl::StrCat("element ", e, " of output ", o, " is ", got.ToText(), ", expected ",
                          want.ToText());
    }
  }
  return "";
}

// Compiles and runs examples whose kernels have the same number of parameters.
void ExpectRight(const std::vector<Example>& examples, target::GpuContext& gpu) {
  if (examples.empty()) return;
  target::GpuModule all = *examples[0].code.module;
  all.launches.clear();
  for (size_t i = 0; i < examples.size(); ++i) {
    all.code += Numbered(examples[i].code.bytes, i);
    for (target::GpuLaunch launch : examples[i].code.module->launches) {
      absl::StrAppend(&launch.kernel, "_", i);
      all.launches.push_back(std::move(launch));
    }
  }
  if (UsesDots(all.code)) all.code = kDotProducts + all.code;
  const auto program = gpu.Load(all, "the kernels' code");
  ASSERT_THAT(program, IsOk()) << all.code;
  size_t first_launch = 0;
  for (const Example& example : examples) {
    ASSERT_EQ(Problem(example, gpu, **program, first_launch), "")
        << example.schedule.program.ToText() << example.code.bytes
        << schedule::RepeatHint(example.seed, "HONE_OPENCL_TRACES");
    first_launch += example.code.module->launches.size();
  }
}

// The code of the first shard is optimized. PoCL compiles that of the others in a fraction of the
// time.
class OpenClRandomTraces : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    setenv("POCL_EXTRA_BUILD_FLAGS", GetParam() == 0 ? "" : "-cl-opt-disable", /*overwrite=*/1);
  }
};

TEST_P(OpenClRandomTraces, ComputeTheWorkload) {
  const absl::StatusOr<target::Target> target = opencl::TargetOf("opencl");
  if (!target.ok()) GTEST_SKIP() << target.status().message();
  HONE_ASSERT_OK_AND_ASSIGN(const auto gpu, target::OpenGpuFor(*target));
  const schedule::SeedRange range =
      schedule::SeedRange::FromEnvironment("HONE_OPENCL_TRACES", kSchedules)
          .Shard(GetParam(), kShards);
  int64_t ran = 0, with_dots = 0;
  std::map<int, std::vector<Example>> waiting;  // by the number of arguments
  for (int64_t seed = range.first; seed < range.end(); ++seed) {
    target::Target with_extension = *target;
    with_extension.features.emplace_back(seed % 2 == 0 ? "dot" : "arm_dot");
    std::ranges::sort(with_extension.features);
    HONE_ASSERT_OK_AND_ASSIGN(
        auto schedule, lower::MakeRandomGpuSchedule(static_cast<uint64_t>(seed), &with_extension));
    const auto lowered = lower::Lower(schedule.program, with_extension);
    if (absl::IsInvalidArgument(lowered.status())) continue;
    ASSERT_THAT(lowered, IsOk());
    absl::StatusOr<Code> code = Generate(*lowered, with_extension);
    ASSERT_THAT(code, IsOk()) << lowered->ToText();
    with_dots += UsesDots(code->bytes) ? 1 : 0;
    ++ran;
    std::vector<Example>& batch = waiting[code->module->arguments];
    batch.push_back({seed, std::move(schedule), *std::move(code)});
    if (batch.size() < kBatch) continue;
    ExpectRight(batch, *gpu);
    if (HasFatalFailure()) return;
    batch.clear();
  }
  for (const auto& [arguments, batch] : waiting) {
    ExpectRight(batch, *gpu);
    if (HasFatalFailure()) return;
  }
  std::cout << ran << " of " << range.count << " schedules from seed " << range.first << " on ran, "
            << with_dots << " with dot products\n";
  EXPECT_GE(ran, range.count * 9 / 10);
  if (range.count >= kSchedules / kShards) {
    EXPECT_GE(with_dots, 1);
  }
}

// Only OpenCL C 3.0 has the functions of cl_khr_integer_dot_product, and compilers need not declare
// those of sub-groups in OpenCL C 1.2.
TEST(OpenClVersionTest, CodeWithDotProductsOrShufflesIsOpenClC3) {
  const absl::StatusOr<target::Target> target = opencl::TargetOf("opencl");
  if (!target.ok()) GTEST_SKIP() << target.status().message();
  HONE_ASSERT_OK_AND_ASSIGN(const auto gpu, target::OpenGpuFor(*target));
  for (const char* functions : {"", kDotProducts, "#define shuffle sub_group_shuffle_xor\n"}) {
    target::GpuModule module{.kind = target::Kind::kOpenCl, .launches = {{.kernel = "k"}}};
    module.code = absl::StrCat("#if (__OPENCL_C_VERSION__ >= 300) != ", *functions == 0 ? 0 : 1,
                               "\n#error wrong version\n#endif\n", functions,
                               "__kernel void k(__global uchar* packed, __global uchar* workspace) "
                               "{}\n");
    const auto program = gpu->Load(module, "the code");
    EXPECT_THAT(program, IsOk());
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, OpenClRandomTraces, testing::Range(0, kShards));

}  // namespace
}  // namespace hone::codegen
