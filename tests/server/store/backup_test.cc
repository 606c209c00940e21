// Online backup and restore of the SQLite store.
#include "server/store/sqlite/backup.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

using testing::HasSubstr;

bool Never() { return false; }

class BackupTest : public testing::Test {
 protected:
  void Fill(Store& store, int records) {
    PutTextsAndArtifact(store);
    ASSERT_THAT(PublishBest(store, Append(store, ConfirmedRecord())->id), IsOk());
    for (int i = 1; i < records; ++i) store.Append(ScreenedRecord(100 + i), [](auto) {});
    ASSERT_THAT(store.Flush(), IsOk());
  }
  std::unique_ptr<Store> Open(const std::string& path) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path);
    EXPECT_THAT(store, IsOk());
    return store.ok() ? *std::move(store) : nullptr;
  }
  static size_t Count(Store& store) {
    size_t count = 0;
    for (int64_t after = 0;;) {
      const auto page = store.Query({.page_size = 1000, .after_id = after}).value();
      if (page.empty()) return count;
      count += page.size();
      after = page.back().id;
    }
  }
  absl::Status Restore(const std::string& backup) {
    return RestoreStore(path_, backup, 1'700'000'000'000).status();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "hone.db";
  const std::string backup_ = folder_ / "backup.db";
};

TEST_F(BackupTest, BackupIsConsistentDuringWrites) {
  auto store = Open(path_);
  Fill(*store, 2000);
  std::atomic<bool> stop = false;
  std::atomic<int> written = 0;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      store->Append(ScreenedRecord(1e6 + i), [&](auto) { ++written; });
      if (i % 64 == 0) {
        ASSERT_THAT(store->Flush(), IsOk());
      }
    }
  });
  const int before = written;
  const auto report = store->Backup(backup_, Never);
  // Writes continued during the copy.
  while (written == before) std::this_thread::yield();
  stop = true;
  writer.join();
  ASSERT_THAT(report, IsOk());
  EXPECT_GE(report->records, 2000);
  EXPECT_EQ(report->size_bytes, static_cast<int64_t>(std::filesystem::file_size(backup_)));
  EXPECT_FALSE(std::filesystem::exists(backup_ + "-wal"));
  auto copy = Open(backup_);
  EXPECT_EQ(Count(*copy), static_cast<size_t>(report->records));
  EXPECT_EQ(copy->GetArtifact(kArtifact).value(), "the artifact");
  EXPECT_THAT(copy->LookupBest({kWorkload, kTarget, 1e-5, ""}), IsOk());
}

