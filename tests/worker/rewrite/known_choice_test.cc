// What rewrites rely on in the code generator: a chain of selects on an unrolled index costs
// nothing.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/lower/lower.h"
#include "common/schedule/replay.h"
#include "common/target/target.h"
#include "worker/codegen/compile.h"

namespace hone {
namespace {

// LLVM's text of the optimized code.
std::string Code(absl::string_view trace) {
  const auto file = schedule::ParseTraceFile(
      absl::StrCat("workload rows\ninput A: f32[2, 16]\n"
                   "output B[x: 3, j: 16] = select(index(x) == 0, A[0, j], select(index(x) == 1, "
                   "A[0, j] * 7.5 + A[1, j], A[1, j]))\n"
                   "trace 1\nb0 = block(\"B\")\nl0, l1 = loops(b0)\nvectorize(l1)\n",
                   trace));
  EXPECT_TRUE(file.ok()) << file.status();
  const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                        file->parsed.trace, file->parsed.decisions);
  EXPECT_TRUE(program.ok()) << program.status();
  const target::Target target = target::TargetByName("x86-avx512").value();
  const auto lowered = lower::Lower(*program, target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  const auto compiled = codegen::Compile(*lowered, target, {.keep_ir = true});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled->ir;
}

int Count(absl::string_view text, absl::string_view what) {
  int count = 0;
  for (size_t at = text.find(what); at != absl::string_view::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST(KnownChoiceTest, UnrolledSelectsLeaveOneExpressionEach) {
  const std::string unrolled = Code("unroll(l0)\n");
  EXPECT_EQ(Count(unrolled, "@llvm.fma.v16f32(<16 x float> %"), 1) << unrolled;
  const std::string looped = Code("");
  EXPECT_GT(Count(looped, " select "), Count(unrolled, " select ")) << looped;
}

}  // namespace
}  // namespace hone
