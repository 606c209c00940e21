// Sums of f16 and bf16 accumulate in f32. A sum of ones that is rounded at each step would stop at
// 2048 or 256. Schedules that would round partial sums are rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ::testing::HasSubstr;

constexpr int kTerms = 4096;

class WideSumTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string Matmul(absl::string_view trace) {
    return absl::StrCat("workload matmul\ninput A: ", GetParam(), "[4, ", kTerms,
                        "]\ninput B: ", GetParam(), "[", kTerms,
                        ", 32]\noutput C[i: 4, j: 32] = sum(k: ", kTerms,
                        ") A[i, k] * B[k, j]\ntrace 1\nb0 = block(\"C\")\n", trace);
  }
  static void ExpectExact(absl::string_view trace) {
    for (const target::Target& target : RunnableTargets()) {
      HONE_ASSERT_OK_AND_ASSIGN(
          const auto outputs, RunTrace(target, Matmul(trace),
                                       {{ir::Values(4 * kTerms, 1), ir::Values(32 * kTerms, 1)}}));
      for (const double value : outputs[0]) ASSERT_EQ(value, kTerms) << target.cpu;
    }
  }
  static std::string WhyRefused(absl::string_view trace) {
    const auto outputs = RunTrace(RunnableTargets()[0], Matmul(trace),
                                  {{ir::Values(4 * kTerms, 1), ir::Values(32 * kTerms, 1)}});
    return std::string(outputs.status().message());
  }
};

TEST_P(WideSumTest, InRegisters) {
  ExpectExact("");
  ExpectExact(
      "l0, l1, l2 = loops(b0)\n"
      "l3, l4 = split(l1, 0, 16)\n"
      "reorder(l0, l3, l2, l4)\n"
      "vectorize(l4)\n");
}

TEST_P(WideSumTest, InTilesOfACache) {
  ExpectExact(
      "b1 = cache_write(b0, \"global\")\n"
      "l0, l1, l2 = loops(b0)\n"
      "l3, l4 = split(l2, 0, 64)\n"
      "l5, l6 = split(l1, 0, 16)\n"
      "reorder(l3, l0, l5, l4, l6)\n"
      "vectorize(l6)\n");
}

TEST_P(WideSumTest, InPartsThatAreAddedUp) {
  ExpectExact(
      "b1 = cache_write(b0, \"global\")\n"
      "l0, l1, l2 = loops(b0)\n"
      "l3, l4 = split(l2, 0, 64)\n"
      "reorder(l3, l0, l1, l4)\n"
      "b2 = rfactor(b0, l3, 0)\n");
}

TEST_P(WideSumTest, PartialSumsAreNotRounded) {
  EXPECT_THAT(WhyRefused("l0, l1, l2 = loops(b0)\n"
                         "l3, l4 = split(l2, 0, 64)\n"
                         "reorder(l3, l0, l1, l4)\n"),
              HasSubstr(absl::StrCat("partial sums of C would be rounded to ", GetParam(),
                                     " at each of the 64 iterations of loop ")));
  EXPECT_THAT(WhyRefused("l0, l1, l2 = loops(b0)\n"
                         "l3, l4 = split(l2, 0, 64)\n"
                         "reorder(l3, l0, l1, l4)\n"
                         "b1 = rfactor(b0, l3, 0)\n"),
              HasSubstr("rfactor: partial results would be rounded"));
}

// An inlined value is rounded as its tensor would be.
TEST_P(WideSumTest, InlinedValuesAreRounded) {
  const std::string workload =
      absl::StrCat("workload chain\ninput A: ", GetParam(), "[64]\nT[i: 64] = A[i] * A[i]\n",
                   "output Y[i: 64] = f32(T[i])\ntrace 1\n");
  ir::Values input;
  for (int i = 0; i < 64; ++i) input.push_back(1 + i * 0x1p-7);
  for (const target::Target& target : RunnableTargets()) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto stored, RunTrace(target, workload, {input}));
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto inlined,
        RunTrace(target, absl::StrCat(workload, "b0 = block(\"T\")\ncompute_inline(b0)\n"),
                 {input}));
    EXPECT_EQ(stored[0], inlined[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, WideSumTest, ::testing::Values("f16", "bf16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone::codegen
