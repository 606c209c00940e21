#include "worker/compile/lower/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/status.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Outputs whose names begin with "unread" become tensors that nothing reads. The text form cannot
// express this.
LoweredProgram LowerText(absl::string_view text) {
  auto file = schedule::ParseTraceFile(text);
  EXPECT_THAT(file, IsOk());
  for (ir::Tensor& tensor : file->workload.tensors)
    tensor.output &= !absl::StartsWith(tensor.name, "unread");
  const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                        file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(program, IsOk());
  target::Target target;
  target.cores = 2;
  const auto lowered = Lower(*program, target);
  EXPECT_THAT(lowered, IsOk());
  return *lowered;
}

constexpr char kMatmul[] = R"(workload matmul
input A: f32[20, 8]
input B: f32[8, 32]
output C[i: 20, j: 32] = sum(k: 8) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
)";

constexpr char kConv[] = R"(workload conv
input X: f32[1, 6, 6, 8]
input W: f32[3, 3, 8, 16] constant
output Y[n: 1, h: 6, w: 6, co: 16] = sum(r: 3, s: 3, ci: 8 where 0 <= h + r - 1 < 6, 0 <= w + s - 1 < 6) X[n, h + r - 1, w + s - 1, ci] * W[r, s, ci, co]
trace 1
b0 = block("Y")
ln, lh, lw, lco, lr, ls, lci = loops(b0)
)";

const Storage& StorageOf(const LoweredProgram& program, absl::string_view name) {
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].name == name) return program.storage[b];
  }
  ADD_FAILURE() << "no buffer " << name;
  return program.storage[0];
}

// A guarded load is a sum over one point. It is stored directly instead of being added to zero.
TEST(LowerTest, SumOfOneTermIsStoredDirectly) {
  const std::string padded = LowerText(R"(workload pad
input X: f32[6]
output Y[i: 8] = sum(z: 1 where 0 <= i - 1 < 6) X[i - 1]
trace 1
)")
                                 .ToText();
  EXPECT_THAT(padded, HasSubstr("Y[i] = X[i - 1]"));
  EXPECT_THAT(padded, HasSubstr("Y[i] = 0.0"));
  EXPECT_THAT(padded, Not(HasSubstr("sum")));
}

// A loop that carries rows and reduction steps, with lanes that reduce: only the first lane of some
// iterations stores the neutral element.
TEST(LowerTest, FirstStepOfSomeLanesIsAMask) {
  const std::string text = LowerText(R"(workload window
input X: f32[2, 4]
input W: f32[3, 3] constant
output Y[h: 2, w: 2] = sum(r: 3, s: 3 where 0 <= h + r - 1 < 2) X[h + r - 1, w + s] * W[r, s]
trace 1
b0 = block("Y")
l0, l1, l2, l3 = loops(b0)
vectorize(l3)
l4 = reorder_space(l1, l2, "grouped", 1)
)")
                               .ToText();
  EXPECT_THAT(text, HasSubstr("= 0.0 if 0 <= s < 1"));
  EXPECT_THAT(text, Not(HasSubstr("  if 0 <= s < 1\n")));
}

TEST(LowerTest, AccumulatorsOfARegisterTileAreRegisters) {
  const std::string text =
      LowerText(std::string(kMatmul) + "l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 2, 16, 2)\n")
          .ToText();
  EXPECT_THAT(text, HasSubstr("f32[4, 2, 16] register"));
  EXPECT_THAT(text, Not(HasSubstr("C[32*i_0")));  // C is stored only after the reduction
}

TEST(LowerTest, AccumulatorsOfAnUnrolledReductionAreRegisters) {
  const std::string text =
      LowerText(std::string(kConv) +
                "l0, l1 = split(lw, 0, 2)\nreorder(l0, lr, ls, lci, l1, lco)\nvectorize(lco)\n"
                "unroll(l1)\nunroll(lci)\nunroll(ls)\nunroll(lr)\n")
          .ToText();
  EXPECT_THAT(text, HasSubstr("f32[2, 16] register"));
}

