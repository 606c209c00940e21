// Design spaces of short floats. Sums accumulate in f32, and every sampled candidate can be
// lowered.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/base/rng.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "worker/compile/lower/lower.h"

namespace hone::space {
namespace {

constexpr const char* kWorkloads[] = {
    "matmul m=34 n=40 k=300 dtype=bf16",
    "matmul m=1 n=64 k=4096 dtype=f16",
    "dense_relu m=19 n=70 k=129 dtype=f16",
    "batch_matmul b=3 m=10 n=37 k=70 dtype=bf16",
    "conv2d n=1 h=9 w=9 ci=20 co=33 k=3 s=2 p=1 dtype=bf16",
    "depthwise_conv2d n=1 h=9 w=9 c=40 k=3 s=1 p=1 dtype=f16",
    "softmax m=9 n=100 dtype=bf16",
    "reduce_sum m=31 n=200 dtype=f16",
    "matmul m=34 n=40 k=300 dtype=f8e4m3",
    "matmul m=34 n=40 k=300 dtype=f8e5m2 acc=f32",
    "dense_relu m=19 n=70 k=129 dtype=f8e5m2",
};

class ShortFormatsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ShortFormatsTest, EverythingDrawnIsLowered) {
  const auto workload = MakeWorkload(GetParam());
  const target::Target target = target::TargetByName("x86-avx2").value();
  HONE_ASSERT_OK_AND_ASSIGN(const auto spaces, GenerateDesignSpaces(workload, target));
  Rng rng(5);
  for (const auto& space : spaces) {
    for (int draw = 0; draw < 10; ++draw) {
      HONE_ASSERT_OK_AND_ASSIGN(const auto decisions, space->Sample(rng));
      const auto program = space->Replay(decisions);
      if (!program.ok()) continue;  // rules_test.cc counts these
      const auto lowered = lower::Lower(*program, target);
      EXPECT_THAT(lowered, IsOk()) << space->name();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, ShortFormatsTest, ::testing::ValuesIn(kWorkloads));

double DefaultSum(const std::string& text, const ir::Values& input) {
  const target::Target target = target::DetectHost();
  const auto space = DefaultCandidate(MakeWorkload(text), target);
  EXPECT_THAT(space, IsOk());
  const auto program = (*space)->Replay({});
  EXPECT_THAT(program, IsOk());
  const auto compiled = codegen::CompiledProgram::Load(*program, target);
  EXPECT_THAT(compiled, IsOk());
  const auto outputs = (*compiled)->Run(std::vector<ir::Values>{input});
  EXPECT_THAT(outputs, IsOk());
  return (*outputs)[0][0];
}

// Added up one by one, a million times 0.1 is 100958 in f32.
TEST(DefaultCandidateTest, LongSumsAreAddedUpInParts) {
  const double tenth = 0.1f;
  const double exact = 1e6 * tenth;
  EXPECT_NEAR(DefaultSum("workload w\ninput A: f32[1000000]\n"
                         "output S[u: 1] = sum(k: 1000000) A[k]\n",
                         ir::Values(1000000, tenth)),
              exact, 1e-4 * exact);
  EXPECT_NEAR(DefaultSum("workload w\ninput A: f32[999, 1001]\n"
                         "output S[u: 1] = sum(r: 999, k: 1001) A[r, k]\n",
                         ir::Values(999 * 1001, tenth)),
              999 * 1001 * tenth, 1e-4 * exact);
  EXPECT_EQ(DefaultSum("workload w\ninput A: bf16[65536]\n"
                       "output S[u: 1] = sum(k: 65536) A[k]\n",
                       ir::Values(65536, 1)),
            65536);
}

// Splitting into parts would need more dimensions than a buffer may have.
TEST(DefaultCandidateTest, LongSumsOfTheHighestRankAreNotCut) {
  const auto space =
      DefaultCandidate(MakeWorkload("workload w\ninput A: f32[1, 2, 1, 2, 20000]\n"
                                    "output C[a: 1, b: 2, c: 1, d: 2, e: 1, f: 2, g: 1, h: 2] = "
                                    "sum(k: 20000) A[a, b, c, d, k] * A[e, f, g, h, k]\n"),
                       target::DetectHost());
  EXPECT_THAT(space, IsOk());
}

}  // namespace
}  // namespace hone::space
