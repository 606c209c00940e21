// Takes each barrier out of kernels of several kinds: the interpreter finds every one that is
// missing. The interpreter also reports faulty shuffles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/status.h"
#include "tests/worker/compile/lower/gpu_trace.h"

namespace hone::lower {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Kernel {
  const char* name;
  std::string trace;
  int barriers;
  int shuffle_width = 1;
};

std::vector<Kernel> Kernels() {
  const std::string matmul = kTiledMatmul;
  const std::string sum = R"(workload sum
input X: f32[3, 30]
output M[i: 3] = sum(k: 30) X[i, k]
trace 1
b0 = block("M")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 8)
reorder(l3, l2)
bind(l0, "blockIdx.x")
bind(l3, "threadIdx.x")
)";
  return {
      {"tiles in shared memory", matmul, 2},
      {"double buffers", matmul + "double_buffer(b2)\ndouble_buffer(b3)\n", 1},
      {"one double buffer", matmul + "double_buffer(b2)\n", 2},
      {"partial maxima that one thread combines", R"(workload rows
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
)",
       2},
      {"a tree of sums", sum, 3},
      {"sums of sub-groups", sum, 1, 4},
      {"sums of more sub-groups than one has threads", sum, 2, 2},
      {"a tree of rows, each with 7 threads", R"(workload rows
input X: f32[8, 42]
output M[i: 8] = sum(k: 42) X[i, k]
trace 1
b0 = block("M")
l0, l1 = loops(b0)
l2, l3 = split(l0, 0, 4)
l4, l5 = split(l1, 0, 7)
reorder(l2, l3, l5, l4)
bind(l2, "blockIdx.x")
bind(l3, "threadIdx.y")
bind(l5, "threadIdx.x")
)",
       3},
      {"a tree of tuples", R"(workload best
input X: f32[3, 64]
output (V, I)[i: 3] = argmax(k: 64) (X[i, k], index(k))
trace 1
b0 = block("V")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 16)
reorder(l3, l2)
bind(l0, "blockIdx.x")
bind(l3, "threadIdx.x")
)",
       4},
      {"neighbours", R"(workload shift
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
reorder(s3, s2)
bind(s3, "threadIdx.x")
)",
       1},
      {"a transposed tile", R"(workload transposed
input X: f32[16, 24]
output Y[i: 24, j: 16] = X[j, i]
trace 1
b0 = block("Y")
l0, l1 = loops(b0)
l2, l3 = split(l0, 0, 8)
l4, l5 = split(l1, 0, 8)
reorder(l2, l4, l3, l5)
b1 = cache_read(b0, "X", "shared")
storage_align(b1, 0, 8, 1)
compute_at(b1, l4)
bind(l2, "blockIdx.y")
bind(l4, "blockIdx.x")
bind(l3, "threadIdx.y")
bind(l5, "threadIdx.x")
q0, q1, q2, q3 = loops(b1)
bind(q2, "threadIdx.y")
bind(q3, "threadIdx.x")
)",
       1},
      {"stages at a row", R"(workload scaled
input X: f32[4, 32]
M[i: 4] = max(k: 32) X[i, k]
S[i: 4] = sum(k: 32) X[i, k] - M[i]
output Y[i: 4, j: 32] = X[i, j] * S[i]
trace 1
b0 = block("M")
b1 = block("S")
b2 = block("Y")
y0, y1 = loops(b2)
y2, y3 = split(y1, 0, 8)
bind(y0, "blockIdx.x")
bind(y3, "threadIdx.x")
compute_at(b1, y0)
s0, s1, s2 = loops(b1)
s3, s4 = split(s2, 0, 8)
reorder(s4, s3)
bind(s4, "threadIdx.x")
compute_at(b0, y0)
m0, m1, m2 = loops(b0)
m3, m4 = split(m2, 0, 8)
reorder(m4, m3)
bind(m4, "threadIdx.x")
)",
       8},
  };
}