TEST(LowerTest, RemainderTileIsSeparateCode) {
  // 20 rows in tiles of 6: three full tiles and one of 2.
  const std::string text =
      LowerText(std::string(kMatmul) + "l3, l4, l5 = register_tile(b0, l0, l1, l2, 6, 2, 16, 1)\n")
          .ToText();
  EXPECT_THAT(text, HasSubstr("for i_0 in 4 to 3"));
  EXPECT_THAT(text, HasSubstr("for i_0 in 4 from 3"));
  EXPECT_THAT(text,
              HasSubstr("if 0 <= i_1 + 18 < 20"));  // static: folded when the rows are unrolled
  EXPECT_THAT(text, Not(HasSubstr("if 0 <= 6*i_0 + i_1 < 20")));  // never tested at run time
}

TEST(LowerTest, GuardLimitsTheWindowLoop) {
  const std::string text = LowerText(std::string(kConv) +
                                     "l3, l4, l5 = register_tile(b0, lw, lco, lci, 6, 1, 16, "
                                     "1)\nreorder(l3, l4, lr, ls, l5)\n")
                               .ToText();
  EXPECT_THAT(text, HasSubstr("for r in 3 from -h + 1 to -h + 7"));
  // The other window axis: first, interior and last taps, with the dead rows folded away.
  EXPECT_THAT(text, HasSubstr("for s in 3 to 1"));
  EXPECT_THAT(text, HasSubstr("for s in 3 from 1 to 2"));
  EXPECT_THAT(text, HasSubstr("for s in 3 from 1 from 2"));
}

TEST(LowerTest, RuntimeGuardBecomesLoopBounds) {
  const std::string text = LowerText(kConv).ToText();
  EXPECT_THAT(text, HasSubstr("for r in 3 from -h + 1 to -h + 7"));
  EXPECT_THAT(text, HasSubstr("for s in 3 from -w + 1 to -w + 7"));
  EXPECT_THAT(text, Not(HasSubstr(" if 0 <=")));
}

TEST(LowerTest, CasesOfAGuardedValueAreNestsWithoutBranches) {
  const LoweredProgram program = LowerText(R"(workload pad
input X: f32[6, 30]
output P[i: 8, j: 32] = (X[i - 1, j - 1] where 0 <= i - 1 < 6, 0 <= j - 1 < 30 else 0.5)
trace 1
b0 = block("P")
l0, l1 = loops(b0)
)");
  const std::string text = program.ToText();
  EXPECT_THAT(text, Not(HasSubstr("if ")));
  EXPECT_THAT(text, HasSubstr("for i in 8 from 1 to 7"));
  int stores = 0;
  for (size_t at = 0; (at = text.find("P[", at)) != std::string::npos; ++at) ++stores;
  EXPECT_EQ(stores, 5) << text;  // the inside and four borders
}

// The iterations of a parallel loop have no bounds for cases. Each case has branches of its own.
TEST(LowerTest, CasesInAParallelLoopAreNotCopied) {
  const LoweredProgram program = LowerText(R"(workload many
input X: f32[9, 40]
output P[i: 9, j: 40] = (X[i, j] where 2 <= i else 0.5) + (X[i, j] where i < 7 else 0.5) + (X[i, j] where 3 <= j else 0.5) + (X[i, j] where j < 37 else 0.5) + (X[i, j] where i == 4 else 0.5)
trace 1
b0 = block("P")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 8)
vectorize(l3)
l4 = fuse(l0, l2)
parallel(l4)
)");
  const std::string text = program.ToText();
  int stores = 0;
  for (size_t at = 0; (at = text.find("P[", at)) != std::string::npos; ++at) ++stores;
  EXPECT_LE(stores, 32 * 3) << text;
}

TEST(LowerTest, PanelComputedAtALoopIsCompacted) {
  const LoweredProgram program =
      LowerText(std::string(kMatmul) +
                "l3, l4 = split(l2, 0, 4)\nreorder(l3, l0, l1, l4)\n"
                "b1 = cache_read(b0, \"B\", \"global\")\ncompute_at(b1, l3)\n");
  EXPECT_EQ(StorageOf(program, "B_copy").elements, 4 * 32);
}

