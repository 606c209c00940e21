// Hand-written schedules for GPUs, lowered to what one thread runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/status.h"
#include "tests/worker/compile/lower/gpu_trace.h"

namespace hone::lower {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Checks that the program keeps the rules and computes its workload, in each order of threads.
void ExpectRight(const GpuTrace& lowered) {
  ASSERT_THAT(lowered.program, IsOk());
  ASSERT_THAT(Verify(*lowered.program), IsOk());
  std::vector<ir::Scalars> inputs;
  int64_t next = 1;
  for (const ir::BufferId id : lowered.workload->Inputs()) {
    const ir::Tensor& tensor = lowered.workload->tensors[id];
    ir::Scalars& input = inputs.emplace_back(ir::ElementsOf(tensor.shape));
    for (ir::Scalar& value : input) {
      value = ir::CastTo(tensor.dtype, ir::Scalar(static_cast<double>(next % 7 - 3)));
      next = next * 31 % 1009;
    }
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(*lowered.workload, inputs));
  for (const ThreadOrder order :
       {ThreadOrder::kForward, ThreadOrder::kBackward, ThreadOrder::kShuffled}) {
    const auto actual =
        Interpret(*lowered.program, *lowered.workload, inputs, int64_t{1} << 32, order);
    ASSERT_THAT(actual, IsOk()) << lowered.program->ToText();
    EXPECT_EQ(*actual, expected);
  }
}

// Each thread has four results in an array of its own, and copies its share of both tiles.
TEST(GpuLowerTest, TiledMatmul) {
  const GpuTrace lowered = LowerTrace(kTiledMatmul);
  ASSERT_THAT(lowered.program, IsOk());
  EXPECT_EQ(lowered.program->ToText(), R"(buffer A: f32[32, 24] argument
buffer B: f32[24, 48] argument
buffer C: f32[32, 48] argument
buffer C_cache: f32[2, 2] stack
buffer A_copy: f32[16, 8] shared
buffer B_copy: f32[8, 16] shared
kernel matmul_C1
  blockIdx.y i_0 in 2
    blockIdx.x j_0 in 3
      threadIdx.y ty in 8
        threadIdx.x tx in 8
          unrolled i_2_init in 2
            unrolled j_2_init in 2
              C_cache[2*i_2_init + j_2_init] = 0.0
          for k_0 in 3
            barrier
            for A_copy.a0.A_copy.a1_0 in 2
              A_copy[64*A_copy.a0.A_copy.a1_0 + 8*ty + tx] = A[384*i_0 + 8*k_0 + 192*A_copy.a0.A_copy.a1_0 + 24*ty + tx]
            for B_copy.a0.B_copy.a1_0 in 2
              B_copy[64*B_copy.a0.B_copy.a1_0 + 8*ty + tx] = B[16*j_0 + 384*k_0 + 192*B_copy.a0.B_copy.a1_0 + tx + 48*(ty / 2) + 8*(ty % 2)]
            barrier
            for k_1 in 8
              unrolled i_2 in 2
                unrolled j_2 in 2
                  C_cache[2*i_2 + j_2] = sum A_copy[8*i_2 + k_1 + 16*ty] * B_copy[j_2 + 16*k_1 + 2*tx]
          for C1.a0_1 in 2
            for C1.a1_1 in 2
              C[768*i_0 + 16*j_0 + 48*C1.a0_1 + C1.a1_1 + 96*ty + 2*tx] = C_cache[2*C1.a0_1 + C1.a1_1]
)");
  ASSERT_EQ(lowered.program->kernels.size(), 1);
  const LoweredKernel& kernel = lowered.program->kernels[0];
  EXPECT_THAT(kernel.grid, ElementsAre(3, 2, 1));
  EXPECT_THAT(kernel.block, ElementsAre(8, 8, 1));
  EXPECT_EQ(kernel.shared_bytes, 2 * 16 * 8 * 4);
  ExpectRight(lowered);
}

// With two buffers for each operand, the copies of the next step precede the products of this one,
// and one barrier per step is enough.
TEST(GpuLowerTest, DoubleBuffersNeedOneBarrierPerStep) {
  const GpuTrace lowered =
      LowerTrace(absl::StrCat(kTiledMatmul, "double_buffer(b2)\ndouble_buffer(b3)\n"));
  ExpectRight(lowered);
  const std::string text = lowered.program->ToText();
  EXPECT_THAT(text, HasSubstr("buffer A_copy: f32[2, 16, 8] shared\n"));
  EXPECT_THAT(text, HasSubstr("          for k_0 in 3\n"
                              "            barrier\n"
                              "            if 0 <= k_0 + 1 < 3\n"
                              "              for A_copy.a0.A_copy.a1_0 in 2\n"
                              "                A_copy[64*A_copy.a0.A_copy.a1_0 + 128*((k_0 + 1) "
                              "% 2) + 8*ty + tx] = A["));
  EXPECT_EQ(text.find("barrier"), text.rfind("barrier"));
}

TEST(GpuLowerTest, SoftwarePipelineOfThreeStages) {
  const GpuTrace lowered = LowerTrace(absl::StrCat(kTiledMatmul, "software_pipeline(k0, 3)\n"));
  ExpectRight(lowered);
  EXPECT_THAT(lowered.program->ToText(), HasSubstr("buffer B_copy: f32[3, 8, 16] shared\n"));
}

// Rows of a softmax: the threads of a block share partial maxima and sums through shared memory.
TEST(GpuLowerTest, RowsAreReducedByAllThreadsOfABlock) {
  const GpuTrace lowered = LowerTrace(R"(workload rows
input X: f32[6, 32]
M[i: 6] = max(k: 32) X[i, k]
output Y[i: 6, j: 32] = X[i, j] - M[i]
trace 1
b0 = block("M")
b1 = block("Y")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 8)
b2 = rfactor(b0, l3, 0)
y0, y1 = loops(b1)
y2, y3 = split(y1, 0, 8)
bind(y0, "blockIdx.x")
bind(y3, "threadIdx.x")
compute_at(b0, y0)
compute_at(b2, y0)
r0, r1, r2, r3 = loops(b2)
bind(r2, "threadIdx.x")
)");
  ExpectRight(lowered);
  EXPECT_EQ(lowered.program->ToText(), R"(buffer X: f32[6, 32] argument
buffer M: f32[1] shared
buffer Y: f32[6, 32] argument
buffer M_rf: f32[8, 1] shared
buffer M_rf.acc4: f32[1] register
buffer M.acc5: f32[1] register
kernel rows_Y
  blockIdx.x i in 6
    threadIdx.x tx in 8
      M_rf.acc4[0] = -inf
      for M_rf.k_0 in 4
        M_rf.acc4[0] = max X[32*i + 8*M_rf.k_0 + tx]
      M_rf[tx] = M_rf.acc4[0]
      barrier
      if 0 <= tx < 1
        M.acc5[0] = -inf
        for M.k_1 in 8
          M.acc5[0] = max M_rf[M.k_1]
        M[0] = M.acc5[0]
      barrier
      for j_0 in 4
        Y[32*i + 8*j_0 + tx] = X[32*i + 8*j_0 + tx] - M[0]
)");
}

