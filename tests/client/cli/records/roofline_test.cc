#include "client/cli/records/roofline.h"

#include "client/cli/workload_argument.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

// Adds two tensors of 1 MiB: 262144 operations and 3 MiB.
Roofline RooflineOfAdd(double gflops) {
  const auto argument = ReadWorkloadArgument({"add", "m=512", "n=512"});
  EXPECT_THAT(argument, IsOk());
  v1::Best best;
  best.set_gflops(gflops);
  best.set_peak_gflops(100);
  best.set_read_gbps(12);
  return RooflineOf(argument->workload, best);
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
}  // namespace hone::cli
