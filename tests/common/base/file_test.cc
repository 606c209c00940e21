#include "common/base/file.h"

#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone {
namespace {

class WriteFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }

  const TemporaryFolder folder_;
};

TEST_F(WriteFileTest, ReplacesAFileAndLeavesNothingBesideIt) {
  ASSERT_THAT(WriteFileAtomically(Path("file"), "old"), IsOk());
  ASSERT_THAT(WriteFileAtomically(Path("file"), "new"), IsOk());
  EXPECT_EQ(ReadFile(Path("file")).value(), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(WriteFileTest, FollowsASymbolicLink) {
  ASSERT_THAT(WriteFileAtomically(Path("file"), "old"), IsOk());
  std::filesystem::create_symlink(Path("file"), Path("link"));
  ASSERT_THAT(WriteFileAtomically(Path("link"), "new"), IsOk());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("file")).value(), "new");
}

TEST_F(WriteFileTest, KeepsTheModeOfAFileUnlessTheContentIsSecret) {
  const auto mode = [&] {
    return std::filesystem::status(Path("file")).permissions() & std::filesystem::perms::all;
  };
  ASSERT_THAT(WriteFileAtomically(Path("file"), "old"), IsOk());
  EXPECT_EQ(mode(), std::filesystem::perms{0644});
  ASSERT_EQ(chmod(Path("file").c_str(), 0640), 0);
  ASSERT_THAT(WriteFileAtomically(Path("file"), "new"), IsOk());
  EXPECT_EQ(mode(), std::filesystem::perms{0640});
  ASSERT_THAT(WriteFileAtomically(Path("file"), "new", Durability::kMachine, 0600), IsOk());
  EXPECT_EQ(mode(), std::filesystem::perms{0600});
}

TEST_F(WriteFileTest, CreatesTheFileThatALinkNames) {
  std::filesystem::create_symlink("file", Path("link"));
  ASSERT_THAT(WriteFileAtomically(Path("link"), "new"), IsOk());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("file")).value(), "new");
  std::filesystem::create_symlink("missing/file", Path("lost"));
  EXPECT_THAT(WriteFileAtomically(Path("lost"), "new"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("lost")));
}

TEST_F(WriteFileTest, WritesIntoAFifo) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = ReadFile(Path("fifo")).value_or("failed"); });
  const absl::Status written = WriteFileAtomically(Path("fifo"), "content");
  reader.join();
  ASSERT_THAT(written, IsOk());
  EXPECT_EQ(read, "content");
  EXPECT_TRUE(std::filesystem::is_fifo(Path("fifo")));
}

TEST_F(WriteFileTest, AFullDeviceIsAnErrorAndStaysADevice) {
  EXPECT_THAT(WriteFileAtomically("/dev/full", "content"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace hone
