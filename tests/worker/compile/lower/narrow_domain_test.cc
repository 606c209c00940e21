#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/substitute.h"
#include "common/ir/interpreter.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/status.h"
#include "worker/compile/lower/lower.h"

namespace hone::lower {
namespace {

// A convolution over rows of `width` pixels, with tiles of `rows` pixels and `vectors` vectors of 8
// channels in registers.
struct PaddedRows {
  int width, kernel, stride, padding, rows;
  int vectors = 1, unroll = 1;

  std::string ToText() const {
    const int out = (width + 2 * padding - kernel) / stride + 1;
    return absl::Substitute(
        R"(workload rows
input X: f32[$0, 8]
input W: f32[$1, 8, $5] constant
output Y[w: $4, co: $5] = sum(s: $1, ci: 8 where 0 <= $2*w + s - $3 < $0) X[$2*w + s - $3, ci] * W[s, ci, co]
trace 1
b0 = block("Y")
lw, lco, ls, lci = loops(b0)
l0, l1, l2 = register_tile(b0, lw, lco, lci, $6, $7, 8, $8)
reorder(l0, l1, ls, l2)
)",
        width, kernel, stride, padding, out, 8 * vectors, rows, vectors, unroll);
  }
};

// The sums of the code, and those that test a guard at run time.
struct Sums {
  int all = 0, guarded = 0;
};

void CountSums(const LoweredProgram& program, StmtId id, std::vector<bool> is_static, Sums& sums) {
  if (id == kNoStmt) return;
  const Stmt& stmt = program.stmts[id];
  if (stmt.kind == Stmt::Kind::kFor) is_static[stmt.var] = LoweredProgram::IsStatic(stmt.loop);
  for (const StmtId child : stmt.children) CountSums(program, child, is_static, sums);
  if (stmt.kind != Stmt::Kind::kStore || stmt.reducer == ir::Reducer::kNone) return;
  ++sums.all;
  bool tests = false;
  for (const ir::Condition& guard : stmt.guards) {
    program.atoms.VisitVars(guard.index, [&](ir::AtomId var) { tests |= !is_static[var]; });
  }
  sums.guarded += tests;
}

// Lowers the convolution, and checks its results.
LoweredProgram LowerRows(const PaddedRows& rows) {
  const auto file = schedule::ParseTraceFile(rows.ToText());
  EXPECT_THAT(file, IsOk());
  const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                        file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(program, IsOk());
  const auto lowered = Lower(*program, target::Target());
  EXPECT_THAT(lowered, IsOk());
  EXPECT_THAT(Verify(*lowered), IsOk());
  std::vector<ir::Scalars> inputs;
  int64_t next = 1;
  for (const ir::BufferId id : file->workload.Inputs()) {
    for (ir::Scalar& value :
         inputs.emplace_back(ir::ElementsOf(file->workload.tensors[id].shape))) {
      value = ir::Scalar(static_cast<double>(next % 7 - 3));
      next = next * 31 % 1009;
    }
  }
  const auto expected = ir::Interpret(file->workload, inputs);
  const auto actual = Interpret(*lowered, file->workload, inputs);
  EXPECT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  if (expected.ok() && actual.ok()) {
    EXPECT_EQ((*actual)[0], (*expected)[0]);
  }
  return *lowered;
}

Sums SumsOf(const LoweredProgram& program) {
  Sums sums;
  CountSums(program, program.kernels.back().body, std::vector<bool>(program.atoms.size()), sums);
  return sums;
}

// Three taps are outside at each end of a row, so its first and last tile have three cases each.
TEST(NarrowDomainTest, WidePaddingLeavesNoGuard) {
  const Sums sums =
      SumsOf(LowerRows({.width = 28, .kernel = 7, .stride = 1, .padding = 3, .rows = 7}));
  EXPECT_EQ(sums.guarded, 0);
  EXPECT_EQ(sums.all, 7);
}

// Every tile is at both ends, so there is no interior but for the tap in the middle.
TEST(NarrowDomainTest, ATileAsLongAsTheRowLeavesNoGuard) {
  const Sums sums =
      SumsOf(LowerRows({.width = 7, .kernel = 7, .stride = 1, .padding = 3, .rows = 7}));
  EXPECT_EQ(sums.guarded, 0);
  EXPECT_EQ(sums.all, 7);
}

TEST(NarrowDomainTest, TapsWithTheSamePixelsInsideShareCode) {
  const Sums sums =
      SumsOf(LowerRows({.width = 28, .kernel = 7, .stride = 2, .padding = 3, .rows = 7}));
  EXPECT_EQ(sums.guarded, 0);
  EXPECT_EQ(sums.all, 4);  // two cases on the left, one on the right
}

// 14 pixels in tiles of 4. The remainder has 2 pixels and is the only tile at the right end, so
// that only its code has cases for this end, and only the other code has one for the left end.
TEST(NarrowDomainTest, TheRemainderHasOnlyTheCasesOfItsTile) {
  const Sums sums =
      SumsOf(LowerRows({.width = 14, .kernel = 3, .stride = 1, .padding = 1, .rows = 4}));
  EXPECT_EQ(sums.guarded, 0);
  EXPECT_EQ(sums.all, 4);
}

// Counts the branches inside of loops.
int BranchesInLoops(const LoweredProgram& program, StmtId id, bool in_loop = false) {
  if (id == kNoStmt) return 0;
  const Stmt& stmt = program.stmts[id];
  int branches = stmt.kind == Stmt::Kind::kIf && in_loop ? 1 : 0;
  const bool is_loop = stmt.kind == Stmt::Kind::kFor && !LoweredProgram::IsStatic(stmt.loop);
  for (const StmtId child : stmt.children)
    branches += BranchesInLoops(program, child, in_loop || is_loop);
  return branches;
}

// The last of three unrolled steps over 8 channels has two of them, and the last tile of 26 pixels
// has two. No loop tests which step or tile it is at.
TEST(NarrowDomainTest, RemaindersHaveTheirOwnLoops) {
  for (const int unroll : {1, 3, 5, 8}) {
    const LoweredProgram program = LowerRows(
        {.width = 26, .kernel = 1, .stride = 1, .padding = 0, .rows = 4, .unroll = unroll});
    EXPECT_EQ(BranchesInLoops(program, program.kernels.back().body), 0) << program.ToText();
    EXPECT_EQ(SumsOf(program).all, 8 % unroll == 0 ? 2 : 4);
  }
}

// Copies of a large body would be too much code. The interior has no guard nevertheless.
TEST(NarrowDomainTest, LargeBodiesKeepTheGuardAtTheBorder) {
  const LoweredProgram program = LowerRows(
      {.width = 64, .kernel = 15, .stride = 1, .padding = 7, .rows = 8, .vectors = 8, .unroll = 8});
  const Sums sums = SumsOf(program);
  EXPECT_EQ(sums.guarded, 1);
  EXPECT_EQ(sums.all, 2);
  EXPECT_THAT(program.ToText(), testing::HasSubstr("if 0 <= s + 8*w_0 - 7 < 57"));
}

}  // namespace
}  // namespace hone::lower