// A sum whose terms are divided among the threads of a block: they add their results as a tree.
TEST(GpuLowerTest, ThreadsReduceAsATree) {
  const GpuTrace lowered = LowerTrace(R"(workload rows
input X: f32[6, 30]
output M[i: 6] = sum(k: 30) X[i, k]
trace 1
b0 = block("M")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 8)
reorder(l3, l2)
bind(l0, "blockIdx.x")
bind(l3, "threadIdx.x")
)");
  ExpectRight(lowered);
  EXPECT_EQ(lowered.program->ToText(), R"(buffer X: f32[6, 30] argument
buffer M: f32[6] argument
buffer M_rf: f32[1, 1] stack
buffer M_rf_threads: f32[1, 8] shared
kernel rows_M
  blockIdx.x i in 6
    threadIdx.x tx in 8
      M_rf[0] = 0.0
      for k_0 in 4 to (-tx + 5) / 8 + 4
        M_rf[0] = sum X[30*i + 8*k_0 + tx]
      M_rf_threads[tx] = M_rf[0]
      barrier
      if 0 <= tx < 4
        M_rf_threads[tx] = sum M_rf_threads[tx + 4]
      barrier
      if 0 <= tx < 2
        M_rf_threads[tx] = sum M_rf_threads[tx + 2]
      barrier
      if 0 <= tx < 1
        M_rf_threads[tx] = sum M_rf_threads[tx + 1]
      if 0 <= tx < 1
        M[i] = M_rf_threads[0]
)");
}

// A row of 32 terms, which this many threads add up.
std::string SumOfRows(int threads) {
  return absl::StrCat(R"(workload rows
input X: f32[6, 32]
output M[i: 6] = sum(k: 32) X[i, k]
trace 1
b0 = block("M")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, )",
                      threads, R"()
reorder(l3, l2)
bind(l0, "blockIdx.x")
bind(l3, "threadIdx.x")
)");
}