TEST(LowerTest, BuffersInAParallelLoopArePerThread) {
  const std::string tail =
      "l3, l4 = split(l0, 0, 10)\nb1 = cache_read(b0, \"A\", \"global\")\ncompute_at(b1, "
      "l3)\nparallel(l3)\n";
  EXPECT_EQ(StorageOf(LowerText(kMatmul + tail), "A_copy").kind, Storage::Kind::kStack);
  const LoweredProgram large = LowerText(std::string(R"(workload matmul
input A: f32[64, 4096]
input B: f32[4096, 8]
output C[i: 64, j: 8] = sum(k: 4096) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
)") + tail);
  EXPECT_EQ(StorageOf(large, "A_copy").kind, Storage::Kind::kThread);
  EXPECT_GE(large.thread_stride_bytes, 10 * 4096 * 4);
  EXPECT_EQ(large.WorkspaceBytes(2) - large.WorkspaceBytes(1), large.thread_stride_bytes);
}

TEST(LowerTest, BuffersShareMemoryIfTheyAreNotUsedAtTheSameTime) {
  const LoweredProgram program = LowerText(R"(workload chain
input X: f32[64, 64]
P[i: 64, j: 64] = X[i, j] + 1.0
Q[i: 64, j: 64] = P[j, i] * P[i, j]
R[i: 64, j: 64] = Q[j, i] * Q[i, j]
output Y[i: 64, j: 64] = R[j, i] * R[i, j]
trace 1
)");
  constexpr int64_t kBytes = 64 * 64 * 4;
  EXPECT_EQ(program.workspace_bytes, 2 * kBytes) << program.ToText();
  EXPECT_EQ(StorageOf(program, "P").offset_bytes, StorageOf(program, "R").offset_bytes);
  EXPECT_NE(StorageOf(program, "P").offset_bytes, StorageOf(program, "Q").offset_bytes);
}

TEST(LowerTest, TheSumOfAllStacksIsLimited) {
  const LoweredProgram program = LowerText(R"(workload chain
input X: f32[4, 8000]
P[i: 4, j: 8000] = X[i, j] + 1.0
Q[i: 4, j: 8000] = P[i, j] * P[i, 7999 - j]
R[i: 4, j: 8000] = Q[i, j] * Q[i, 7999 - j]
output Y[i: 4, j: 8000] = R[i, j] * R[i, 7999 - j]
trace 1
b0 = block("Y")
l0, l1 = loops(b0)
b1 = block("R")
compute_at(b1, l0)
b2 = block("Q")
compute_at(b2, l0)
b3 = block("P")
compute_at(b3, l0)
parallel(l0)
)");
  std::multiset<Storage::Kind> kinds;
  for (const char* const name : {"P", "Q", "R"}) kinds.insert(StorageOf(program, name).kind);
  EXPECT_EQ(kinds.count(Storage::Kind::kStack), 2u) << program.ToText();
  EXPECT_EQ(kinds.count(Storage::Kind::kThread), 1u);
}

// Each step of the reduction runs the parallel loop inside, and so does the initialization.
TEST(LowerTest, InitializationsHaveTheThreadsOfTheirLoops) {
  for (const int threads : {1, 2}) {
    const LoweredProgram program = LowerText(absl::StrCat(R"(workload matmul
input A: f32[64, 64]
input B: f32[64, 64]
output C[i: 64, j: 64] = sum(k: 64) A[i, k] * B[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
reorder(l2, l0)
parallel(l0)
thread_count(l0, )",
                                                          threads, ")\n"));
    EXPECT_EQ(program.threads, threads) << program.ToText();
  }
}

TEST(LowerTest, ConstantCopiesArePackedAheadOfTime) {
  const LoweredProgram program =
      LowerText(std::string(kConv) + "b1 = cache_read(b0, \"W\", \"global\")\n");
  ASSERT_EQ(program.kernels.size(), 2u);
  EXPECT_EQ(program.kernels[0].name, "prepack");
  EXPECT_EQ(StorageOf(program, "W_copy").kind, Storage::Kind::kPacked);
  EXPECT_EQ(program.packed_bytes, 3 * 3 * 8 * 16 * 4);
}

// The iterations of a parallel loop must not share a buffer that has only the elements of one.
TEST(LowerTest, APrivateBufferOfPackedConstantsIsOnTheStack) {
  const LoweredProgram program = LowerText(R"(workload matmul
input A: f32[1, 1]
input W: f32[1, 1] constant
output C[i: 1, j: 1] = sum(k: 1) A[i, k] * W[k, j]
trace 1
b0 = block("C")
b1, b2 = pad_einsum(b0, 1, 2, 1)
b3 = block("W_pad")
b4 = cache_write(b3, "global")
b5 = block("W_pad")
l0, l1 = loops(b5)
parallel(l1)
b6 = block("W_pad1")
b7 = block("W_pad")
l2, l3 = loops(b7)
reverse_compute_at(b6, l3)
)");
  EXPECT_EQ(StorageOf(program, "W_pad").kind, Storage::Kind::kPacked);
  EXPECT_EQ(StorageOf(program, "W_pad_cache").kind, Storage::Kind::kStack);
}

TEST(LowerTest, OuterReductionLoopInitializesOrAccumulates) {
  const std::string text = LowerText(std::string(kMatmul) +
                                     "l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 2, 16, 1)\n"
                                     "l6, l7 = split(l5, 0, 4)\nreorder(l6, l3, l4, l7)\n")
                               .ToText();
  EXPECT_THAT(text, HasSubstr("if 0 <= k_0_0 < 1"));
  EXPECT_THAT(text, HasSubstr("= C["));
}

// The last step of i.j_1_0 has nothing to do when i.j_0 is 1, and its element lies past the end of
// the output.
TEST(LowerTest, ElementsWithoutUpdatesAreNotWritten) {
  const std::string text = LowerText(R"(workload w
input X: f32[4, 2, 3]
output Y[i: 4] = min(j: 2, k: 3) X[i, j, k]
trace 1
b0 = block("Y")
l0, l1, l2 = loops(b0)
l3 = fuse(l0, l1)
reorder(l2, l3)
l4, l5 = split(l3, 0, 6)
l6, l7 = split(l5, 0, 2)
)")
                               .ToText();
  EXPECT_THAT(text, HasSubstr("for i.j_1_0 in 3 to "));
  EXPECT_THAT(text, Not(HasSubstr("else\n          for")));
}

// The same where the elements have a loop of their own, because their steps follow it.
TEST(LowerTest, ElementsWithoutUpdatesAreNotInitialized) {
  const std::string text = LowerText(R"(workload w
input X: i32[9, 4]
output Y[i: 9] = max(k: 4) X[i, k]
trace 1
b0 = block("Y")
l0, l1 = loops(b0)
l2 = fuse(l0, l1)
l3, l4 = split(l2, 0, 8)
l5, l6, l7 = split(l4, 0, 1, 4)
)")
                               .ToText();
  EXPECT_THAT(text, HasSubstr("for i.k_1_0 in 2 to -2*i.k_0 + 9"));
}

// The same for a tuple.
TEST(LowerTest, ElementsOutsideOfTheDomainAreNotInitialized) {
  // The row and the column of a point come from one counter, of which the last values are unused.
  const LoweredProgram program = LowerText(R"(workload rows
input X: f32[9, 4]
output (V, I)[i: 9] = argmax(k: 4) (X[i, k], index(k))
trace 1
b0 = block("V")
l0, l1 = loops(b0)
l2 = fuse(l0, l1)
l3, l4 = split(l2, 0, 8)
b1 = block("V")
l5, l6 = loops(b1)
l7, l8, l9 = split(l6, 0, 1, 4)
)");
  EXPECT_THAT(program.ToText(), HasSubstr("    for i.k_1_0 in 2 to -2*i.k_0 + 9\n"
                                          "      V.acc3, I.acc4[0] = -inf, i64(-1)\n"
                                          "      for i.k_1_2 in 4 to "));
}

// Its reader was moved away and inlined, so that the loop computes the same sum again and again.
TEST(LowerTest, ARepeatedSumBeginsAnewEachTime) {
  const LoweredProgram program = LowerText(R"(workload repeated
input A: f32[1, 5]
R[i: 1] = sum(j: 5) A[i, j]
output T[i: 1, j: 5] = R[i] + A[i, j]
trace 1
b0 = block("T")
b1 = cache_write(b0, "local")
b2 = block("R")
b3 = block("T")
l0, l1 = loops(b3)
compute_at(b2, l1)
compute_inline(b3)
)");
  EXPECT_THAT(program.ToText(), HasSubstr("  for j in 5\n"
                                          "    R.acc4[0] = 0.0\n"
                                          "    for R.j in 5\n"));
}

// The accumulators of a tuple stay in registers, and its partial results in a small buffer.
TEST(LowerTest, PartialTuplesAreCompactedAndAccumulateInRegisters) {
  const LoweredProgram program = LowerText(R"(workload best
input X: f32[40, 96]
output (V, I)[i: 40] = argmax(k: 96) (X[i, k], index(k))
trace 1
b0 = block("V")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 16)
b1 = rfactor(b0, l3)
vectorize(l3)
parallel(l0)
)");
  for (const char* const partial : {"V_rf", "I_rf"}) {
    EXPECT_EQ(StorageOf(program, partial).kind, Storage::Kind::kStack);
    EXPECT_EQ(StorageOf(program, partial).elements, 16);
  }
  EXPECT_THAT(program.ToText(), HasSubstr("buffer V_rf.acc5: f32[16] register"));
  EXPECT_THAT(program.ToText(), HasSubstr("buffer I_rf.acc6: i64[16] register"));
}

TEST(LowerTest, EmptyReductionsLeaveNoLoops) {
  const std::string text = LowerText(R"(workload w
input X: f32[4, 2]
output Y[h: 2, j: 2] = sum(r: 4 where 0 <= h + 3*r - 5 < 1) X[r, j]
trace 1
b0 = block("Y")
l0, l1, l2 = loops(b0)
unroll(l0)
reorder(l0, l2, l1)
)")
                               .ToText();
  EXPECT_THAT(text, Not(HasSubstr("X["))) << text;
  EXPECT_THAT(text, HasSubstr("Y["));
}

// An instruction sums over variables that are no longer loops.
TEST(LowerTest, TensorizedFullSumIsInitialized) {
  const std::string text = LowerText(R"(workload w
input A: u8[1, 4]
input B: i8[1, 16, 4]
output C[i: 1, j: 16] = sum(k: 4) i32(A[i, k]) * i32(B[0, j, k])
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
tensorize(l1, "vnni_16x4")
)")
                               .ToText();
  EXPECT_THAT(text, HasSubstr("C[j] = i32(0)"));
  EXPECT_THAT(text, HasSubstr("C[j] = sum i32(A[k]) * i32(B[4*j + k])"));
}

// The lanes of an instruction with a block of results are its rows and columns.
TEST(LowerTest, BlocksOfSumsAreVectors) {
  const std::string text = LowerText(R"(workload w
input A: i8[3, 4, 2, 8]
input B: i8[3, 4, 2, 8]
output C[b: 3, i: 2, j: 2] = sum(s: 4, k: 8) i32(A[b, s, i, k]) * i32(B[b, s, j, k])
trace 1
b0 = block("C")
l0, l1, l2, l3, l4 = loops(b0)
reorder(l3, l1, l2, l4)
tensorize(l1, "smmla_2x2x8")
)")
                               .ToText();
  EXPECT_THAT(text, HasSubstr("vectorized i_lane in 4"));
  EXPECT_THAT(text, HasSubstr("C.acc3[i_lane] = sum i32(A[64*b + 16*s + k + 8*(i_lane / 2)]) * "
                              "i32(B[64*b + 16*s + k + 8*(i_lane % 2)])"));
  EXPECT_THAT(text, HasSubstr("C[4*b + i_lane_out] = C.acc3[i_lane_out]"));
}

// A dead block has no reader. Compaction once kept a single step of its reduction, and the code
// used loops that did not enclose it.
TEST(LowerTest, DeadStagesAreRemoved) {
  const std::string text = LowerText(R"(workload w
input A: f32[7, 16]
input B: f32[16, 30]
D[i: 7, j: 30] = sum(k: 16) A[i, k] * B[k, j]
output unread_E[i: 7, j: 30] = D[i, j] + 1.0
output C[i: 7] = sum(k: 16) A[i, k]
trace 1
b0 = block("D")
l0, l1, l2 = loops(b0)
l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 2, 8, 1)
)")
                               .ToText();
  EXPECT_THAT(text, Not(HasSubstr("D")));
  EXPECT_THAT(text, HasSubstr("C[i] = "));
}

TEST(LowerTest, LoweringIsDeterministic) {
  const std::string text =
      std::string(kConv) + "l3, l4, l5 = register_tile(b0, lw, lco, lci, 5, 1, 16, 1)\n";
  EXPECT_EQ(LowerText(text).ToText(), LowerText(text).ToText());
}

}  // namespace
}  // namespace hone::lower
