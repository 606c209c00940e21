// NVRTC compiles what is printed, without warnings, for several architectures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/status.h"
#include "tests/worker/compile/cuda_target.h"
#include "tests/worker/compile/every_operation.h"
#include "tests/worker/compile/lower/random_gpu_schedule.h"
#include "tests/worker/compile/nvrtc_check.h"
#include "tests/worker/compile/packed_trace.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kArchitectures[] = {"sm_75", "sm_80", "sm_90a"};
constexpr char kMissing[] =
    "NVRTC IS MISSING: no printed CUDA text is compiled. deploy/install-deps.sh installs it, or "
    "set "
    "HONE_NVRTC to a libnvrtc.so.12";

class CudaNvrtcTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!HasNvrtc()) GTEST_SKIP() << kMissing;
  }
};

// The text of a program; empty if lowering refuses it.
std::string TextFor(const ir::Program& program, absl::string_view architecture) {
  const target::Target target = CudaTarget(architecture);
  const auto lowered = lower::Lower(program, target);
  if (absl::IsInvalidArgument(lowered.status())) return "";
  EXPECT_THAT(lowered, IsOk());
  const auto code = Generate(*lowered, target);
  EXPECT_THAT(code, IsOk());
  return code.ok() ? code->bytes : "";
}

std::string GoldenText(absl::string_view name, absl::string_view architecture) {
  std::stringstream content;
  content << std::ifstream(absl::StrCat("tests/worker/compile/testdata/", name, ".txt")).rdbuf();
  const std::string text = content.str();
  const auto program = ReplayText(text.substr(0, text.find("\ncode\n") + 1));
  EXPECT_THAT(program, IsOk());
  return TextFor(*program, architecture);
}

TEST_P(CudaNvrtcTest, CompilesEveryOperation) {
  // The architectures share the dtypes, because all of these programs take minutes.
  size_t number = 0;
  for (const ir::DType dtype : kEveryDType) {
    if (kArchitectures[number++ % std::size(kArchitectures)] != std::string(GetParam())) continue;
    const OperationWorkload operations = EveryOperation(dtype, 64);
    std::vector<std::string> blocks;
    for (const OperationWorkload::Output& output : operations.outputs) {
      blocks.push_back(output.name);
    }
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto program,
        ReplayText(WithVectors(operations.text, blocks, ir::IsFloat(dtype) ? 4 : 1)));
    ASSERT_EQ(CompileWithNvrtc(TextFor(program, GetParam()), GetParam()).errors, "")
        << ir::DTypeName(dtype);
  }
}

TEST_P(CudaNvrtcTest, CompilesRandomSchedules) {
  int compiled = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const target::Target target = CudaTarget(GetParam());
    HONE_ASSERT_OK_AND_ASSIGN(const auto random, lower::MakeRandomGpuSchedule(seed, &target));
    const std::string text = TextFor(random.program, GetParam());
    if (text.empty()) continue;
    ASSERT_EQ(CompileWithNvrtc(text, GetParam()).errors, "") << "seed " << seed;
    ++compiled;
  }
  EXPECT_GE(compiled, 20);
}

// 16 bytes are one instruction.
TEST_P(CudaNvrtcTest, VectorsAreLoadedAndStoredAtOnce) {
  for (const char* const name : {"cuda_elementwise", "cuda_half", "cuda_matmul", "cuda_rows"}) {
    const NvrtcResult result = CompileWithNvrtc(GoldenText(name, GetParam()), GetParam());
    ASSERT_EQ(result.errors, "");
    if (std::string(name) == "cuda_rows") continue;  // one element per thread
    EXPECT_THAT(result.ptx, HasSubstr(".v4."));
    EXPECT_THAT(result.ptx, Not(HasSubstr("ld.global.nc.f32"))) << name;
    EXPECT_THAT(result.ptx, Not(HasSubstr("st.global.f32"))) << name;
  }
}

// Also where the lanes are terms of one sum.
TEST_P(CudaNvrtcTest, TermsOfASumAreLoadedAtOnce) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            ReplayText("workload sums\n"
                                       "input X: f32[64, 128]\n"
                                       "output S[i: 64] = sum(k: 128) X[i, k] * X[i, k]\n"
                                       "trace 1\n"
                                       "b0 = block(\"S\")\n"
                                       "l0, l1 = loops(b0)\n"
                                       "l2, l3 = split(l1, 0, 4)\n"
                                       "bind(l0, \"threadIdx.x\")\n"
                                       "vectorize(l3)\n"));
  const NvrtcResult result = CompileWithNvrtc(TextFor(program, GetParam()), GetParam());
  ASSERT_EQ(result.errors, "");
  EXPECT_THAT(result.ptx, HasSubstr("ld.global.nc.v4."));
  EXPECT_THAT(result.ptx, Not(HasSubstr("ld.global.nc.f32")));
}

TEST_P(CudaNvrtcTest, CopiesAreAsynchronousFromSm80On) {
  const NvrtcResult result = CompileWithNvrtc(GoldenText("cuda_pipeline", GetParam()), GetParam());
  ASSERT_EQ(result.errors, "");
  if (std::string(GetParam()) == "sm_75") {
    EXPECT_THAT(result.ptx, Not(HasSubstr("cp.async")));
    return;
  }
  EXPECT_THAT(result.ptx, HasSubstr("cp.async.cg.shared.global"));
  EXPECT_THAT(result.ptx, HasSubstr("cp.async.commit_group"));
  EXPECT_THAT(result.ptx, HasSubstr("cp.async.wait_group 1"));
}

TEST_P(CudaNvrtcTest, SumsOfBytesAreOneInstruction) {
  const NvrtcResult result = CompileWithNvrtc(GoldenText("cuda_dp4a", GetParam()), GetParam());
  ASSERT_EQ(result.errors, "");
  EXPECT_THAT(result.ptx, HasSubstr("dp4a.u32.s32"));
}

// Elements of 2, 4 and 8 bytes.
TEST_P(CudaNvrtcTest, LanesExchangeValues) {
  for (const char* const name : {"cuda_shuffle", "opencl_shuffle"}) {
    const NvrtcResult result = CompileWithNvrtc(GoldenText(name, GetParam()), GetParam());
    ASSERT_EQ(result.errors, "");
    EXPECT_THAT(result.ptx, HasSubstr("shfl.sync.bfly.b32"));
  }
}

TEST_P(CudaNvrtcTest, HalvesAreComputedInPairs) {
  for (const ir::DType dtype : {ir::DType::kF16, ir::DType::kBF16}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto program, ReplayText(PackedTrace(dtype, 64)));
    const NvrtcResult result = CompileWithNvrtc(TextFor(program, GetParam()), GetParam());
    ASSERT_EQ(result.errors, "");
    if (dtype == ir::DType::kF16) {
      EXPECT_THAT(result.ptx, HasSubstr("add.rn.f16x2"));
      EXPECT_THAT(result.ptx, HasSubstr("fma.rn.f16x2"));
      // Only the last two outputs are computed in f32.
      EXPECT_THAT(result.ptx.substr(0, result.ptx.find("packed_Chain")),
                  Not(HasSubstr("cvt.f32.f16")));
    } else if (std::string(GetParam()) == "sm_75") {
      EXPECT_THAT(result.ptx, Not(HasSubstr("bf16x2")));
    } else {
      EXPECT_THAT(result.ptx, HasSubstr("fma.rn.bf16x2"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudaNvrtcTest, testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone::codegen