// Two sub-groups of 4 threads. Shared memory has one value of each.
TEST(GpuLowerTest, SubGroupsExchangeValuesWithoutMemory) {
  const GpuTrace lowered = LowerTrace(SumOfRows(8), 4);
  ExpectRight(lowered);
  EXPECT_EQ(lowered.program->ToText(), R"(buffer X: f32[6, 32] argument
buffer M: f32[6] argument
buffer M_rf: f32[1, 1] stack
buffer M_rf_other: f32[1, 1] stack
buffer M_rf_threads: f32[1, 2] shared
kernel rows_M
  blockIdx.x i in 6
    threadIdx.x tx in 8
      M_rf[0] = 0.0
      for k_0 in 4
        M_rf[0] = sum X[32*i + 8*k_0 + tx]
      M_rf_other[0] = lane^2 M_rf[0]
      M_rf[0] = sum M_rf_other[0]
      M_rf_other[0] = lane^1 M_rf[0]
      M_rf[0] = sum M_rf_other[0]
      if 0 <= tx % 4 < 1
        M_rf_threads[tx / 4] = M_rf[0]
      barrier
      M_rf[0] = M_rf_threads[tx % 2]
      M_rf_other[0] = lane^1 M_rf[0]
      M_rf[0] = sum M_rf_other[0]
      if 0 <= tx < 1
        M[i] = M_rf[0]
)");
}

// Threads that lie within a sub-group need neither memory nor barriers; 3 values of sub-groups, or
// more than a sub-group has threads, are combined in shared memory.
TEST(GpuLowerTest, SharedMemoryIsOnlyForWhatASubGroupCannotDo) {
  const auto text = [](int threads, int width) {
    const GpuTrace lowered = LowerTrace(SumOfRows(threads), width);
    ExpectRight(lowered);
    return lowered.program.ok() ? lowered.program->ToText() : "";
  };
  EXPECT_THAT(text(8, 8), AllOf(HasSubstr("lane^4"), Not(HasSubstr("barrier"))));
  EXPECT_THAT(text(2, 8), AllOf(HasSubstr("lane^1"), Not(HasSubstr("lane^2"))));
  EXPECT_THAT(text(24, 8), AllOf(HasSubstr("lane^4"), HasSubstr("M_rf_threads[tx + 2]")));
  EXPECT_THAT(text(16, 2), AllOf(HasSubstr("lane^1"), HasSubstr("M_rf_threads[tx + 4]")));
  EXPECT_THAT(text(12, 8), Not(HasSubstr("lane^")));
}

// Threads of a sub-group that do not run a nest cannot take part in its shuffles.
TEST(GpuLowerTest, NestsOfSomeThreadsUseSharedMemory) {
  const auto rows = [](absl::string_view workload, int rows_of_block) {
    const GpuTrace lowered =
        LowerTrace(absl::StrCat(workload, "l2, l3 = split(l0, 0, ", rows_of_block,
                                ")\nreorder(l2, l3, l1)\nbind(l2, \"blockIdx.x\")\n"
                                "bind(l3, \"threadIdx.y\")\nbind(l1, \"threadIdx.x\")\n"),
                   8);
    ExpectRight(lowered);
    return lowered.program.ok() ? lowered.program->ToText() : "";
  };
  const std::string sum =
      "workload rows\ninput X: f32[6, 4]\noutput M[i: 6] = sum(k: 4) X[i, k]\ntrace 1\n"
      "b0 = block(\"M\")\nl0, l1 = loops(b0)\n";
  EXPECT_THAT(rows(sum, 2), HasSubstr("lane^2"));
  EXPECT_THAT(rows(sum, 4), Not(HasSubstr("lane^")));  // the last block has 2 rows
  // Only the second nest of the kernel has the axis y.
  const GpuTrace other = LowerTrace(R"(workload rows
input X: f32[4, 8]
M[i: 4] = sum(k: 8) X[i, k]
output Y[i: 4, j: 8] = X[i, j] - M[i]
trace 1
b0 = block("M")
b1 = block("Y")
y0, y1 = loops(b1)
y2, y3 = split(y1, 2, 4)
bind(y0, "blockIdx.x")
bind(y2, "threadIdx.y")
bind(y3, "threadIdx.x")
compute_at(b0, y0)
m0, m1, m2 = loops(b0)
m3, m4 = split(m2, 2, 4)
reorder(m4, m3)
bind(m4, "threadIdx.x")
)",
                                    8);
  ExpectRight(other);
  EXPECT_THAT(other.program->ToText(), Not(HasSubstr("lane^")));
}

