// One workload of each family used in published measurements, at its real size: the candidates of
// the rules can be replayed.

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

struct Case {
  const char* text;
  double tolerance = 0;
};

const Case kFamilies[] = {
    {"conv1d n=1 l=256 ci=64 co=128 k=3 s=2 p=1"},
    {"conv2d n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3"},
    {"conv2d n=1 h=56 w=56 ci=64 co=64 k=3 s=1 p=1", 1e-3},
    {"conv2d_bn_relu n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1", 1e-3},
    {"conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1"},
    {"conv2d n=1 h=14 w=14 ci=1024 co=512 k=1 s=1 p=0"},
    {"conv2d n=4 h=14 w=14 ci=1024 co=2048 k=1 s=2 p=0"},
    {"conv3d n=1 d=16 h=56 w=56 ci=64 co=64 k=1 s=1 p=0"},
    {"conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=2 dil=2"},
    {"conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1 groups=4"},
    {"batch_matmul b=1 m=512 n=32 k=512"},
    {"depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1"},
    {"depthwise_conv2d n=1 h=7 w=7 c=1024 k=3 s=1 p=1"},
    {"conv2d_transpose n=1 h=4 w=4 ci=512 co=256 k=4 s=2 p=1"},
    {"conv2d_transpose n=1 h=32 w=32 ci=64 co=3 k=4 s=2 p=1"},
    {"capsule_conv2d n=1 h=16 w=16 ci=32 co=32 k=3 s=2 p=1"},
    {"norm b=1 m=256 n=256"},
    {"softmax m=256 n=256"},
    {"conv2d_bn_relu n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1"},
    {"transpose_batch_matmul b=1 s=128 h=12 d=64"},
    {"winograd_conv2d n=1 h=14 w=14 ci=128 co=128"},
    {"batch_matmul b=1 m=128 n=128 k=128"},
    {"matmul m=4096 n=1 k=1024"},
    {"matmul m=1 n=64 k=16384"},
    {"max_pool2d n=1 h=112 w=112 c=64 k=3 s=2 p=1"},
    {"global_avg_pool n=1 h=7 w=7 c=2048"},
    {"layer_norm m=128 n=768"},
    {"argmax m=1024 n=1000"},
    {"attention b=1 h=12 s=128 d=64"},
};

class Family : public testing::TestWithParam<Case> {};

// Of the candidates drawn from all spaces, at most 2 % may be refused, and at most 2 % may be
// programs that other decisions have already produced. tests/bench/results/design_spaces.md
// contains the printed table.
TEST_P(Family, CandidatesReplayAndDiffer) {
  constexpr int kCandidates = 400;
  const auto workload = MakeWorkload(GetParam().text);
  const auto spaces = GenerateDesignSpaces(workload, target::TargetByName("x86-avx512").value(),
                                           GetParam().tolerance)
                          .value();
  std::vector<std::set<std::vector<int64_t>>> drawn_before(spaces.size());
  std::set<Digest> programs;
  int tried = 0, invalid = 0, repeated = 0;
  absl::Status last;
  for (uint64_t i = 0; i < kCandidates; ++i) {
    const size_t at = i % spaces.size();
    const DesignSpace& space = *spaces[at];
    Rng rng(17, i);
    const auto drawn = space.Sample(rng);
    ASSERT_THAT(drawn, IsOk()) << space.name();
    if (!drawn_before[at].insert(*drawn).second) continue;  // already drawn from this small space
    const auto program = space.Replay(*drawn);
    ++tried;
    if (program.ok()) {
      repeated += !programs.insert(program->StructuralDigest()).second;
    } else {
      ++invalid;
      last = program.status();
    }
  }
  EXPECT_LE(invalid * 50, tried) << last;
  EXPECT_LE(repeated * 50, tried);
  std::printf("| %s%s | %d | %d | %.1f %% | %.1f %% |\n", GetParam().text,
              GetParam().tolerance > 0 ? ", tolerance 1e-3" : "", static_cast<int>(spaces.size()),
              tried, 100.0 * invalid / tried, 100.0 * repeated / tried);
}

INSTANTIATE_TEST_SUITE_P(Workloads, Family, testing::ValuesIn(kFamilies));

}  // namespace
}  // namespace hone::space
