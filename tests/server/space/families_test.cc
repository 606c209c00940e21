// The workloads that the field measures on, a shape of each family: the rules' candidates replay,
// at their real sizes.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/space/generate.h"
#include "tests/server/space/workloads.h"

namespace hone::space {
namespace {

const char* const kFamilies[] = {
    "conv1d n=1 l=256 ci=64 co=128 k=3 s=2 p=1",
    "conv2d n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3",
    "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
    "conv3d n=1 d=16 h=56 w=56 ci=64 co=64 k=1 s=1 p=0",
    "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=2 dil=2",
    "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1 groups=4",
    "batch_matmul b=1 m=512 n=32 k=512",
    "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1",
    "depthwise_conv2d n=1 h=7 w=7 c=1024 k=3 s=1 p=1",
    "conv2d_transpose n=1 h=4 w=4 ci=512 co=256 k=4 s=2 p=1",
    "conv2d_transpose n=1 h=32 w=32 ci=64 co=3 k=4 s=2 p=1",
    "capsule_conv2d n=1 h=16 w=16 ci=32 co=32 k=3 s=2 p=1",
    "norm b=1 m=256 n=256",
    "softmax m=256 n=256",
    "conv2d_bn_relu n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1",
    "transpose_batch_matmul b=1 s=128 h=12 d=64",
    "winograd_conv2d n=1 h=14 w=14 ci=128 co=128",
};

class Family : public testing::TestWithParam<const char*> {};

TEST_P(Family, CandidatesReplay) {
  constexpr int kCandidates = 200;
  const auto workload = MakeWorkload(GetParam());
  const auto spaces =
      GenerateDesignSpaces(workload, target::TargetByName("x86-avx512").value()).value();
  int invalid = 0;
  absl::Status last;
  for (uint64_t i = 0; i < kCandidates; ++i) {
    const DesignSpace& space = *spaces[i % spaces.size()];
    Rng rng(17, i);
    const auto drawn = space.Sample(rng);
    ASSERT_TRUE(drawn.ok()) << space.name() << ": " << drawn.status();
    const auto program = space.Replay(*drawn);
    if (program.ok()) continue;
    ++invalid;
    last = program.status();
  }
  EXPECT_LE(invalid * 50, kCandidates) << last;
  RecordProperty("invalid", invalid);
}

INSTANTIATE_TEST_SUITE_P(Workloads, Family, testing::ValuesIn(kFamilies));

}  // namespace
}  // namespace hone::space
