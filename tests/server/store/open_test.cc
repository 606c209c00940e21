// Opening a SQLite store: a damaged, foreign, newer, read-only or locked store is refused with a
// helpful message.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/store/child_process.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

class OpenTest : public testing::Test {
 protected:
  // Creates a store with a few hundred records and a few large texts.
  void Fill() {
    auto store = OpenSqliteStore(path_).value();
    PutTextsAndArtifact(*store);
    for (int i = 0; i < 500; ++i) store->Append(ConfirmedRecord(100 + i), [](auto) {});
    for (int i = 0; i < 20; ++i) {
      store->PutText(absl::StrCat("text ", i), std::string(20000, 'x'), [](absl::Status) {});
    }
    ASSERT_THAT(store->Flush(), IsOk());
  }
  void ExpectRefused(absl::StatusCode code, const std::string& hint) {
    const absl::Status status = OpenSqliteStore(path_).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), path_)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), hint)) << status;
  }
  void WriteBytes(const std::string& bytes) { std::ofstream(path_) << bytes; }
  // Overwrites a page of a table or an index, and returns the new bytes of the file.
  std::string DamagePage(const std::string& name) {
    const int64_t page =
        SqliteConnection::OpenForReading(path_)
            .value()
            ->QueryInt64(absl::StrCat("SELECT MAX(pageno) FROM dbstat WHERE name = '", name, "'"))
            .value();
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((page - 1) * 4096);
    file << std::string(2000, '\x55');
    file.close();
    return ReadFile(path_).value();
  }
  // Returns the log as it is after a write, before it is copied into the file.
  std::string LogOfAWrite() {
    const auto store = OpenSqliteStore(path_).value();
    EXPECT_THAT(PutText(*store, "last", "write"), IsOk());
    return ReadFile(path_ + "-wal").value();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "hone.db";
};

TEST_F(OpenTest, CreatesMissingFolders) {
  const std::string path = folder_ / "a/b/hone.db";
  EXPECT_THAT(OpenSqliteStore(path), IsOk());
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + "-wal")) << "closing the store removes the log";
}

