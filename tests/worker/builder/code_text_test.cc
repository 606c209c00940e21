#include "worker/builder/code_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace hone::builder {
namespace {

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
  EXPECT_TRUE(code.ok()) << code.status();
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
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
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
    EXPECT_TRUE(absl::IsInvalidArgument(ReadTarget(wrong).status())) << wrong;
  }
  EXPECT_THAT(std::string(ReadTarget("pdp11").status().message()),
              AllOf(HasSubstr("x86-avx512"), HasSubstr("arm-neon")));
}

}  // namespace
}  // namespace hone::builder
