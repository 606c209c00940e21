// The driver of this machine's GPU, if it has one.
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cuda {
namespace {

TEST(CudaDriverTest, DescribesItsDevices) {
  const auto api = LoadedApi();
  if (!api.ok()) GTEST_SKIP() << api.status().message();
  HONE_ASSERT_OK_AND_ASSIGN(const auto devices, ListDevices(**api));
  for (const DeviceFacts& facts : devices) {
    EXPECT_FALSE(facts.name.empty());
    if (!facts.problem.empty()) continue;
    EXPECT_EQ(facts.target.kind, target::Kind::kCuda);
    EXPECT_GT(facts.target.l2_bytes, 0);
    EXPECT_EQ(facts.target.gpu.sub_group, 32);
  }
}

}  // namespace
}  // namespace hone::cuda
