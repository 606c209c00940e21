#include "worker/agent/bounded_dir.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::agent {
namespace {

class BoundedDirTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() { HONE_ASSERT_OK_AND_ASSIGN(dir_, BoundedDir::Open(folder_ / "dir", 300)); }
  // A file of 100 bytes; returns its name.
  std::string Put(char letter) {
    const std::string bytes(100, letter);
    const std::string digest = Sha256Of(bytes);
    EXPECT_THAT(dir_->Put(digest, bytes), IsOk());
    return digest;
  }
  bool Exists(const std::string& digest) { return std::filesystem::exists(dir_->PathOf(digest)); }

  const TemporaryFolder folder_;
  std::unique_ptr<BoundedDir> dir_;
};

TEST_F(BoundedDirTest, TheLeastRecentlyUsedFileIsEvictedFirst) {
  const std::string a = Put('a'), b = Put('b'), c = Put('c');
  EXPECT_TRUE(dir_->Pin(a));  // used again
  dir_->Unpin(a);
  const std::string d = Put('d');
  EXPECT_TRUE(Exists(a) && Exists(c) && Exists(d));
  EXPECT_FALSE(Exists(b));
  EXPECT_FALSE(dir_->Pin(b));
}

TEST_F(BoundedDirTest, PinnedFilesStayUntilUnpinned) {
  const std::string a = Put('a');
  EXPECT_TRUE(dir_->Pin(a));
  EXPECT_TRUE(dir_->Pin(a));
  for (char letter = 'b'; letter < 'h'; ++letter) Put(letter);
  EXPECT_TRUE(Exists(a));
  dir_->Unpin(a);
  Put('x');
  EXPECT_TRUE(Exists(a));
  dir_->Unpin(a);
  Put('y');
  EXPECT_FALSE(Exists(a));
}

TEST_F(BoundedDirTest, AdoptsFilesOfOtherProcesses) {
  const std::string name = Sha256Of("by another hand");
  ASSERT_THAT(WriteFileAtomically(dir_->PathOf(name), std::string(250, 'x')), IsOk());
  dir_->Add(name);
  Put('a');
  EXPECT_FALSE(Exists(name));  // it counts towards the limit
  EXPECT_FALSE(dir_->Pin(Sha256Of("nothing")));
}

TEST_F(BoundedDirTest, AnotherProcessFindsTheFilesAndRemovesLeftovers) {
  const std::string a = Put('a');
  ASSERT_THAT(WriteFileAtomically(dir_->path() + "/.link-1234", "half"), IsOk());
  Open();
  EXPECT_TRUE(dir_->Pin(a));
  EXPECT_FALSE(std::filesystem::exists(dir_->path() + "/.link-1234"));
}

TEST_F(BoundedDirTest, AFileThatIsTooLargeStaysUntilTheNextOne) {
  const std::string bytes(1000, 'x');
  const std::string large = Sha256Of(bytes);
  ASSERT_THAT(dir_->Put(large, bytes), IsOk());
  EXPECT_TRUE(Exists(large));
  const std::string a = Put('a');
  EXPECT_FALSE(Exists(large));
  EXPECT_TRUE(Exists(a));
}

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
