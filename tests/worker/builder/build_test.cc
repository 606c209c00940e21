#include "worker/builder/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/ir/workload_parser.h"
#include "common/record/artifact.h"
#include "common/target/target.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/runner/kernel.h"
#include "worker/runner/reference.h"

namespace hone::builder {
namespace {

using record::BuildRequest;
using record::BuildResponse;
using record::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::string_view kMatmul =
    "workload matmul\n"
    "input A: f32[8, 32]\n"
    "input B: f32[32, 64]\n"
    "output C[i: 8, j: 64] = sum(k: 32) A[i, k] * B[k, j]\n";

constexpr absl::string_view kTrace =
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=8)\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "parallel(l3)\n";

class BuildTest : public ::testing::Test {
 protected:
  BuildRequest Request() const {
    return {.workload = std::string(kMatmul),
            .space = absl::StrCat(kMatmul, kTrace),
            .decisions = {4, 2},
            .target = target::DetectHost().ToText(),
            .artifact_dir = folder_.path()};
  }

  const TemporaryFolder folder_;
};

TEST_F(BuildTest, ACandidateBecomesAnArtifactThatComputesItsWorkload) {
  const BuildResponse response = Build(Request());
  ASSERT_EQ(response.outcome, Outcome::kOk) << response.detail;
  HONE_ASSERT_OK_AND_ASSIGN(const auto bytes, ReadFile(folder_ / response.artifact_digest));
  EXPECT_EQ(Sha256Of(bytes), response.artifact_digest);
  HONE_ASSERT_OK_AND_ASSIGN(const auto artifact, record::DecodeArtifact(bytes));
  EXPECT_THAT(artifact.trace, HasSubstr("[4, 2]"));
  EXPECT_THAT(artifact.program, HasSubstr("parallel"));
  EXPECT_EQ(artifact.target, target::DetectHost().ToText());
  EXPECT_EQ(ir::ParseWorkload(artifact.workload)->StructuralDigest(),
            ir::ParseWorkload(kMatmul)->StructuralDigest());
  EXPECT_GT(response.facts.compile_ms, 0);
  EXPECT_GT(response.facts.link_ms, 0);
  EXPECT_GT(response.facts.code_bytes, 0);
  EXPECT_THAT(Digest::FromHex(response.facts.program_digest), IsOk());

  HONE_ASSERT_OK_AND_ASSIGN(const auto kernel,
                            runner::Kernel::LoadSharedObject(artifact.shared_object));
  alignas(64) static float a[8 * 32], b[32 * 64], c[8 * 64];
  std::fill_n(a, 8 * 32, 2.0f);
  std::fill_n(b, 32 * 64, 3.0f);
  void* const buffers[] = {a, b, c};
  std::string workspace(kernel->library().WorkspaceBytes(1) + 64, '\0');
  void* const aligned =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
  ASSERT_EQ(kernel->library().Run(buffers, nullptr, aligned, nullptr), target::kKernelOk);
  for (const float value : c) ASSERT_EQ(value, 2 * 3 * 32);
}

// The host of a GPU computes the reference.
TEST_F(BuildTest, TheReferenceOfAGpuIsForThisCpu) {
  BuildRequest request = Request();
  request.reference = true;
  const BuildResponse for_host = Build(request);
  ASSERT_EQ(for_host.outcome, Outcome::kOk) << for_host.detail;
  request.target = target::TargetByName("generic/opencl")->ToText();
  const BuildResponse for_gpu = Build(request);
  ASSERT_EQ(for_gpu.outcome, Outcome::kOk) << for_gpu.detail;
  EXPECT_EQ(for_gpu.artifact_digest, for_host.artifact_digest);
}

TEST_F(BuildTest, KernelsForOtherMachinesAreBuiltHere) {
  target::Target board = *target::TargetByName("x86-avx2");
  board.arch = "aarch64";
  board.triple = "aarch64-unknown-linux-gnu";
  board.cpu = "cortex-a72";
  board.features = {"neon"};
  BuildRequest request = Request();
  request.target = board.ToText();
  const BuildResponse response = Build(request);
  ASSERT_EQ(response.outcome, Outcome::kOk) << response.detail;
  HONE_ASSERT_OK_AND_ASSIGN(const auto bytes, ReadFile(folder_ / response.artifact_digest));
  HONE_ASSERT_OK_AND_ASSIGN(const auto artifact, record::DecodeArtifact(bytes));
  EXPECT_EQ(static_cast<unsigned char>(artifact.shared_object[18]), 183);  // EM_AARCH64
  EXPECT_THAT(artifact.shared_object, HasSubstr("getauxval")) << "it checks the CPU";
}

TEST_F(BuildTest, EqualRequestsGiveEqualArtifacts) {
  EXPECT_EQ(Build(Request()).artifact_digest, Build(Request()).artifact_digest);
}

TEST_F(BuildTest, TheReferenceKernelAgreesWithTheInterpreter) {
  for (const absl::string_view text :
       {kMatmul,
        absl::string_view("workload conv_relu\n"
                          "input X: f32[1, 8, 8, 6]\n"
                          "input W: f32[3, 3, 6, 10] constant\n"
                          "Y[n: 1, h: 8, w: 8, o: 10] = sum(r: 3, s: 3, c: 6 where 0 <= h + "
                          "r - 1 < 8, 0 <= w + s - 1 < 8) X[n, h + r - 1, w + s - 1, c] * "
                          "W[r, s, c, o]\n"
                          "output Z[n: 1, h: 8, w: 8, o: 10] = max(Y[n, h, w, o], 0.0)\n")}) {
    BuildRequest request = Request();
    request.workload = std::string(text);
    request.space = "";
    request.decisions = {};
    request.reference = true;
    const BuildResponse response = Build(request);
    ASSERT_EQ(response.outcome, Outcome::kOk) << response.detail;
    HONE_ASSERT_OK_AND_ASSIGN(const auto kernel,
                              runner::LoadKernel(folder_ / response.artifact_digest));
    HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
    // Compares some hundred values and magnitudes with the interpreter.
    const absl::Status made =
        runner::MakeReference(workload, runner::Inputs::Seeded(workload.StructuralDigest().ToHex()),
                              kernel.get(), folder_ / "reference");
    EXPECT_THAT(made, IsOk());
  }
}

TEST_F(BuildTest, InvalidCandidateIsExplained) {
  const auto refused = [](const BuildRequest& request) {
    const BuildResponse response = Build(request);
    EXPECT_EQ(record::OutcomeName(response.outcome), "invalid");
    return response.detail;
  };
  BuildRequest request = Request();
  request.decisions = {3, 2};
  EXPECT_THAT(refused(request), HasSubstr("3"));
  request.decisions = {4};
  EXPECT_FALSE(refused(request).empty());
  request = Request();
  request.workload = "workload x\nnonsense";
  EXPECT_THAT(refused(request), HasSubstr("2:"));
  request = Request();
  request.space = absl::StrCat(kMatmul, "trace 1\nexplode(l0)\n");
  EXPECT_FALSE(refused(request).empty());
  request = Request();
  request.target = "target arch=pdp11";
  EXPECT_THAT(refused(request), HasSubstr("missing"));
  request = Request();
  request.workload =
      "workload matmul\n"
      "input A: f32[4, 4]\n"
      "output B[i: 4] = sum(k: 4) A[i, k]\n";
  EXPECT_THAT(refused(request), HasSubstr("another workload"));
}

// Code that is too large is rejected before LLVM starts. Each case hits another limit.
TEST_F(BuildTest, HugeUnrollsAreInvalidAtOnce) {
  const auto refused = [&](absl::string_view workload, absl::string_view schedule) {
    BuildRequest request = Request();
    request.workload = std::string(workload);
    request.space = absl::StrCat(workload, "trace 1\nb0 = block(\"C\")\n", schedule);
    request.decisions = {};
    const absl::Time begin = absl::Now();
    const BuildResponse response = Build(request);
    EXPECT_LT(absl::Now() - begin, absl::Seconds(60));  // it would take minutes without the limits
    EXPECT_EQ(record::OutcomeName(response.outcome), "invalid");
    return response.detail;
  };
  // One loop.
  constexpr absl::string_view kCopy =
      "workload w\ninput A: f32[8589934592]\noutput C[i: 8589934592] = A[i] * 2.0\n";
  EXPECT_THAT(refused(kCopy, "l0 = loops(b0)\nunroll(l0)\n"),
              AllOf(HasSubstr("8589934592 iterations; at most 1024 (loop i)"),
                    HasSubstr("\n> for i in 8589934592")));
  EXPECT_THAT(refused(kCopy, "l0 = loops(b0)\nvectorize(l0)\n"),
              AllOf(HasSubstr("8589934592 lanes; at most 64 (loop i)"),
                    HasSubstr("\n> for i in 8589934592")));
  // Many loops.
  constexpr absl::string_view kCube =
      "workload w\ninput A: f32[512, 512]\ninput B: f32[512, 512]\n"
      "output C[i: 512, j: 512] = sum(k: 512) A[i, k] * B[k, j]\n";
  EXPECT_THAT(refused(kCube, "l0, l1, l2 = loops(b0)\nunroll(l0)\nunroll(l1)\nunroll(l2)\n"),
              HasSubstr("the unrolled code exceeds 16384 statements"));
  // Few statements of wide vectors and long functions.
  EXPECT_THAT(refused("workload w\ninput A: f32[1024, 64]\n"
                      "output C[i: 1024, j: 64] = exp(exp(A[i, j]))\n",
                      "l0, l1 = loops(b0)\nunroll(l0)\nvectorize(l1)\n"),
              AllOf(HasSubstr("the unrolled code has "), HasSubstr("at most 65536 are compiled")));
  // Few statements of many operations.
  std::string sum = "A[i]";
  for (int i = 0; i < 6; ++i) sum = absl::StrCat("(", sum, " + ", sum, ")");
  for (int i = 0; i < 6; ++i) sum = absl::StrCat("(", sum, " + ", sum, ")");
  EXPECT_THAT(refused(absl::StrCat("workload w\ninput A: f32[512]\noutput C[i: 512] = ", sum, "\n"),
                      "l0 = loops(b0)\nunroll(l0)\n"),
              HasSubstr("the unrolled code exceeds 1048576 operations"));
}

TEST_F(BuildTest, UnwritableFolderIsASystemFailure) {
  BuildRequest request = Request();
  request.artifact_dir = "/no/such/folder";
  const BuildResponse response = Build(request);
  EXPECT_EQ(response.outcome, Outcome::kDeviceLost);
  EXPECT_THAT(response.detail, HasSubstr("/no/such/folder"));
}

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::string_view kTextMatmul =
    "workload matmul\n"
    "input A: f32[8, 32]\n"
    "input B: f32[32, 64]\n"
    "output C[i: 8, j: 64] = sum(k: 32) A[i, k] * B[k, j]\n";

std::string Vectorized(int lanes) {
  return absl::StrCat(kTextMatmul, "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n",
                      "l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 2, ", lanes, ", 1)\n");
}

std::string CodeFor(const char* target, int lanes) {
  const absl::StatusOr<std::string> code = CodeText(Vectorized(lanes), *ReadTarget(target));
  EXPECT_THAT(code, IsOk());
  return code.value_or("");
}

TEST(CodeTextTest, PrintsTheKernelAsAssemblyOfTheTarget) {
  EXPECT_THAT(CodeFor("x86-avx512", 16),
              AllOf(HasSubstr("hone_main:"), HasSubstr("hone_kernel_run:"), HasSubstr("vfmadd"),
                    HasSubstr("%zmm")));
  EXPECT_THAT(CodeFor("x86-avx2", 8), HasSubstr("%ymm"));
  EXPECT_THAT(CodeFor("arm-neon", 4), AllOf(HasSubstr("hone_main:"), HasSubstr("fmla")));
  EXPECT_THAT(CodeFor("arm-dotprod", 4), HasSubstr("fmla"));
}

TEST(CodeTextTest, RefusesWhatIsNotACandidate) {
  const target::Target target = *ReadTarget("x86-avx2");
  const auto refusal = [&](const std::string& trace) {
    const absl::Status status = CodeText(trace, target).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("nonsense"), HasSubstr("2:1: "));
  EXPECT_THAT(refusal(absl::StrCat(kTextMatmul,
                                   "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n"
                                   "x0, x1 = sample_perfect_tile(l0, parts=2)\n")),
              HasSubstr("2 decisions open"));
  EXPECT_THAT(refusal(absl::StrCat(kTextMatmul, "trace 1\nb0 = block(\"D\")\n")), HasSubstr("D"));
}

TEST(CodeTextTest, TargetsAreNamesOrTexts) {
  const target::Target neon = *target::TargetByName("arm-neon");
  EXPECT_EQ(*ReadTarget("arm-neon"), neon);
  EXPECT_EQ(*ReadTarget(neon.ToText()), neon);
  EXPECT_EQ(*ReadTarget("native"), target::DetectHost());
  for (const char* const wrong : {"pdp11", "target arch=pdp11", ""}) {
    EXPECT_THAT(ReadTarget(wrong), StatusIs(absl::StatusCode::kInvalidArgument)) << wrong;
  }
  EXPECT_THAT(std::string(ReadTarget("pdp11").status().message()),
              AllOf(HasSubstr("x86-avx512"), HasSubstr("arm-neon")));
}

}  // namespace

}  // namespace hone::builder
