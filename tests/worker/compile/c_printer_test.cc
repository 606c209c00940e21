// What the C printer prints: OpenCL C as text, and its meaning, which the host's C compiler runs.
#include "worker/compile/c/c_printer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/worker/compile/clang_check.h"
#include "tests/worker/compile/cuda_target.h"
#include "tests/worker/compile/lower/random_gpu_schedule.h"
#include "tests/worker/compile/packed_trace.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/compile/backend.h"
#include "worker/compile/c/c_names.h"
#include "worker/compile/c/dialect.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFolder[] = "tests/worker/compile/testdata";

target::Target OpenClTarget() { return Preset("generic/opencl"); }

// A device with everything that code generation uses.
target::Target LargeOpenClTarget() {
  target::Target target = OpenClTarget();
  target.features = {"arm_dot", "dot", "fp16", "shuffle"};
  target.gpu.sub_group = 16;
  return target;
}

absl::StatusOr<Code> Print(absl::string_view trace, const target::Target& target = OpenClTarget()) {
  HONE_ASSIGN_OR_RETURN(const ir::Program program, ReplayText(trace));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  return Generate(lowered, target);
}

// A file in testdata/ holds a trace file, a line "code", the launches, and the code.
// HONE_UPDATE_GOLDEN=1 rewrites the code; check the difference before you commit it.
class CGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(CGoldenTest, TraceGivesTheCode) {
  const std::string path = absl::StrCat(kFolder, "/", GetParam(), ".txt");
  const std::string text = ReadGolden(path);
  const size_t end = text.find("\ncode\n");
  const std::string trace = end == std::string::npos ? text : text.substr(0, end + 1);
  const bool is_cuda = absl::StartsWith(GetParam(), "cuda");
  HONE_ASSERT_OK_AND_ASSIGN(const Code code,
                            Print(trace, is_cuda ? CudaTarget() : LargeOpenClTarget()));
  ASSERT_TRUE(code.module.has_value());
  ExpectGolden(path,
               absl::StrCat(trace, "code\n", code.module->LaunchesAsJson(), "\n", code.bytes));
  EXPECT_EQ(code.format, std::string(is_cuda ? kCudaSource : kOpenClSource));
  EXPECT_EQ(code.source, code.bytes);
  if (!is_cuda) {
    EXPECT_EQ(ClangErrors(code.bytes), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, CGoldenTest,
                         testing::Values("opencl_elementwise", "opencl_matmul", "opencl_rows",
                                         "opencl_arm_dot", "opencl_dot", "opencl_half",
                                         "opencl_shuffle", "cuda_elementwise", "cuda_dp4a",
                                         "cuda_half", "cuda_matmul", "cuda_pipeline", "cuda_rows",
                                         "cuda_shuffle"),
                         [](const auto& info) { return std::string(info.param); });

absl::StatusOr<CModule> PrintFor(absl::string_view trace, absl::string_view target) {
  HONE_ASSIGN_OR_RETURN(const ir::Program program, ReplayText(trace));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, Preset(target)));
  return PrintC(lowered, OpenClDialect());
}

std::string TextOf(absl::string_view trace) {
  const absl::StatusOr<Code> code = Print(trace);
  EXPECT_THAT(code, IsOk());
  if (!code.ok()) return "";
  EXPECT_EQ(ClangErrors(code->bytes), "");
  return code->bytes;
}

TEST(CPrinterTest, NamesAreNeverWordsOfTheLanguage) {
  const std::string text = TextOf(
      "workload names\ninput kernel: f32[8]\ninput packed: f32[8]\ninput float4: f32[8]\n"
      "input get_local_id: f32[8]\nhalf[global: 8] = kernel[global] + packed[global]\n"
      "output barrier[long: 8] = exp(half[long]) * float4[long] + max(get_local_id[long], 0.0)\n"
      "trace 1\nb0 = block(\"barrier\")\nl0 = loops(b0)\nbind(l0, \"threadIdx.x\")\n");
  EXPECT_THAT(text, AllOf(HasSubstr("restrict kernel_,"), HasSubstr("restrict packed_1,"),
                          HasSubstr("restrict float4_,"), HasSubstr("restrict v_get_local_id,"),
                          HasSubstr("float* restrict barrier_,"), HasSubstr("(int global_ = 0;")));
}