// Two groups of 5 threads (not a power of two), each with three sums at a time. The loop over tiles
// in shared memory is around the threads, which combine after it.
TEST(GpuLowerTest, ThreadsReduceTilesOfAContraction) {
  const GpuTrace lowered = LowerTrace(R"(workload dense
input A: f32[4, 40]
input B: f32[40, 6]
output C[i: 4, j: 6] = sum(k: 40) A[i, k] * B[k, j]
trace 1
b0 = block("C")
li, lj, lk = loops(b0)
i0, i1 = split(li, 0, 2)
j0, j1 = split(lj, 0, 3)
k0, k1, k2 = split(lk, 0, 2, 5)
reorder(i0, j0, k0, i1, k2, j1, k1)
bind(i0, "blockIdx.y")
bind(j0, "blockIdx.x")
bind(i1, "threadIdx.y")
bind(k2, "threadIdx.x")
b2 = cache_read(b0, "A", "shared")
compute_at(b2, k0)
q0, q1, q2, a0, a1 = loops(b2)
as = fuse(a0, a1)
as0, as1, as2 = split(as, 0, 2, 5)
reorder(as1, as2, as0)
bind(as1, "threadIdx.y")
bind(as2, "threadIdx.x")
)");
  ExpectRight(lowered);
  EXPECT_THAT(lowered.program->ToText(), HasSubstr(R"(          for j_1 in 3
            C_rf_threads[5*j_1 + 15*ty + tx] = C_rf[j_1]
          barrier
          if 0 <= tx < 1
            for j_1 in 3
              C_rf_threads[5*j_1 + 15*ty + tx] = sum C_rf_threads[5*j_1 + 15*ty + tx + 4]
          barrier
)"));
}

// Two sums, one after the other: their partial results are never in use at the same time.
constexpr char kTwoSums[] = R"(workload scaled
input X: f32[4, 64]
M[i: 4] = max(k: 64) X[i, k]
S[i: 4] = sum(k: 64) X[i, k] - M[i]
output Y[i: 4, j: 64] = X[i, j] * S[i]
trace 1
b0 = block("M")
b1 = block("S")
b2 = block("Y")
y0, y1 = loops(b2)
y2, y3 = split(y1, 0, 32)
bind(y0, "blockIdx.x")
bind(y3, "threadIdx.x")
compute_at(b1, y0)
s0, s1, s2 = loops(b1)
s3, s4 = split(s2, 0, 32)
reorder(s4, s3)
bind(s4, "threadIdx.x")
compute_at(b0, y0)
m0, m1, m2 = loops(b0)
m3, m4 = split(m2, 0, 32)
reorder(m4, m3)
bind(m4, "threadIdx.x")
)";

TEST(GpuLowerTest, SharedBuffersThatABarrierSeparatesShareMemory) {
  const GpuTrace lowered = LowerTrace(kTwoSums);
  ExpectRight(lowered);
  // 32 partial results of M or S, and M or S itself, which has 64 bytes.
  EXPECT_EQ(lowered.program->kernels[0].shared_bytes, 32 * 4 + 64);
}

TEST(GpuLowerTest, MemoryThatIsStillInUseIsNotOverwritten) {
  GpuTrace lowered = LowerTrace(kTwoSums);
  ASSERT_THAT(lowered.program, IsOk());
  LoweredProgram& program = *lowered.program;
  const std::vector<ir::Scalars> inputs = {ir::Scalars(4 * 64, ir::Scalar(1.0))};
  const auto storage_of = [&](absl::string_view name) -> Storage& {
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      if (program.buffers[b].name == name) return program.storage[b];
    }
    ADD_FAILURE() << "no buffer " << name;
    return program.storage[0];
  };
  // The phase that reads M publishes the partial results of S.
  storage_of("M").offset_bytes = storage_of("S_rf_threads").offset_bytes + 64;
  const absl::Status status = Interpret(program, *lowered.workload, inputs).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("S_rf_threads is written where M was used by another thread, with no "
                              "barrier in between\n"),
                    HasSubstr("\nS_rf_threads[tx] = S_rf[0]\nand\nS_rf[0] = sum ")));
}