TEST(PlantedRaceTest, EveryBarrierThatIsTakenOutIsMissed) {
  const std::vector<Kernel> kernels = Kernels();
  EXPECT_GE(kernels.size(), 10u);
  for (const Kernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name);
    GpuTrace lowered = LowerTrace(kernel.trace, kernel.shuffle_width);
    ASSERT_THAT(lowered.program, IsOk());
    std::vector<ir::Scalars> inputs;
    for (const ir::BufferId id : lowered.workload->Inputs()) {
      inputs.emplace_back(ir::ElementsOf(lowered.workload->tensors[id].shape), ir::Scalar(1.0));
    }
    const std::string text = lowered.program->ToText();
    ASSERT_THAT(Interpret(*lowered.program, *lowered.workload, inputs), IsOk()) << text;
    int barriers = 0;
    for (Stmt& stmt : lowered.program->stmts) {
      if (stmt.kind != Stmt::Kind::kBarrier) continue;
      ++barriers;
      stmt.kind = Stmt::Kind::kSeq;
      for (const ThreadOrder order :
           {ThreadOrder::kForward, ThreadOrder::kBackward, ThreadOrder::kShuffled}) {
        const absl::Status status =
            Interpret(*lowered.program, *lowered.workload, inputs, int64_t{1} << 32, order)
                .status();
        EXPECT_THAT(std::string(status.message()),
                    AnyOf(HasSubstr("by another thread, with no barrier in between\n"),
                          HasSubstr("is read before it is written\n")))
            << "barrier " << barriers << " of\n"
            << text;
      }
      stmt.kind = Stmt::Kind::kBarrier;
    }
    EXPECT_EQ(barriers, kernel.barriers) << text;
  }
}

class PlantedShuffleTest : public testing::Test {
 protected:
  PlantedShuffleTest() : lowered_(LowerTrace(kShuffledSum, 4)) {
    for (int e = 0; e < 16; ++e) inputs_[0].emplace_back(static_cast<double>(1 << e));
  }
  Stmt& Shuffle() { return *std::ranges::find(lowered_.program->stmts, 2, &Stmt::lane_xor); }
  // The sum, or what the interpreter reports.
  std::string Result() const {
    const auto outputs = Interpret(*lowered_.program, *lowered_.workload, inputs_);
    return outputs.ok() ? absl::StrCat((*outputs)[0][0].real())
                        : std::string(outputs.status().message());
  }
  std::string Verified() const { return std::string(Verify(*lowered_.program).message()); }
  ir::Index Thread() const { return ir::Index::Of(ThreadLoop().var); }
  const Stmt& ThreadLoop() const {
    return *std::ranges::find(lowered_.program->stmts, ir::ThreadAxis::kThreadX, &Stmt::axis);
  }

  static constexpr char kShuffledSum[] = R"(workload sum
input X: f32[16]
output M[i: 1] = sum(k: 16) X[k]
trace 1
b0 = block("M")
l0, l1 = loops(b0)
l2, l3 = split(l1, 0, 8)
reorder(l3, l2)
bind(l3, "threadIdx.x")
)";
  GpuTrace lowered_;
  std::vector<ir::Scalars> inputs_ = std::vector<ir::Scalars>(1);
};

TEST_F(PlantedShuffleTest, IsRightWithoutAFault) {
  EXPECT_EQ(Verified(), "");
  EXPECT_EQ(Result(), "65535");
}

TEST_F(PlantedShuffleTest, AWrongDistanceGivesAWrongSum) {
  Shuffle().lane_xor = 1;
  EXPECT_EQ(Verified(), "");
  EXPECT_NE(Result(), "65535");
}

TEST_F(PlantedShuffleTest, ADistanceBeyondTheSubGroupIsFound) {
  Shuffle().lane_xor = 4;
  EXPECT_THAT(Verified(), HasSubstr("a shuffle reaches threads of another sub-group or row"));
  EXPECT_THAT(Result(), HasSubstr("reads a value of thread 4, which is not in its sub-group"));
}

TEST_F(PlantedShuffleTest, AShuffleOfSomeThreadsIsFound) {
  Shuffle().conditions.push_back({Thread(), 4});
  EXPECT_THAT(Verified(), HasSubstr("only some threads of a block reach a barrier or shuffle"));
  EXPECT_THAT(Result(), HasSubstr("only some threads of a block reach a barrier or shuffle"));
}

TEST_F(PlantedShuffleTest, AShuffleInABranchOfSomeThreadsIsFound) {
  LoweredProgram& program = *lowered_.program;
  Stmt shuffle = Shuffle();
  const StmtId inner = program.Add(shuffle);
  Shuffle() = {.kind = Stmt::Kind::kIf, .children = {inner}, .condition = {Thread(), 4}};
  EXPECT_THAT(Verified(), HasSubstr("only some threads of a block reach a barrier or shuffle"));
  EXPECT_THAT(Result(), HasSubstr("only some threads of a block reach a barrier or shuffle"));
}

TEST_F(PlantedShuffleTest, AShuffleThatComputesIsFound) {
  Shuffle().reducer = ir::Reducer::kSum;
  EXPECT_THAT(Verified(), HasSubstr("a shuffle does not copy an element"));
}

}  // namespace
}  // namespace hone::lower
