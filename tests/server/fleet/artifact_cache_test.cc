#include "server/fleet/artifact_cache.h"

#include "common/base/digest.h"
#include "gtest/gtest.h"

namespace hone::fleet {
namespace {

std::string DigestText(const std::string& bytes) { return DigestOf(bytes).ToHex(); }

TEST(ArtifactCacheTest, AcceptsBytesOnlyUnderTheirDigest) {
  ArtifactCache cache;
  EXPECT_TRUE(cache.Put(DigestText("kernel"), "kernel").ok());
  EXPECT_EQ(*cache.Get(DigestText("kernel")), "kernel");
  EXPECT_EQ(cache.Put(DigestText("kernel"), "other").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.Put("../../etc/passwd", "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.Get(DigestText("other")), nullptr);
}

TEST(ArtifactCacheTest, DropsTheLeastRecentlyUsed) {
  ArtifactCache cache(10);
  const std::string a = "aaaa", b = "bbbb", c = "cccc";
  ASSERT_TRUE(cache.Put(DigestText(a), a).ok());
  ASSERT_TRUE(cache.Put(DigestText(b), b).ok());
  ASSERT_NE(cache.Get(DigestText(a)), nullptr);
  ASSERT_TRUE(cache.Put(DigestText(c), c).ok());
  EXPECT_TRUE(cache.Has(DigestText(a)));
  EXPECT_FALSE(cache.Has(DigestText(b)));
  EXPECT_TRUE(cache.Has(DigestText(c)));
}

TEST(ArtifactCacheTest, LimitsTheNumberOfArtifacts) {
  ArtifactCache cache(1 << 20, /*max_artifacts=*/3);
  for (int i = 0; i < 100; ++i) {
    const std::string tiny = std::to_string(i);
    ASSERT_TRUE(cache.Put(DigestText(tiny), tiny).ok());
  }
  int kept = 0;
  for (int i = 0; i < 100; ++i) kept += cache.Has(DigestText(std::to_string(i))) ? 1 : 0;
  EXPECT_EQ(kept, 3);
  EXPECT_TRUE(cache.Has(DigestText("99")));
}

}  // namespace
}  // namespace hone::fleet
