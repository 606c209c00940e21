#include "server/store/retention.h"

#include <sqlite3.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/sqlite_store.h"
#include "server/store/tables.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::store {
namespace {

class RetentionTest : public testing::Test {
 protected:
  void SetUp() override {
    connection_ = SqliteConnection::OpenForWriting(folder_ / "hone.db").value();
    ASSERT_THAT(connection_->SetUpForWriting(), IsOk());
    ASSERT_THAT(Migrate(*connection_, SqliteMigrations()), IsOk());
    const auto run = [this](const RetentionAccess::Work& work) { return work(*connection_); };
    access_ = {.read = run,
               .write =
                   [this, run](const RetentionAccess::Work& work) {
                     const int64_t before = connection_->Changes();
                     const absl::Status status = run(work);
                     most_changes_ = std::max(most_changes_, connection_->Changes() - before);
                     return status;
                   },
               .free_space = [] { return absl::OkStatus(); },
               .cancelled = [] { return false; },
               .now_unix_ms = kNow};
  }
  void InsertRecords(int count) {
    ASSERT_THAT(connection_->Execute("BEGIN"), IsOk());
    for (int i = 0; i < count; ++i) {
      record::Record record = ScreenedRecord(10 + i);
      ASSERT_THAT(InsertRecord(*connection_, record), IsOk());
    }
    ASSERT_THAT(connection_->Execute("COMMIT"), IsOk());
  }
  // The number of statements that the connection keeps compiled.
  int CompiledStatements() {
    int count = 0;
    sqlite3_stmt* statement = nullptr;
    while ((statement = sqlite3_next_stmt(connection_->database(), statement)) != nullptr) ++count;
    return count;
  }

  static constexpr int64_t kNow = 1'000'000;

  TemporaryFolder folder_;
  std::unique_ptr<SqliteConnection> connection_;
  RetentionAccess access_;
  int64_t most_changes_ = 0;  // of rows in one transaction
};

TEST_F(RetentionTest, ACompactionWithAnotherTimeLimitCompilesNoMoreStatements) {
  const auto compact = [&](int64_t keep_unix_ms) {
    for (const int64_t put : {keep_unix_ms - 1, keep_unix_ms}) {
      const std::string digest = std::to_string(put);
      EXPECT_THAT(InsertText(*connection_, digest, "text", put), IsOk());
      EXPECT_THAT(InsertArtifact(*connection_, digest, "bytes", put), IsOk());
    }
    ASSERT_THAT(RemoveOldRows(access_, {.before = CompactOptions::All(keep_unix_ms)}), IsOk());
    for (const char* const table : {"text", "artifact"}) {
      EXPECT_EQ(
          connection_->QueryInt64(std::string("SELECT MIN(put_unix_ms) FROM ") + table).value(),
          keep_unix_ms);
    }
  };
  compact(1000);
  const int first = CompiledStatements();
  EXPECT_GT(first, 0);
  compact(2000);
  EXPECT_EQ(CompiledStatements(), first);
}

TEST_F(RetentionTest, RemovesAFewHundredRowsAtATime) {
  InsertRecords(1000);
  HONE_ASSERT_OK_AND_ASSIGN(
      const CompactReport report,
      RemoveOldRows(
          access_, {.before = CompactOptions::All(INT64_MAX), .keep_best = 10, .keep_sample = 20}));
  EXPECT_EQ(report.records.rows, 970);
  EXPECT_EQ(connection_->QueryInt64("SELECT COUNT(*) FROM record").value(), 30);
  EXPECT_GT(most_changes_, 50);
  EXPECT_LE(most_changes_, 200);
}

// The job has no records yet, and its row was not there when the compaction began.
TEST_F(RetentionTest, AJobThatBeginsMeanwhileKeepsTheOldRecordsOfItsTask) {
  InsertRecords(1000);
  access_.write = [this](const RetentionAccess::Work& work) {
    const int64_t before = connection_->Changes();
    const absl::Status status = work(*connection_);
    if (connection_->Changes() == before) return status;
    // The first records are removed. The job puts the text of its workload.
    EXPECT_THAT(InsertText(*connection_, ScreenedRecord(10).workload_digest, "workload", kNow + 1),
                IsOk());
    return status;
  };
  HONE_ASSERT_OK_AND_ASSIGN(
      const CompactReport report,
      RemoveOldRows(
          access_, {.before = CompactOptions::All(INT64_MAX), .keep_best = 10, .keep_sample = 20}));
  EXPECT_EQ(report.records.rows, 200);
  EXPECT_EQ(connection_->QueryInt64("SELECT COUNT(*) FROM record").value(), 800);
  HONE_ASSERT_OK_AND_ASSIGN(
      const CompactReport again,
      RemoveOldRows(
          access_, {.before = CompactOptions::All(INT64_MAX), .keep_best = 10, .keep_sample = 20}));
  EXPECT_EQ(again.records.rows, 0);
}

}  // namespace
}  // namespace hone::store