TEST(CPrinterTest, IndicesAreIntUnlessTheyMayOverflow) {
  const std::string trace =
      "workload large\ninput A: f32[70000, 70000]\noutput C[i: 70000, j: 64] = A[i, 1000 * j]\n"
      "trace 1\nb0 = block(\"C\")\nl0, l1 = loops(b0)\nbind(l0, \"blockIdx.x\")\n"
      "bind(l1, \"threadIdx.x\")\n";
  EXPECT_THAT(TextOf(trace), HasSubstr("C[bx * 64 + tx] = A[(long)bx * 70000 + (long)tx * 1000];"));
}

// Slices of tensors begin anywhere, and only some offsets are multiples of the vector.
TEST(CPrinterTest, VectorsAreCastOnlyWhereTheyAreAligned) {
  const auto shifted = [](absl::string_view value) {
    return TextOf(
        absl::StrCat("workload shift\ninput A: f32[9, 80]\noutput C[i: 9, j: 64] = ", value,
                     "\ntrace 1\nb0 = block(\"C\")\nl0, l1 = loops(b0)\n"
                     "l2, l3 = split(l1, 16, 4)\nbind(l0, \"blockIdx.x\")\n"
                     "bind(l2, \"threadIdx.x\")\nvectorize(l3)\n"));
  };
  EXPECT_THAT(shifted("A[i, j + 8]"),
              HasSubstr("*(__global float4*)&C[bx * 64 + tx * 4] = "
                        "*(__global const float4*)&A[bx * 80 + tx * 4 + 8];"));
  EXPECT_THAT(shifted("A[i, j + 7]"), HasSubstr("= vload4(0, &A[bx * 80 + tx * 4 + 7]);"));
  // Not consecutive, or without a vector function: a loop over the lanes.
  EXPECT_THAT(shifted("A[i, 63 - j]"),
              HasSubstr("C[bx * 64 + tx * 4 + j_1] = A[bx * 80 - tx * 4 - j_1 + 63];"));
  EXPECT_THAT(shifted("sigmoid(A[i, j])"), HasSubstr("= sigmoid_float(A["));
}

// Elements of short floats are bits in memory.
TEST(CPrinterTest, HalvesAreConvertedAsVectors) {
  const std::string text = TextOf(
      "workload halves\ninput A: f16[64]\ninput B: f16[64]\noutput C[i: 64] = A[i] * B[i] + 0.5\n"
      "trace 1\nb0 = block(\"C\")\nl0 = loops(b0)\nl1, l2 = split(l0, 8, 8)\n"
      "bind(l1, \"threadIdx.x\")\nvectorize(l2)\n");
  EXPECT_THAT(text, AllOf(HasSubstr("__global const ushort* restrict A"),
                          HasSubstr("f16_from_float8(f16_to_float8(*(__global const ushort8*)&A[tx "
                                    "* 8]) * ")));
}

// An expression that occurs several times is computed once.
TEST(CPrinterTest, SharedExpressionsHaveNames) {
  const std::string text = TextOf(
      "workload shared\ninput A: f32[64]\nB[i: 64] = A[i] * 0.5\n"
      "output C[i: 64] = B[i] * exp(B[i])\ntrace 1\nb0 = block(\"B\")\ncompute_inline(b0)\n"
      "b1 = block(\"C\")\nl0 = loops(b1)\nbind(l0, \"threadIdx.x\")\n");
  EXPECT_THAT(text,
              AllOf(HasSubstr("const float t = A[tx] * 0.5f;"), HasSubstr("C[tx] = t * exp(t);")));
}