// The largest element and where it is, first of equal ones.
TEST(GpuLowerTest, ThreadsReduceTuples) {
  const std::string trace = R"(workload best
input X: f32[3, 64]
output (V, I)[i: 3] = argmax(k: 64) (X[i, k], index(k))
trace 1
b0 = block("V")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 16)
reorder(l3, l2)
bind(l0, "blockIdx.x")
bind(l3, "threadIdx.x")
)";
  ExpectRight(LowerTrace(trace));
  const GpuTrace lowered = LowerTrace(trace, 8);
  ExpectRight(lowered);
  EXPECT_THAT(lowered.program->ToText(),
              AllOf(HasSubstr("buffer V_rf: f32[1, 1] stack\n"),
                    HasSubstr("V_rf_other, I_rf_other[0] = lane^4 V_rf[0], I_rf[0]\n")));
}

// The tail of a tile is a branch of some threads, and no barrier is inside.
TEST(GpuLowerTest, TailsAreBranchesBetweenBarriers) {
  const GpuTrace lowered = LowerTrace(R"(workload shift
input X: f32[50]
S[i: 50] = X[i] * 2
output Y[i: 49] = S[i] + S[i + 1]
trace 1
b0 = block("S")
b1 = block("Y")
l0 = loops(b1)
l1, l2 = split(l0, 0, 8)
bind(l1, "blockIdx.x")
bind(l2, "threadIdx.x")
set_scope(b0, "shared")
compute_at(b0, l1)
s0, s1 = loops(b0)
s2, s3 = split(s1, 0, 8)
bind(s3, "threadIdx.x")
)");
  ExpectRight(lowered);
  EXPECT_THAT(lowered.program->ToText(), HasSubstr("barrier"));
}

// What a block of threads needs while it packs constants is its own, and not in global memory.
TEST(GpuLowerTest, BlocksThatPackConstantsShareNoIntermediateOnes) {
  const GpuTrace lowered = LowerTrace(R"(workload matmul
input A: f32[4, 8]
input W: f32[8, 16] constant
output C[i: 4, j: 16] = sum(k: 8) A[i, k] * W[k, j]
trace 1
b0 = block("C")
b1 = cache_read(b0, "W", "global")
b2 = cache_read(b1, "W", "global")
w0, w1 = loops(b1)
compute_at(b2, w0)
bind(w0, "blockIdx.x")
bind(w1, "threadIdx.x")
c0, c1, c2 = loops(b0)
bind(c0, "blockIdx.x")
bind(c1, "threadIdx.x")
)");
  ExpectRight(lowered);
  ASSERT_EQ(lowered.program->kernels.size(), 2u) << lowered.program->ToText();
  EXPECT_THAT(lowered.program->ToText(), HasSubstr("buffer W_copy1: f32[1, 16] shared"));
}

// (x + 1) % 4 and x % 4 of one thread differ, but those of two threads may be equal.
TEST(GpuLowerTest, AnOffsetInAModuloOfTheThreadNeedsABarrier) {
  ExpectRight(LowerTrace(R"(workload w
input A: f32[8, 4]
B[i: 4, j: 8] = A[j, i] + 1.0
output C[u: 32] = B[(u + 1) % 4, u / 4] * 2.0
trace 1
b1 = block("C")
l0 = loops(b1)
l1 = add_unit_loop(l0)
b0 = block("B")
compute_at(b0, l1)
q0, q1, q2 = loops(b0)
reorder(q2, q1)
q3 = fuse(q2, q1)
bind(q3, "threadIdx.x")
bind(l0, "threadIdx.x")
)"));
}

TEST(GpuLowerTest, RefusesWhatNoDeviceCanLaunch) {
  const auto message = [](absl::string_view trace) {
    return std::string(LowerTrace(absl::StrCat(R"(workload copy
input X: f32[64, 1024]
output Y[i: 64, j: 1024] = X[i, j]
trace 1
b0 = block("Y")
l0, l1 = loops(b0)
)",
                                               trace))
                           .program.status()
                           .message());
  };
  EXPECT_THAT(message("bind(l1, \"threadIdx.x\")\n"),
              HasSubstr("a block of copy_Y has 1024 threads; at most 256"));
  EXPECT_THAT(message("bind(l1, \"blockIdx.x\")\n"),
              HasSubstr("a loop over blocks is inside a loop that is not over blocks"));
  EXPECT_THAT(message("b1 = cache_read(b0, \"X\", \"shared\")\nl2, l3 = split(l0, 0, 32)\n"
                      "bind(l2, \"blockIdx.x\")\nbind(l3, \"threadIdx.x\")\n"
                      "compute_at(b1, l2)\n"),
              HasSubstr("needs 131072 bytes of shared memory; at most 32768"));
}

}  // namespace
}  // namespace hone::lower
