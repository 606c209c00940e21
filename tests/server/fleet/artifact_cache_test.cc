#include "server/fleet/artifact_cache.h"

#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

std::string DigestText(const std::string& bytes) { return Sha256Of(bytes); }

TEST(ArtifactCacheTest, AcceptsBytesOnlyUnderTheirDigest) {
  ArtifactCache cache;
  EXPECT_THAT(cache.Put(DigestText("kernel"), "kernel"), IsOk());
  EXPECT_EQ(*cache.Get(DigestText("kernel")), "kernel");
  EXPECT_THAT(cache.Put(DigestText("kernel"), "other"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cache.Put("../../etc/passwd", "x"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(cache.Get(DigestText("other")), nullptr);
}

TEST(ArtifactCacheTest, DropsTheLeastRecentlyUsed) {
  ArtifactCache cache(10);
  const std::string a = "aaaa", b = "bbbb", c = "cccc";
  ASSERT_THAT(cache.Put(DigestText(a), a), IsOk());
  ASSERT_THAT(cache.Put(DigestText(b), b), IsOk());
  ASSERT_NE(cache.Get(DigestText(a)), nullptr);
  ASSERT_THAT(cache.Put(DigestText(c), c), IsOk());
  EXPECT_TRUE(cache.Has(DigestText(a)));
  EXPECT_FALSE(cache.Has(DigestText(b)));
  EXPECT_TRUE(cache.Has(DigestText(c)));
}

TEST(ArtifactCacheTest, LimitsTheNumberOfArtifacts) {
  ArtifactCache cache(1 << 20, /*max_artifacts=*/3);
  for (int i = 0; i < 100; ++i) {
    const std::string tiny = std::to_string(i);
    ASSERT_THAT(cache.Put(DigestText(tiny), tiny), IsOk());
  }
  int kept = 0;
  for (int i = 0; i < 100; ++i) kept += cache.Has(DigestText(std::to_string(i))) ? 1 : 0;
  EXPECT_EQ(kept, 3);
  EXPECT_TRUE(cache.Has(DigestText("99")));
}

TEST(ByteCacheTest, ReplacesAndDropsTheLeastRecentlyUsed) {
  ByteCache cache(/*max_bytes=*/35, /*max_names=*/3);
  cache.Put("1", "an older one");
  for (int i = 1; i <= 9; ++i) {
    cache.Put(std::to_string(i), "ten bytes.");
    ASSERT_NE(cache.Get("1"), nullptr) << "a used entry stays";
    EXPECT_EQ(*cache.Get("1"), "ten bytes.");
  }
  for (int i = 2; i <= 7; ++i) EXPECT_FALSE(cache.Has(std::to_string(i))) << i;
  EXPECT_TRUE(cache.Has("8"));
  EXPECT_TRUE(cache.Has("9"));
}

}  // namespace
}  // namespace hone::fleet