TEST(CPrinterTest, WholeNumbersWrapOnlyWhereTheyMayOverflow) {
  const std::string text = TextOf(
      "workload whole\ninput A: i8[64]\ninput B: i32[64]\n"
      "output C[i: 64] = i32(A[i]) * i32(A[63 - i]) + B[i]\ntrace 1\nb0 = block(\"C\")\n"
      "l0 = loops(b0)\nbind(l0, \"threadIdx.x\")\n");
  EXPECT_THAT(text, HasSubstr("C[tx] = add_int((int)A[tx] * (int)A[63 - tx], B[tx]);"));
}

TEST(CPrinterTest, RefusesWhatHasNoCode) {
  const std::string workload =
      "workload w\ninput A: f32[64, 64]\noutput C[i: 64, j: 64] = A[i, j]\n"
      "trace 1\nb0 = block(\"C\")\nl0, l1 = loops(b0)\n";
  EXPECT_THAT(PrintFor(absl::StrCat(workload, "parallel(l0)\n"), "x86-avx2"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("loop i is parallel on CPU threads; on a GPU, bind it")));
  const auto unrolled = PrintFor(
      "workload w\ninput A: f32[512, 512]\noutput C[i: 512, j: 512] = A[i, j]\ntrace 1\n"
      "b0 = block(\"C\")\nl0, l1 = loops(b0)\nunroll(l0)\nunroll(l1)\n",
      "x86-avx2");
  EXPECT_THAT(unrolled,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("exceeds 16384 statements")));

  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            ReplayText(absl::StrCat(workload, "bind(l0, \"threadIdx.x\")\n")));
  HONE_ASSERT_OK_AND_ASSIGN(auto lowered, lower::Lower(program, OpenClTarget()));
  target::Target small = OpenClTarget();
  small.gpu.max_threads = 32;
  EXPECT_THAT(std::string(Generate(lowered, small).status().message()),
              HasSubstr("kernel w_C uses 64 threads in a block, the device allows 32"));
  // The launch and the loops must agree.
  lowered.kernels[0].block = {32, 1, 1};
  EXPECT_THAT(Generate(lowered, OpenClTarget()), StatusIs(absl::StatusCode::kInternal));
}

TEST(CPrinterTest, F64NeedsADeviceThatHasIt) {
  constexpr char kTrace[] =
      "workload w\ninput A: f32[64]\noutput B[i: 64] = f32(f64(A[i]) * 2.0)\ntrace 1\n"
      "b0 = block(\"B\")\nl0 = loops(b0)\nbind(l0, \"threadIdx.x\")\n";
  target::Target target = OpenClTarget();
  EXPECT_THAT(Print(kTrace, target),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("the code computes in f64"), HasSubstr(target.Key()))));
  target.features = {"fp64"};
  HONE_ASSERT_OK_AND_ASSIGN(const auto code, Print(kTrace, target));
  EXPECT_THAT(code.bytes, HasSubstr("cl_khr_fp64"));
  EXPECT_THAT(Print(kTrace, CudaTarget()), IsOk());
}

TEST(CPrinterTest, RefusesAnInstructionOfACpu) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto program,
      ReplayText("workload w\ninput A: u8[4, 8]\ninput B: i8[8, 16]\n"
                 "output C[i: 4, j: 16] = sum(k: 8) i32(A[i, k]) * i32(B[k, j])\ntrace 1\n"));
  HONE_ASSERT_OK_AND_ASSIGN(auto lowered, lower::Lower(program, Preset("x86-avx2")));
  for (lower::Stmt& stmt : lowered.stmts) {
    if (stmt.kind == lower::Stmt::Kind::kStore) stmt.tensor_vars = stmt.reduce_vars;
  }
  EXPECT_THAT(PrintC(lowered, OpenClDialect()),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("the statement is one instruction, for which")));
}

