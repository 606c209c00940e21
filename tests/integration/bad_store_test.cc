// Stores that cannot be used: the command says what is wrong and what to do, exits with 1, and does
// not change the file.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/store.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

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
  void ExpectRefused(const std::string& transcript_name) {
    Transcript transcript(transcript_name, {"hone"}, home_.variables());
    const std::string before = ReadFile(home_.store()).value_or("");
    transcript.Run({"best", "matmul", "m=4", "n=4", "k=4"});
    transcript.Run({"tune", "matmul", "m=4", "n=4", "k=4", "--trials", "2"});
    EXPECT_EQ(ReadFile(home_.store()).value_or(""), before) << "the file was changed";
  }

  HoneHome home_;
};

TEST_F(BadStoreTest, RejectsAFileThatIsNotADatabase) {
  std::filesystem::create_directories(home_.data_dir());
  std::ofstream(home_.store()) << std::string(8192, 'x');
  ExpectRefused("bad_store_no_database");
}

TEST_F(BadStoreTest, RejectsADamagedStore) {
  MakeStore();
  // Overwrites the page of the schema and keeps the header.
  std::fstream file(home_.store(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file << std::string(3000, '\xff');
  file.close();
  ExpectRefused("bad_store_damaged");
}

// Look-ups that still work are answered, and nothing is written.
TEST_F(BadStoreTest, OnlyReadsAStoreWithDamagedPages) {
  MakeStore();
  {
    const auto store = store::OpenSqliteStore(home_.store()).value();
    for (const char* digest : {"a", "b"}) {
      store->PutText(digest, std::string(200'000, 'x'), [](const absl::Status&) {});
    }
    ASSERT_THAT(store->Flush(), IsOk());
  }
  std::fstream file(home_.store(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-160'000, std::ios::end);
  for (int i = 0; i < 20; ++i) file << std::string(1000, '\xff');
  file.close();
  const std::string before = ReadFile(home_.store()).value_or("");

  Transcript transcript("bad_store_pages", {"hone"}, home_.variables());
  transcript.Run({"best", "matmul", "m=4", "n=4", "k=4"});
  const Result tune = home_.Hone({"tune", "matmul", "m=4", "n=4", "k=4", "--trials", "2"});
  EXPECT_EQ(tune.code, 1) << tune.errors;
  EXPECT_THAT(tune.errors, ContainsRegex("hone\\.db.*restore a backup"));
  const Result doctor = home_.Hone({"doctor"});
  EXPECT_EQ(doctor.code, 1) << doctor.output;
  EXPECT_THAT(doctor.output, ContainsRegex("only read.*restore a backup"));
  EXPECT_THAT(doctor.errors, Not(HasSubstr("warning:")));
  ASSERT_TRUE(Eventually([&] { return home_.Keeper() == 0; }));
  EXPECT_TRUE(ReadFile(home_.store()).value_or("") == before) << "the file was changed";

  Process server({"hone-server", "--listen", "localhost:0", "--store", home_.store()});
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(server.Errors(), "only read"); }))
      << server.Errors();
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(server.Errors(), "serving on"); }));
  const std::string log = server.Errors();
  const size_t at = log.find("serving on ") + 11;
  const std::string address = log.substr(at, log.find(',', at) - at);
  transcript.Replace(address, "ADDRESS");
  transcript.Run({"jobs", "list", "--server", address});
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 1) << server.Errors();
  EXPECT_THAT(server.Errors(), HasSubstr("ends with a damaged store"));
  EXPECT_TRUE(ReadFile(home_.store()).value_or("") == before) << "the file was changed";
}

// A start that fails leaves nothing behind that looks like a store.
TEST(NoStoreTest, IsMadeIfTheServerCannotStart) {
  TemporaryFolder folder;
  const std::string address = absl::StrCat("localhost:", FreePort());
  Process first({"hone-server", "--listen", address, "--store", folder / "first.db"});
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(first.Errors(), "serving on"); }))
      << first.Errors();
  const std::string socket = folder / "first.db";  // it is not a socket
  for (const Words& options :
       {Words{"--listen", address}, Words{"--listen", "unix:" + socket},
        Words{"--listen", "localhost:0", "--listen-admin", address},
        Words{"--listen", "unix:" + folder / "socket", "--listen-admin",
              "unix:" + folder / "socket"},
        Words{"--listen", "localhost:0", "--audit-log", folder / "none/audit"}}) {
    const Result refused =
        RunProgram(With({"hone-server", "--store", folder / "new/x.db"}, options));
    EXPECT_EQ(refused.code, 1) << refused.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "new")) << refused.errors;
  }
}

TEST_F(BadStoreTest, RejectsANewerSchema) {
  MakeStore();
  std::fstream file(home_.store(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kUserVersionOffset);
  file.write("\0\0\3\xe7", 4);  // 999
  file.close();
  ExpectRefused("bad_store_newer");
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
  EXPECT_THAT(result.errors, ContainsRegex("(No space left|full).*free"));
}

TEST(BadDiskTest, ReportsAReadOnlyDisk) {
  if (!CanMakeDisks()) GTEST_SKIP() << "this kernel does not allow mounting a small disk";
  const Result result = OnSmallDisk("mount -o remount,ro $XDG_DATA_HOME");
  EXPECT_EQ(result.code, 1) << result.errors;
  EXPECT_THAT(result.errors, ContainsRegex("Read-only.*XDG_DATA_HOME"));
}

}  // namespace
}  // namespace hone::integration
