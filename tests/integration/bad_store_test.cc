// Stores that cannot be used: the command says what is wrong and what to do, exits with 1, and does
// not change the file.

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"

namespace hone::integration {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kUserVersionOffset =
    60;  // offset in the header of a SQLite file; 4 bytes, big-endian

class BadStoreTest : public ::testing::Test {
 protected:
  // Creates a new store.
  void MakeStore() {
    const Result result = home_.Hone({"jobs", "list"});
    ASSERT_EQ(result.code, 0) << result.errors;
    ASSERT_TRUE(Eventually([&] { return home_.Keeper() == 0; }));
  }
  void ExpectRefused(const ::testing::Matcher<std::string>& message) {
    const std::string before = ReadFile(home_.store()).value_or("");
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"best", "matmul", "m=4", "n=4", "k=4"},
          std::vector<std::string>{"tune", "matmul", "m=4", "n=4", "k=4", "--trials", "2"}}) {
      const Result result = home_.Hone(words);
      EXPECT_EQ(result.code, 1) << result.errors;
      EXPECT_THAT(result.errors, message);
      EXPECT_THAT(result.errors, HasSubstr("hone.db"));
    }
    EXPECT_EQ(ReadFile(home_.store()).value_or(""), before) << "the file was changed";
  }

  HoneHome home_;
};

TEST_F(BadStoreTest, RejectsAFileThatIsNotADatabase) {
  std::filesystem::create_directories(home_.data_dir());
  std::ofstream(home_.store()) << std::string(8192, 'x');
  ExpectRefused(
      AnyOf(HasSubstr("corrupt"), HasSubstr("not a database"), HasSubstr("not a Hone store")));
}

TEST_F(BadStoreTest, RejectsADamagedStore) {
  MakeStore();
  // Overwrites the page of the schema and keeps the header.
  std::fstream file(home_.store(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file << std::string(3000, '\xff');
  file.close();
  ExpectRefused(AnyOf(HasSubstr("corrupt"), HasSubstr("malformed"), HasSubstr("damaged")));
}

TEST_F(BadStoreTest, RejectsANewerSchema) {
  MakeStore();
  std::fstream file(home_.store(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kUserVersionOffset);
  file.write("\0\0\3\xe7", 4);  // 999
  file.close();
  ExpectRefused(HasSubstr("newer"));
}

// Runs `hone` on a small disk, mounted as an ordinary user if the kernel allows that.
Result OnSmallDisk(const std::string& prepare) {
  TemporaryFolder folder;
  const std::string script =
      absl::StrCat("mount -t tmpfs -o size=256k none ", folder.path(),
                   " || exit 99; export XDG_DATA_HOME=", folder.path(), "; ", prepare, "; exec ",
                   BinDir(), "/hone best matmul m=4 n=4 k=4");
  return RunProgram({"/usr/bin/unshare", "--map-root-user", "--mount", "/bin/sh", "-c", script});
}

bool CanMakeDisks() {
  TemporaryFolder folder;
  return RunProgram({"/usr/bin/unshare", "--map-root-user", "--mount", "/bin/mount", "-t", "tmpfs",
                     "none", folder.path()})
             .code == 0;
}

TEST(BadDiskTest, ReportsAFullDisk) {
  if (!CanMakeDisks()) GTEST_SKIP() << "this kernel does not allow mounting a small disk";
  const Result result =
      OnSmallDisk("dd if=/dev/zero of=$XDG_DATA_HOME/fill bs=1k count=255 2>/dev/null");
  EXPECT_EQ(result.code, 1) << result.errors;
  EXPECT_THAT(result.errors, AnyOf(HasSubstr("No space left"), HasSubstr("full")));
  EXPECT_THAT(result.errors, HasSubstr("free"));
}

TEST(BadDiskTest, ReportsAReadOnlyDisk) {
  if (!CanMakeDisks()) GTEST_SKIP() << "this kernel does not allow mounting a small disk";
  const Result result = OnSmallDisk("mount -o remount,ro $XDG_DATA_HOME");
  EXPECT_EQ(result.code, 1) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("Read-only"));
  EXPECT_THAT(result.errors, HasSubstr("XDG_DATA_HOME"));
}

}  // namespace
}  // namespace hone::integration