// Halves are computed as such only where the device rounds as the interpreter does.
TEST(CPrinterTest, HalvesAreComputedInHalf) {
  const auto text = [](const target::Target& target) {
    const absl::StatusOr<Code> code = Print(PackedTrace(ir::DType::kF16, 512), target);
    EXPECT_THAT(code, IsOk());
    if (!code.ok()) return std::string();
    EXPECT_EQ(ClangErrors(code->bytes), "");
    return code->bytes;
  };
  const std::string half = text(LargeOpenClTarget()), in_float = text(OpenClTarget());
  for (const char* const operation : {"add", "sub", "mul", "fma", "max", "min"}) {
    const std::string function = absl::StrCat("hone_", operation, "_half8(");
    EXPECT_THAT(half, HasSubstr(function));
    EXPECT_THAT(in_float, Not(HasSubstr(function)));
  }
}

TEST(CPrinterTest, AnInstructionNeedsItsArchitecture) {
  std::stringstream content;
  content << std::ifstream(absl::StrCat(kFolder, "/cuda_dp4a.txt")).rdbuf();
  const std::string text = content.str(), trace = text.substr(0, text.find("\ncode\n") + 1);
  EXPECT_THAT(Print(trace, CudaTarget("sm_61")), IsOk());
  EXPECT_EQ(Print(trace, CudaTarget("sm_60")).status(),
            absl::UnimplementedError("dp4a_u8i8 needs nvptx64 with sm_61; the target is nvptx64 "
                                     "sm_60 without it"));
  EXPECT_EQ(Print(trace).status(),
            absl::UnimplementedError("dp4a_u8i8 needs nvptx64 with sm_61; the target is opencl "
                                     "generic without it"));
}

// Buffers in shared memory that overlap are pointers into one array.
TEST(CPrinterTest, OverlappingBuffersShareAnArray) {
  std::stringstream content;
  content << std::ifstream(absl::StrCat(kFolder, "/opencl_matmul.txt")).rdbuf();
  const std::string text = content.str();
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            ReplayText(text.substr(0, text.find("\ncode\n") + 1)));
  HONE_ASSERT_OK_AND_ASSIGN(auto lowered, lower::Lower(program, OpenClTarget()));
  for (lower::Storage& storage : lowered.storage) {
    if (storage.kind == lower::Storage::Kind::kShared) storage.offset_bytes = 64;
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto code, Generate(lowered, OpenClTarget()));
  EXPECT_THAT(
      code.bytes,
      AllOf(HasSubstr("__local uchar shared_memory[8192] __attribute__((aligned(64)));"),
            HasSubstr("__local float* const A_shared = (__local float*)(shared_memory + 64);"),
            HasSubstr("__local float* const B_shared = (__local float*)(shared_memory + 64);")));
  EXPECT_EQ(ClangErrors(code.bytes), "");
}

// Random schedules for GPUs compile without warnings.
TEST(CPrinterTest, ClangAcceptsRandomSchedules) {
  if (!HasClang()) GTEST_SKIP() << "no clang";
  target::Target target = OpenClTarget();
  target.features = {"fp64"};
  int printed = 0;
  for (int seed = 1; seed <= 40; ++seed) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto random, lower::MakeRandomGpuSchedule(seed));
    const auto lowered = lower::Lower(random.program, target);
    if (!lowered.ok()) continue;
    const auto code = Generate(*lowered, target);
    ASSERT_THAT(code, IsOk()) << lowered->ToText();
    EXPECT_EQ(ClangErrors(code->bytes), "") << "seed " << seed;
    ++printed;
  }
  EXPECT_GE(printed, 30);
}

// The language of workloads reserves no names, but C, CUDA C++ and OpenCL do.
TEST(CNamesTest, KeywordsAndMacrosAreReserved) {
  for (const char* const name : {"kernel", "float4", "UINT_MAX", "ULONG_MAX", "SHRT_MIN",
                                 "FP_FAST_FMAF", "HALF_MAX", "image2d_array_t", "M_PI", "HUGE_VALF",
                                 "bitor", "compl", "wchar_t", "schar", "expf", "rsqrtf"}) {
    EXPECT_TRUE(IsReservedInC(name)) << name;
  }
  for (const char* const name : {"A", "UINT", "max_pool", "picture"}) {
    EXPECT_FALSE(IsReservedInC(name)) << name;
  }
}

}  // namespace
}  // namespace hone::codegen