TEST_F(BackupTest, DoesNotOverwriteFiles) {
  auto store = Open(path_);
  Fill(*store, 10);
  std::ofstream(backup_) << "mine";
  EXPECT_THAT(store->Backup(backup_, Never), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(ReadFile(backup_).value(), "mine");
  EXPECT_THAT(store->Backup(path_, Never), StatusIs(absl::StatusCode::kAlreadyExists));
  std::filesystem::create_symlink(folder_ / "nowhere", folder_ / "link");
  EXPECT_THAT(store->Backup(folder_ / "link", Never), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(BackupTest, InvalidPathIsReportedWithoutLeftovers) {
  auto store = Open(path_);
  Fill(*store, 10);
  EXPECT_THAT(store->Backup("relative.db", Never), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store->Backup("", Never), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store->Backup(folder_ / "no/backup.db", Never),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store->Backup(backup_, [] { return true; }), StatusIs(absl::StatusCode::kCancelled));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_THAT(entry.path().filename().string(), testing::StartsWith("hone.db"));
  }
}

TEST_F(BackupTest, RestoreKeepsTheReplacedStore) {
  {
    auto store = Open(path_);
    Fill(*store, 10);
    ASSERT_THAT(store->Backup(backup_, Never), IsOk());
    for (int i = 0; i < 5; ++i) ASSERT_THAT(Append(*store, ScreenedRecord()), IsOk());
  }
  const std::string identity = Open(backup_)->Identity().value();
  HONE_ASSERT_OK_AND_ASSIGN(const auto report, RestoreStore(path_, backup_, 1'700'000'000'000));
  EXPECT_EQ(report.records, 10);
  EXPECT_EQ(report.kept_as, path_ + ".before-restore-20231114T221320.000");
  EXPECT_EQ(Count(*Open(path_)), 10u);
  EXPECT_NE(Open(path_)->Identity().value(), identity) << "a restored store gets a new identity";
  EXPECT_EQ(Count(*Open(report.kept_as)), 15u);
  EXPECT_TRUE(std::filesystem::exists(backup_));
}

TEST_F(BackupTest, RestoresIntoAnEmptyFolder) {
  Fill(*Open(backup_), 10);
  HONE_ASSERT_OK_AND_ASSIGN(const auto report, RestoreStore(folder_ / "new/hone.db", backup_, 0));
  EXPECT_EQ(report.kept_as, "");
  EXPECT_EQ(Count(*Open(folder_ / "new/hone.db")), 10u);
}

// The last writes of a store whose server was killed are in its write-ahead log only.
TEST_F(BackupTest, ReplacedStoreKeepsItsWriteAheadLog) {
  {
    auto store = Open(path_);
    Fill(*store, 10);
    std::filesystem::copy_file(path_, folder_ / "crashed.db");
    std::filesystem::copy_file(path_ + "-wal", folder_ / "crashed.db-wal");
  }
  Fill(*Open(backup_), 3);
  HONE_ASSERT_OK_AND_ASSIGN(const auto report, RestoreStore(folder_ / "crashed.db", backup_, 0));
  EXPECT_EQ(Count(*Open(report.kept_as)), 10u);
  EXPECT_EQ(Count(*Open(folder_ / "crashed.db")), 3u);
}

TEST_F(BackupTest, ReplacesAndKeepsADamagedStore) {
  Fill(*Open(backup_), 10);
  const std::string rubbish(9000, 'n');
  std::ofstream(path_) << rubbish;
  HONE_ASSERT_OK_AND_ASSIGN(const auto report, RestoreStore(path_, backup_, 0));
  EXPECT_EQ(ReadFile(report.kept_as).value(), rubbish);
  EXPECT_EQ(Count(*Open(path_)), 10u);
}

TEST_F(BackupTest, RejectsIncompleteBackups) {
  Fill(*Open(path_), 10);
  const std::string before = ReadFile(path_).value();
  EXPECT_THAT(Restore(backup_), StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(backup_) << std::string(5000, 'n');
  EXPECT_THAT(Restore(backup_), StatusIs(absl::StatusCode::kDataLoss));
  std::filesystem::remove(backup_);
  Fill(*Open(backup_), 500);
  std::filesystem::resize_file(backup_, std::filesystem::file_size(backup_) / 2);
  EXPECT_THAT(Restore(backup_), StatusIs(absl::StatusCode::kDataLoss));
  std::filesystem::remove(backup_);
  ASSERT_THAT(SqliteConnection::OpenForWriting(backup_).value()->Execute("CREATE TABLE c (x)"),
              IsOk());
  EXPECT_THAT(Restore(backup_), StatusIs(absl::StatusCode::kFailedPrecondition));
  std::filesystem::remove(backup_);
  Fill(*Open(backup_), 3);
  ASSERT_TRUE(SqliteConnection::OpenForWriting(backup_)
                  .value()
                  ->Execute(absl::StrCat("PRAGMA user_version = ", SqliteMigrations().size() + 1))
                  .ok());
  EXPECT_THAT(Restore(backup_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("newer Hone")));
  EXPECT_THAT(Restore(path_), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(ReadFile(path_).value(), before);
}

TEST_F(BackupTest, DoesNotReplaceAStoreInUse) {
  Fill(*Open(backup_), 3);
  const auto store = Open(path_);
  EXPECT_THAT(Restore(backup_), StatusIs(absl::StatusCode::kUnavailable));
}

// The earlier Hone can open the copy, whatever the migration did.
TEST_F(BackupTest, AnOlderStoreIsCopiedBeforeItsMigration) {
  const std::string copy = path_ + ".before-schema-2";
  const std::vector<const char*> old = {"CREATE TABLE a (x INTEGER) STRICT"};
  const std::vector<const char*> current = {old[0], "ALTER TABLE a ADD COLUMN y INTEGER"};
  HONE_ASSERT_OK_AND_ASSIGN(const auto store, SqliteConnection::OpenForWriting(path_));
  ASSERT_THAT(BackUpBeforeMigration(*store, current), IsOk());
  EXPECT_FALSE(std::filesystem::exists(copy)) << "the store is new";
  ASSERT_THAT(Migrate(*store, old), IsOk());
  ASSERT_THAT(BackUpBeforeMigration(*store, old), IsOk());
  EXPECT_FALSE(std::filesystem::exists(copy)) << "the store is current";

  ASSERT_THAT(store->Execute("INSERT INTO a VALUES (7)"), IsOk());
  ASSERT_THAT(BackUpBeforeMigration(*store, current), IsOk());
  ASSERT_THAT(Migrate(*store, current), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto kept, SqliteConnection::OpenForReading(copy));
  EXPECT_EQ(kept->QueryInt64("PRAGMA user_version").value(), 1);
  EXPECT_EQ(kept->QueryInt64("SELECT x FROM a").value(), 7);
  EXPECT_THAT(CheckSchema(*kept, old), IsOk());
  EXPECT_EQ(store->QueryInt64("PRAGMA user_version").value(), 2);
  EXPECT_FALSE(std::filesystem::exists(copy + ".part"));
}

// Opening a store does this: a store of schema 1 whose copy cannot be made stays as it is.
TEST_F(BackupTest, WithoutRoomForTheCopyThereIsNoMigration) {
  const std::vector<const char*> current = {"CREATE TABLE a (x INTEGER) STRICT", "SELECT 1"};
  HONE_ASSERT_OK_AND_ASSIGN(const auto store, SqliteConnection::OpenForWriting(path_));
  ASSERT_THAT(Migrate(*store, {current[0]}), IsOk());
  std::filesystem::create_directories(path_ + ".before-schema-2.part/in the way");
  EXPECT_FALSE(BackUpBeforeMigration(*store, current).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".before-schema-2"));
}

}  // namespace
}  // namespace hone::store
