// Rewrites rely on two optimizations of the code generator: a chain of selects on an unrolled index
// costs nothing, and a small buffer between two transforms becomes registers.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/schedule/replay.h"
#include "common/target/target.h"
#include "tests/status.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/lower/lower.h"

namespace hone {
namespace {

// Returns the optimized LLVM IR.
std::string Code(absl::string_view workload, absl::string_view trace) {
  const auto file = schedule::ParseTraceFile(absl::StrCat(workload, "trace 1\n", trace));
  EXPECT_THAT(file, IsOk());
  const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                        file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(program, IsOk());
  const target::Target target = target::TargetByName("x86-avx512").value();
  const auto lowered = lower::Lower(*program, target);
  EXPECT_THAT(lowered, IsOk());
  const auto compiled = codegen::Compile(*lowered, target, {.keep_ir = true});
  EXPECT_THAT(compiled, IsOk());
  return compiled->ir;
}

constexpr char kRows[] =
    "workload rows\ninput A: f32[2, 16]\n"
    "output B[x: 3, j: 16] = select(index(x) == 0, A[0, j], select(index(x) == 1, A[0, j] * 7.5 + "
    "A[1, j], A[1, j]))\n";
constexpr char kRowLoops[] = "b0 = block(\"B\")\nl0, l1 = loops(b0)\nvectorize(l1)\n";

int Count(absl::string_view text, absl::string_view what) {
  int count = 0;
  for (size_t at = text.find(what); at != absl::string_view::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST(KnownChoiceTest, UnrolledSelectsLeaveOneExpressionEach) {
  const std::string unrolled = Code(kRows, absl::StrCat(kRowLoops, "unroll(l0)\n"));
  EXPECT_EQ(Count(unrolled, "@llvm.fma.v16f32(<16 x float> %"), 1) << unrolled;
  const std::string looped = Code(kRows, kRowLoops);
  EXPECT_GT(Count(looped, " select "), Count(unrolled, " select ")) << looped;
}

TEST(SmallBufferTest, AnUnrolledTileBetweenTwoStagesIsRegisters) {
  const std::string code = Code(
      "workload two\ninput A: f32[8, 4, 16]\n"
      "B[t: 8, i: 4, j: 16] = A[t, i, j] * 3.0\n"
      "output C[t: 8, i: 2, j: 16] = B[t, i, j] + B[t, i + 2, j]\n",
      "c = block(\"C\")\nct, ci, cj = loops(c)\n"
      "b = block(\"B\")\ncompute_at(b, ct)\n"
      "u, bt, bi, bj = "
      "loops(b)\nvectorize(bj)\nunroll(bi)\nvectorize(cj)\nunroll(ci)\nparallel(ct)\n");
  const size_t body = code.find("define internal void @hone_parallel_0(");
  ASSERT_NE(body, std::string::npos);
  const std::string function = code.substr(body, code.find("\n}", body) - body);
  EXPECT_EQ(Count(function, "alloca"), 0) << function;
  EXPECT_EQ(Count(function, "store <16 x float>"), 2) << function;
}

}  // namespace
}  // namespace hone
