#include "common/ir/roofline.h"

#include "common/ir/workload_parser.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

// Adds two tensors of 1 MiB: 262144 operations and 3 MiB.
Roofline RooflineOfAdd(double gflops) {
  const auto workload = ParseWorkload(
      "workload add\ninput A: f32[512, 512]\ninput B: f32[512, 512]\n"
      "output C[i: 512, j: 512] = A[i, j] + B[i, j]\n");
  EXPECT_THAT(workload, IsOk());
  return RooflineOf(*workload, {.gflops = gflops, .peak_gflops = 100, .read_gbps = 12});
}

TEST(RooflineTest, MemoryIsTheLimitOfDataInMemory) {
  const Roofline roofline = RooflineOfAdd(/*gflops=*/0.9);
  EXPECT_STREQ(BoundOf(roofline), "memory");
  EXPECT_DOUBLE_EQ(roofline.gflops, 1);
}

TEST(RooflineTest, TheLimitOfDataInCachesIsUnknown) {
  const Roofline roofline = RooflineOfAdd(/*gflops=*/7.8);
  EXPECT_STREQ(BoundOf(roofline), "cache");
  EXPECT_EQ(roofline.gflops, 0);
}

}  // namespace
}  // namespace hone::ir
