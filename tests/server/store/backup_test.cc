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
#include "server/store/sqlite/schema.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"

namespace hone::store {
namespace {

using testing::HasSubstr;

bool Never() { return false; }

class BackupTest : public testing::Test {
 protected:
  void Fill(Store& store, int records) {
    PutTextsAndArtifact(store);
    ASSERT_TRUE(PublishBest(store, Append(store, ConfirmedRecord())->id).ok());
    for (int i = 1; i < records; ++i) store.Append(ScreenedRecord(100 + i), [](auto) {});
    ASSERT_TRUE(store.Flush().ok());
  }
  std::unique_ptr<Store> Open(const std::string& path) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path);
    EXPECT_TRUE(store.ok()) << store.status();
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
        ASSERT_TRUE(store->Flush().ok());
      }
    }
  });
  const int before = written;
  const auto report = store->Backup(backup_, Never);
  // Writes continued during the copy.
  while (written == before) std::this_thread::yield();
  stop = true;
  writer.join();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(report->records, 2000);
  EXPECT_EQ(report->size_bytes, static_cast<int64_t>(std::filesystem::file_size(backup_)));
  EXPECT_FALSE(std::filesystem::exists(backup_ + "-wal"));
  auto copy = Open(backup_);
  EXPECT_EQ(Count(*copy), static_cast<size_t>(report->records));
  EXPECT_EQ(copy->GetArtifact(kArtifact).value(), "the artifact");
  EXPECT_TRUE(copy->LookupBest({kWorkload, kTarget, 1e-5, ""}).ok());
}

TEST_F(BackupTest, DoesNotOverwriteFiles) {
  auto store = Open(path_);
  Fill(*store, 10);
  std::ofstream(backup_) << "mine";
  const absl::Status taken = store->Backup(backup_, Never).status();
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_EQ(ReadFile(backup_).value(), "mine");
  EXPECT_TRUE(absl::IsAlreadyExists(store->Backup(path_, Never).status()));
  std::filesystem::create_symlink(folder_ / "nowhere", folder_ / "link");
  EXPECT_TRUE(absl::IsAlreadyExists(store->Backup(folder_ / "link", Never).status()));
}

TEST_F(BackupTest, InvalidPathIsReportedWithoutLeftovers) {
  auto store = Open(path_);
  Fill(*store, 10);
  EXPECT_TRUE(absl::IsInvalidArgument(store->Backup("relative.db", Never).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store->Backup("", Never).status()));
  EXPECT_TRUE(absl::IsNotFound(store->Backup(folder_ / "no/backup.db", Never).status()));
  EXPECT_TRUE(absl::IsCancelled(store->Backup(backup_, [] { return true; }).status()));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_THAT(entry.path().filename().string(), testing::StartsWith("hone.db"));
  }
}

TEST_F(BackupTest, RestoreKeepsTheReplacedStore) {
  {
    auto store = Open(path_);
    Fill(*store, 10);
    ASSERT_TRUE(store->Backup(backup_, Never).ok());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(Append(*store, ScreenedRecord()).ok());
  }
  const std::string identity = Open(backup_)->Identity().value();
  const auto report = RestoreStore(path_, backup_, 1'700'000'000'000);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->records, 10);
  EXPECT_EQ(report->kept_as, path_ + ".before-restore-20231114T221320.000");
  EXPECT_EQ(Count(*Open(path_)), 10u);
  EXPECT_NE(Open(path_)->Identity().value(), identity) << "a restored store gets a new identity";
  EXPECT_EQ(Count(*Open(report->kept_as)), 15u);
  EXPECT_TRUE(std::filesystem::exists(backup_));
}

TEST_F(BackupTest, RestoresIntoAnEmptyFolder) {
  Fill(*Open(backup_), 10);
  const auto report = RestoreStore(folder_ / "new/hone.db", backup_, 0);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->kept_as, "");
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
  const auto report = RestoreStore(folder_ / "crashed.db", backup_, 0);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Count(*Open(report->kept_as)), 10u);
  EXPECT_EQ(Count(*Open(folder_ / "crashed.db")), 3u);
}

TEST_F(BackupTest, ReplacesAndKeepsADamagedStore) {
  Fill(*Open(backup_), 10);
  const std::string rubbish(9000, 'n');
  std::ofstream(path_) << rubbish;
  const auto report = RestoreStore(path_, backup_, 0);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ReadFile(report->kept_as).value(), rubbish);
  EXPECT_EQ(Count(*Open(path_)), 10u);
}

TEST_F(BackupTest, RejectsIncompleteBackups) {
  Fill(*Open(path_), 10);
  const std::string before = ReadFile(path_).value();
  EXPECT_TRUE(absl::IsNotFound(Restore(backup_)));
  std::ofstream(backup_) << std::string(5000, 'n');
  EXPECT_TRUE(absl::IsDataLoss(Restore(backup_)));
  std::filesystem::remove(backup_);
  Fill(*Open(backup_), 500);
  std::filesystem::resize_file(backup_, std::filesystem::file_size(backup_) / 2);
  EXPECT_TRUE(absl::IsDataLoss(Restore(backup_)));
  std::filesystem::remove(backup_);
  ASSERT_TRUE(
      SqliteConnection::OpenForWriting(backup_).value()->Execute("CREATE TABLE c (x)").ok());
  const absl::Status foreign = Restore(backup_);
  EXPECT_TRUE(absl::IsFailedPrecondition(foreign)) << foreign;
  std::filesystem::remove(backup_);
  Fill(*Open(backup_), 3);
  ASSERT_TRUE(SqliteConnection::OpenForWriting(backup_)
                  .value()
                  ->Execute(absl::StrCat("PRAGMA user_version = ", SqliteMigrations().size() + 1))
                  .ok());
  const absl::Status newer = Restore(backup_);
  EXPECT_TRUE(absl::IsFailedPrecondition(newer)) << newer;
  EXPECT_THAT(std::string(newer.message()), HasSubstr("newer Hone"));
  EXPECT_TRUE(absl::IsInvalidArgument(Restore(path_)));
  EXPECT_EQ(ReadFile(path_).value(), before);
}

TEST_F(BackupTest, DoesNotReplaceAStoreInUse) {
  Fill(*Open(backup_), 3);
  const auto store = Open(path_);
  EXPECT_TRUE(absl::IsUnavailable(Restore(backup_)));
}

}  // namespace
}  // namespace hone::store