TEST_F(OpenTest, RejectsAFolderOrAnEmptyPath) {
  EXPECT_THAT(OpenSqliteStore(""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(OpenSqliteStore(":memory:"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(OpenSqliteStore(folder_.path()), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(OpenTest, RejectsAndKeepsAFileThatIsNotADatabase) {
  const std::string text(5000, 'n');
  WriteBytes(text);
  ExpectRefused(absl::StatusCode::kDataLoss, "restore a backup");
  EXPECT_EQ(ReadFile(path_).value(), text);
}

TEST_F(OpenTest, ATruncatedFileIsRefused) {
  Fill();
  const auto size = std::filesystem::file_size(path_);
  for (const auto part : {size / 2, size - 4096, uintmax_t{5000}, uintmax_t{50}}) {
    std::filesystem::resize_file(path_, part);
    ExpectRefused(absl::StatusCode::kDataLoss, ".recover");
  }
}

TEST_F(OpenTest, ADamagedHeaderOrSchemaIsRefused) {
  Fill();
  const std::string good = ReadFile(path_).value();
  std::string bad = good;
  bad.replace(0, 16, 16, '\0');
  WriteBytes(bad);
  ExpectRefused(absl::StatusCode::kDataLoss, "restore a backup");
  bad = good;
  bad.replace(100, 3000, 3000, '\xaa');  // the schema table
  WriteBytes(bad);
  ExpectRefused(absl::StatusCode::kDataLoss, "restore a backup");
}

TEST_F(OpenTest, AMissingTableIsDataLoss) {
  Fill();
  ASSERT_THAT(SqliteConnection::OpenForWriting(path_).value()->Execute("DROP TABLE best"), IsOk());
  ExpectRefused(absl::StatusCode::kDataLoss, "best");
}

// Damage deep in the file does not keep the server from starting. Look-ups are answered as far as
// possible, and nothing is written: neither by a caller, nor by opening or closing the store.
TEST_F(OpenTest, ADamagedStoreIsOnlyRead) {
  Fill();
  ASSERT_THAT(PutJob(*OpenSqliteStore(path_).value(), PendingJob("5")), IsOk());
  const std::string good = ReadFile(path_).value();
  for (const std::string part : {"record", "record_by_workload", "sqlite_autoindex_text_1"}) {
    SCOPED_TRACE(part);
    WriteBytes(good);
    const std::string bad = DamagePage(part);
    HONE_ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(path_));
    const absl::Status status = PutText(*store, "new", "text");
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_TRUE(absl::StrContains(status.message(), "restore a backup")) << status;
    EXPECT_THAT(PutJob(*store, PendingJob("7")), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(store->Compact({}, [] { return false; }), StatusIs(absl::StatusCode::kDataLoss));
    // The check of the whole file and the write may both find damage, in either order.
    EXPECT_THAT(store->CheckWritable(), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_EQ(store->Health().check, StoreHealth::Check::kDamaged);
    EXPECT_EQ(store->GetArtifact(kArtifact).value_or(""), "the artifact");
    EXPECT_THAT(store->Flush(), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_TRUE(ReadFile(path_).value() == bad);
    EXPECT_EQ(std::filesystem::file_size(path_ + "-wal"), 0u);
  }
}

// Large files are checked row by row, and the writer can copy and reuse the log meanwhile.
TEST_F(OpenTest, ADamagedRowOfALargeStoreIsFound) {
  Fill();
  for (const std::string table : {"record", "text", "artifact"}) {
    SCOPED_TRACE(table);
    const std::string good = ReadFile(path_).value();
    EXPECT_THAT(CheckRows(*SqliteConnection::OpenForReading(path_).value()), IsOk());
    DamagePage(table);
    EXPECT_THAT(CheckRows(*SqliteConnection::OpenForReading(path_).value()),
                StatusIs(absl::StatusCode::kDataLoss));
    {
      HONE_ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(path_, {.large_bytes = 0}));
      for (int i = 0; i < 30000 && store->IsBeingChecked(); ++i) {
        absl::SleepFor(absl::Milliseconds(1));
      }
      EXPECT_EQ(store->Health().check, StoreHealth::Check::kDamaged);
      EXPECT_THAT(PutText(*store, "new", "text"), StatusIs(absl::StatusCode::kDataLoss));
    }
    WriteBytes(good);
  }
}

// One row that cannot be decoded does not hide the other records of its page.
TEST_F(OpenTest, RecordsThatCannotBeReadAreLeftOut) {
  Fill();
  ASSERT_THAT(SqliteConnection::OpenForWriting(path_).value()->Execute(
                  "UPDATE record SET decisions = x'80' WHERE id IN (3, 4, 10, 12)"),
              IsOk());
  const auto store = OpenSqliteStore(path_).value();
  for (const RecordOrder order : {RecordOrder::kId, RecordOrder::kTime}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto first, store->Query({.page_size = 10, .order = order}));
    ASSERT_EQ(first.size(), 10u);
    for (const record::Record& record : first) {
      EXPECT_THAT(record.id, testing::AllOf(testing::Ne(3), testing::Ne(4), testing::Ne(10)));
    }
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto all, store->Query({.page_size = 1000}));
  EXPECT_EQ(all.size(), 496u);
}

TEST_F(OpenTest, TheCheckOfALargeStoreHoldsNoReadTransaction) {
  Fill();
  const auto writing = SqliteConnection::OpenForWriting(path_).value();
  ASSERT_THAT(writing->SetUpForWriting(), IsOk());
  ASSERT_THAT(writing->Execute("INSERT INTO text WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                               "i + 1 FROM n WHERE i < 20000) SELECT 'n' || i, 'text', 0 FROM n"),
              IsOk());
  std::atomic<bool> has_ended = false;
  std::thread checking([&] {
    EXPECT_THAT(CheckRows(*SqliteConnection::OpenForReading(path_).value()), IsOk());
    has_ended = true;
  });
  int most_pages = 0;
  while (!has_ended) {
    EXPECT_THAT(
        writing->Execute("UPDATE text SET put_unix_ms = put_unix_ms + 1 WHERE digest = 'n1'"),
        IsOk());
    EXPECT_THAT(writing->Checkpoint(), IsOk());
    most_pages = std::max(most_pages, writing->LogPages());
  }
  checking.join();
  // A log that could never be restarted would have a page of every update.
  EXPECT_LT(most_pages, 2000);
}

// The log of a damaged store may have its last writes, so it is kept.
TEST_F(OpenTest, TheLogOfADamagedStoreIsKept) {
  Fill();
  const std::string log = LogOfAWrite();
  const std::string bad = DamagePage("record");
  std::ofstream(path_ + "-wal") << log;
  {
    HONE_ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(path_));
    EXPECT_THAT(PutText(*store, "new", "text"), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_EQ(store->GetText("last").value_or(""), "write");
  }
  EXPECT_TRUE(ReadFile(path_).value() == bad);
  EXPECT_TRUE(ReadFile(path_ + "-wal").value() == log);
}

TEST_F(OpenTest, ALogThatIsCutShortKeepsTheEarlierWrites) {
  Fill();
  std::string log;
  {
    const auto store = OpenSqliteStore(path_).value();
    ASSERT_THAT(PutText(*store, "first", "write"), IsOk());
    log = ReadFile(path_ + "-wal").value();
    ASSERT_THAT(PutText(*store, "last", "write"), IsOk());
    log = ReadFile(path_ + "-wal").value().substr(0, log.size() + 1000);
    std::filesystem::copy_file(path_, path_ + ".copy");
  }
  std::filesystem::rename(path_ + ".copy", path_);
  std::ofstream(path_ + "-wal") << log;
  HONE_ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(path_));
  EXPECT_THAT(PutText(*store, "new", "text"), IsOk());
  EXPECT_EQ(store->GetText("first").value_or(""), "write");
  EXPECT_THAT(store->GetText("last"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(OpenTest, DamageThatIsFoundLaterStopsWrites) {
  Fill();
  const auto store = OpenSqliteStore(path_, {.check_integrity = false}).value();
  ASSERT_THAT(PutText(*store, "first", "text"), IsOk());
  const std::string bad = DamagePage("record");
  EXPECT_THAT(store->CheckWritable(), IsOk());
  const absl::Status found = store->Query({.page_size = 1000}).status();
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(store->CheckWritable(), found);
  EXPECT_EQ(PutText(*store, "new", "text"), found);
  EXPECT_EQ(store->GetText("first").value_or(""), "text");
  EXPECT_TRUE(ReadFile(path_).value() == bad);
}

TEST_F(OpenTest, DamageThatAWriteFindsStopsTheOtherWritesOfItsGroup) {
  Fill();
  const auto store = OpenSqliteStore(path_, {.check_integrity = false}).value();
  DamagePage("record");
  absl::Status before, damaged, after;
  store->PutText("one", "text", [&](absl::Status status) { before = std::move(status); });
  store->Append(ConfirmedRecord(), [&](const auto& added) { damaged = added.status(); });
  store->PutText("two", "text", [&](absl::Status status) { after = std::move(status); });
  EXPECT_THAT(store->Flush(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(damaged, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(after, damaged);
  EXPECT_THAT(store->GetText("two"), StatusIs(absl::StatusCode::kNotFound));
  // The first write may have been committed in a group of its own before.
  EXPECT_TRUE(before.ok() || before == damaged) << before;
  EXPECT_EQ(store->GetText("one").ok(), before.ok());
}

// SQLite would remove the log.
TEST_F(OpenTest, ALogWithoutItsDatabaseIsRefusedAndKept) {
  const std::string log(5000, 'x');
  std::ofstream(path_ + "-wal") << log;
  ExpectRefused(absl::StatusCode::kDataLoss, "is missing");
  EXPECT_FALSE(std::filesystem::exists(path_));
  WriteBytes("");
  ExpectRefused(absl::StatusCode::kDataLoss, "is empty");
  EXPECT_EQ(ReadFile(path_ + "-wal").value(), log);
}

TEST_F(OpenTest, ADamagedListOfJobsIsRefusedAndKept) {
  Fill();
  ASSERT_THAT(PutJob(*OpenSqliteStore(path_).value(), PendingJob("5")), IsOk());
  const std::string log = LogOfAWrite();
  const std::string bad = DamagePage("job");
  std::ofstream(path_ + "-wal") << log;
  ExpectRefused(absl::StatusCode::kDataLoss, "restore a backup");
  EXPECT_TRUE(ReadFile(path_).value() == bad);
  EXPECT_TRUE(ReadFile(path_ + "-wal").value() == log);
}

TEST_F(OpenTest, OpeningAndClosingWritesNothing) {
  Fill();
  const std::string before = ReadFile(path_).value();
  const auto store = OpenSqliteStore(path_).value();
  EXPECT_EQ(std::filesystem::file_size(path_ + "-wal"), 0u);
  EXPECT_TRUE(ReadFile(path_).value() == before);
}

TEST_F(OpenTest, ReadingADamagedPageIsDataLoss) {
  Fill();
  std::string bytes = ReadFile(path_).value();
  for (size_t page = 80; page * 4096 < bytes.size(); ++page) {
    bytes.replace(page * 4096, 2000, 2000, '\x55');
  }
  WriteBytes(bytes);
  HONE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store,
                            OpenSqliteStore(path_, {.check_integrity = false}));
  EXPECT_THAT(store->Query({.page_size = 1000}), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(OpenTest, ANewerSchemaIsRefusedAndKept) {
  Fill();
  const int newer = SqliteMigrations().size() + 1;
  ASSERT_TRUE(SqliteConnection::OpenForWriting(path_)
                  .value()
                  ->Execute(absl::StrCat("PRAGMA user_version = ", newer))
                  .ok());
  const std::string before = ReadFile(path_).value();
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "newer Hone");
  EXPECT_EQ(ReadFile(path_).value(), before);
}

TEST_F(OpenTest, ASchemaWithoutANumberIsDamage) {
  Fill();
  for (const int version : {-1, 0}) {
    ASSERT_TRUE(SqliteConnection::OpenForWriting(path_)
                    .value()
                    ->Execute(absl::StrCat("PRAGMA user_version = ", version))
                    .ok());
    const std::string before = ReadFile(path_).value();
    ExpectRefused(absl::StatusCode::kDataLoss, absl::StrCat("has schema ", version));
    EXPECT_EQ(ReadFile(path_).value(), before);
  }
}

TEST_F(OpenTest, RejectsAndKeepsADatabaseOfAnotherProgram) {
  ASSERT_TRUE(SqliteConnection::OpenForWriting(path_)
                  .value()
                  ->Execute("CREATE TABLE cookies (name TEXT)")
                  .ok());
  const std::string before = ReadFile(path_).value();
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "another program");
  EXPECT_EQ(ReadFile(path_).value(), before);
}

TEST_F(OpenTest, AnEmptyFileBecomesAStore) {
  WriteBytes("");
  EXPECT_THAT(OpenSqliteStore(path_), IsOk());
}

TEST_F(OpenTest, AReadOnlyFileIsPermissionDenied) {
  Fill();
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  ASSERT_EQ(chmod((path_ + ".lock").c_str(), 0666), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0444), 0);
  ChildProcess child([&](int pipe) {
    if (!BecomeOrdinaryUser()) return 1;
    WriteLine(pipe, OpenSqliteStore(path_).status().ToString());
    return 0;
  });
  const std::string status = child.ReadLine();
  EXPECT_TRUE(absl::StartsWith(status, "PERMISSION_DENIED")) << status;
  EXPECT_TRUE(absl::StrContains(status, "writable")) << status;
}

TEST_F(OpenTest, AReadOnlyFolderIsPermissionDenied) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  ChildProcess child([&](int pipe) {
    if (!BecomeOrdinaryUser()) return 1;
    WriteLine(pipe, OpenSqliteStore(path_).status().ToString());
    WriteLine(pipe, OpenSqliteStore(folder_ / "sub/hone.db").status().ToString());
    return 0;
  });
  for (int i = 0; i < 2; ++i) {
    const std::string status = child.ReadLine();
    EXPECT_TRUE(absl::StartsWith(status, "PERMISSION_DENIED")) << status;
    EXPECT_TRUE(absl::StrContains(status, folder_.path())) << status;
  }
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
}

TEST_F(OpenTest, SecondProcessLearnsWhoHoldsTheStore) {
  std::string pid;
  ChildProcess owner([&](int pipe) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path_);
    WriteLine(pipe, store.ok() ? absl::StrCat(getpid()) : store.status().ToString());
    pause();
    return 0;
  });
  pid = owner.ReadLine();
  ExpectRefused(absl::StatusCode::kUnavailable, absl::StrCat("open in process ", pid));
  // The same store under another name.
  std::filesystem::create_symlink(path_, folder_ / "alias.db");
  EXPECT_THAT(OpenSqliteStore(folder_ / "alias.db"), StatusIs(absl::StatusCode::kUnavailable));
  owner.Kill();
  owner.Wait();
  EXPECT_THAT(OpenSqliteStore(path_), IsOk()) << "the lock ends with its process: ";
}

TEST_F(OpenTest, TheSameProcessCannotOpenItTwice) {
  auto store = OpenSqliteStore(path_).value();
  EXPECT_THAT(OpenSqliteStore(path_), StatusIs(absl::StatusCode::kUnavailable));
  store.reset();
  EXPECT_THAT(OpenSqliteStore(path_), IsOk());
}

}  // namespace
}  // namespace hone::store
