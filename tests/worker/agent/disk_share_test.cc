#include "worker/agent/disk_share.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace hone::agent {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(DiskShareTest, CachesNeverFillASmallDisk) {
  EXPECT_EQ(CacheBytes(4096 * kMiB, 100000 * kMiB, 0), 4096 * kMiB);
  EXPECT_EQ(CacheBytes(4096 * kMiB, 600 * kMiB, 0), 300 * kMiB);
  // What the caches hold already does not shrink them at the next start.
  EXPECT_EQ(CacheBytes(4096 * kMiB, 300 * kMiB, 300 * kMiB), 300 * kMiB);
  EXPECT_EQ(CacheBytes(4096 * kMiB, 0, 0), kMiB) << "a full disk";
}

TEST(DiskShareTest, AsksTheDiskOfAFolderThatIsStillMissing) {
  EXPECT_GT(AvailableBytes("/tmp/not-there/nor-there"), 0);
  EXPECT_EQ(BytesIn("/tmp/not-there"), 0);
}

}  // namespace
}  // namespace hone::agent
