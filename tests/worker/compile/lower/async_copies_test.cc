// Copies that run ahead are asynchronous on GPUs that have such copies, and the interpreter notices
// each way to wait too little.
#include "worker/compile/lower/gpu/async_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/verifier.h"
#include "tests/status.h"
#include "worker/compile/lower/lower.h"

namespace hone::lower {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The threads of a block share rows of A through shared memory.
constexpr char kRows[] = R"(workload rows
input A: f32[8, 48]
output C[i: 8, j: 8] = sum(k: 48) A[i, k] * f32(index(j))
trace 1
b0 = block("C")
li, lj, lk = loops(b0)
k0, k1 = split(lk, 0, 8)
reorder(li, k0, lj, k1)
bind(li, "blockIdx.x")
bind(lj, "threadIdx.x")
b1 = cache_read(b0, "A", "shared")
compute_at(b1, k0)
q0, q1, a0, a1 = loops(b1)
bind(a1, "threadIdx.x")
)";

target::Target Gpu(absl::string_view architecture) {
  target::Target target = *target::TargetByName("generic/opencl");
  target.kind = target::Kind::kCuda;
  target.cpu = std::string(architecture);
  return target;
}

class AsyncCopiesTest : public testing::Test {
 protected:
  void Make(int stages, absl::string_view architecture = "sm_80") {
    HONE_ASSERT_OK_AND_ASSIGN(auto file, schedule::ParseTraceFile(absl::StrCat(
                                             kRows, "software_pipeline(k0, ", stages, ")\n")));
    workload_ = std::make_shared<const ir::Workload>(file.workload);
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto program, schedule::Replay(workload_, file.parsed.trace, file.parsed.decisions));
    HONE_ASSERT_OK_AND_ASSIGN(lowered_, Lower(program, Gpu(architecture)));
    ASSERT_THAT(Verify(lowered_), IsOk());
  }
  // "" or what the interpreter says.
  std::string Problem() const {
    ir::Scalars input;
    for (int e = 0; e < 8 * 48; ++e) input.push_back(static_cast<double>(e % 7 - 3));
    const auto expected = ir::Interpret(*workload_, std::vector<ir::Scalars>{input});
    EXPECT_THAT(expected, IsOk());
    for (const ThreadOrder order :
         {ThreadOrder::kForward, ThreadOrder::kBackward, ThreadOrder::kShuffled}) {
      const auto actual =
          Interpret(lowered_, *workload_, std::vector<ir::Scalars>{input}, int64_t{1} << 32, order);
      if (!actual.ok()) return std::string(actual.status().message());
      if (*actual != *expected) return "the results differ";
    }
    return "";
  }
  Stmt* Find(Stmt::Kind kind) {
    const auto found = std::ranges::find(lowered_.stmts, kind, &Stmt::kind);
    return found == lowered_.stmts.end() ? nullptr : &*found;
  }

  std::shared_ptr<const ir::Workload> workload_;
  LoweredProgram lowered_;
};

TEST_F(AsyncCopiesTest, EachIterationWaitsForItsGroup) {
  for (const int stages : {2, 3, 4}) {
    Make(stages);
    const std::string text = lowered_.ToText();
    EXPECT_THAT(text, HasSubstr(absl::StrCat("      wait for copies, ", stages - 2,
                                             " pending\n        barrier\n")));
    EXPECT_THAT(text, HasSubstr("async A_copy["));
    size_t commits = 0;
    for (size_t at = text.find("commit"); at != std::string::npos;
         at = text.find("commit", at + 1)) {
      ++commits;
    }
    EXPECT_EQ(commits, stages) << text;  // one in the loop
    EXPECT_EQ(Problem(), "") << text;
  }
}

TEST_F(AsyncCopiesTest, OlderGpusCopyAtOnce) {
  Make(3, "sm_75");
  EXPECT_THAT(lowered_.ToText(), Not(HasSubstr("async")));
  EXPECT_THAT(lowered_.ToText(), Not(HasSubstr("copies")));
  EXPECT_EQ(Problem(), "");
}

TEST_F(AsyncCopiesTest, AMissingWaitIsNoticed) {
  Make(3);
  Find(Stmt::Kind::kWaitForCopies)->kind = Stmt::Kind::kSeq;
  EXPECT_THAT(Problem(), HasSubstr("is read before the wait for its asynchronous copy"));
}

TEST_F(AsyncCopiesTest, AWaitForTooFewGroupsIsNoticed) {
  Make(3);
  ++Find(Stmt::Kind::kWaitForCopies)->pending;
  EXPECT_THAT(Problem(), HasSubstr("is read before the wait for its asynchronous copy"));
}

TEST_F(AsyncCopiesTest, AMissingCommitIsNoticed) {
  Make(2);
  Find(Stmt::Kind::kCommitCopies)->kind = Stmt::Kind::kSeq;
  EXPECT_THAT(Problem(), HasSubstr("asynchronous copy"));
}

TEST_F(AsyncCopiesTest, ABarrierMustFollowTheWait) {
  Make(3);
  Find(Stmt::Kind::kBarrier)->kind = Stmt::Kind::kSeq;
  EXPECT_THAT(Problem(), HasSubstr("another thread, with no barrier in between"));
}

TEST_F(AsyncCopiesTest, VerifierAcceptsCopiesToSharedMemoryOnly) {
  Make(3);
  for (Stmt& stmt : lowered_.stmts) {
    if (stmt.kind == Stmt::Kind::kStore) stmt.is_async = true;
  }
  EXPECT_THAT(std::string(Verify(lowered_).message()),
              HasSubstr("an asynchronous store is not a copy of an input to shared memory"));
}

}  // namespace
}  // namespace hone::lower
