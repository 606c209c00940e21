#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "server/service/server_flags.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::service {
namespace {

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() { EXPECT_THAT(WriteFileAtomically(tokens_, "one"), IsOk()); }

  const TemporaryFolder folder_;
  const std::string tokens_ = folder_ / "tokens", key_ = folder_ / "key";
};

TEST_F(FileWatchTest, ReplacedFileIsReportedOnce) {
  FileWatch watch({tokens_, key_});
  EXPECT_FALSE(watch.Changed());
  ASSERT_THAT(WriteFileAtomically(tokens_, "two"), IsOk()) << "the size is unchanged";
  EXPECT_TRUE(watch.Changed());
  EXPECT_FALSE(watch.Changed());
}

TEST_F(FileWatchTest, DetectsInPlaceWrites) {
  FileWatch watch({tokens_});
  std::ofstream(tokens_, std::ios::app) << " and more";
  EXPECT_TRUE(watch.Changed());
  EXPECT_FALSE(watch.Changed());
}

TEST_F(FileWatchTest, DetectsPermissionChanges) {
  FileWatch watch({tokens_});
  ASSERT_EQ(chmod(tokens_.c_str(), 0640), 0);
  EXPECT_TRUE(watch.Changed()) << "the file may have become private";
  EXPECT_FALSE(watch.Changed());
}

TEST_F(FileWatchTest, WaitsForAMissingFile) {
  FileWatch watch({tokens_, key_});
  ASSERT_EQ(unlink(tokens_.c_str()), 0);
  EXPECT_FALSE(watch.Changed());
  ASSERT_THAT(WriteFileAtomically(tokens_, "two"), IsOk());
  EXPECT_TRUE(watch.Changed());
  ASSERT_THAT(WriteFileAtomically(key_, "was not there at the beginning"), IsOk());
  EXPECT_TRUE(watch.Changed());
}

}  // namespace
}  // namespace hone::service
