// Behavior specific to stores on PostgreSQL: server replicas that share a store, and connections
// that break.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/store/postgres/committer.h"
#include "server/store/postgres/connection.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/postgres/schema.h"
#include "tests/server/store/done.h"
#include "tests/server/store/postgres_server.h"
#include "tests/server/store/store_rows.h"
#include "tests/status.h"

namespace hone::store {
namespace {

using testing::HasSubstr;
using testing::Not;

class PostgresTest : public testing::Test {
 protected:
  void SetUp() override {
    if (PostgresPrograms().empty()) GTEST_SKIP() << "PostgreSQL is not installed: postgresql-15";
    HONE_ASSERT_OK_AND_ASSIGN(server_, PostgresServer::Get());
    uri_ = server_->DatabaseOf(folder_.path()).value();
  }
  std::unique_ptr<Store> Open(const PostgresStoreOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenPostgresStore(uri_, options);
    EXPECT_THAT(store, IsOk());
    return store.ok() ? *std::move(store) : nullptr;
  }
  // Breaks every connection to this test's database.
  void BreakConnections() {
    const std::string name = folder_.path().substr(folder_.path().rfind('/') + 1);
    ASSERT_TRUE(server_
                    ->Administer(absl::StrCat("SELECT pg_terminate_backend(pid) FROM"
                                              " pg_stat_activity WHERE datname = '",
                                              name, "'"))
                    .ok());
  }

  TemporaryFolder folder_;
  PostgresServer* server_ = nullptr;
  std::string uri_;
};

TEST_F(PostgresTest, TwoReplicasNeverClaimTheSameJob) {
  const auto one = Open();
  const auto two = Open();
  constexpr int kJobs = 60;
  for (int i = 0; i < kJobs; ++i) ASSERT_THAT(PutJob(*one, PendingJob(absl::StrCat(i))), IsOk());
  std::vector<std::string> claimed[2];
  std::thread threads[2];
  for (int t = 0; t < 2; ++t) {
    threads[t] = std::thread([&, t] {
      const JobClaim claim{
          .replica = absl::StrCat("replica ", t), .now_unix_ms = 10, .until_unix_ms = 100};
      while (true) {
        HONE_ASSERT_OK_AND_ASSIGN(const auto jobs, ClaimJobs(t == 0 ? *one : *two, claim, 1));
        if (jobs.empty()) return;
        claimed[t].push_back(jobs.front().id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all(claimed[0].begin(), claimed[0].end());
  all.insert(claimed[1].begin(), claimed[1].end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kJobs));
  EXPECT_EQ(claimed[0].size() + claimed[1].size(), static_cast<size_t>(kJobs))
      << "a job was claimed twice";
}

TEST_F(PostgresTest, WriteRejectedByAFenceLeavesNothing) {
  const auto store = Open();
  ASSERT_THAT(PutJob(*store, PendingJob("a")), IsOk());
  record::Record record = ScreenedRecord();
  record.environment.cpu = "of who lost the job";
  EXPECT_THAT(Append(*store, record, {"a", 7}), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Append(*store, record, {"a", 0, 3}), StatusIs(absl::StatusCode::kFailedPrecondition));
  const auto connection = PostgresConnection::Open(uri_).value();
  const auto environments = [&] {
    PostgresRows rows = connection->Query("SELECT COUNT(*) FROM environment").value();
    rows.Next();
    return rows.Int64();
  };
  EXPECT_EQ(environments(), 0);
  ASSERT_THAT(Append(*store, record, {"a", 0}), IsOk());
  EXPECT_EQ(environments(), 1);
}

TEST_F(PostgresTest, InterleavedWritesHaveIncreasingIds) {
  const auto one = Open();
  const auto two = Open();
  std::atomic<int64_t> last_seen = 0;
  std::atomic<bool> stop = false;
  // A reader that continues after the last id it has seen misses no record.
  std::set<int64_t> seen;
  std::thread reader([&] {
    while (!stop) {
      const auto page = one->Query({.page_size = 1000, .after_id = last_seen}).value();
      for (const record::Record& record : page) {
        seen.insert(record.id);
        last_seen = record.id;
      }
    }
  });
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) two->Append(ScreenedRecord(200 + i), [](auto) {});
    EXPECT_THAT(two->Flush(), IsOk());
  });
  for (int i = 0; i < 300; ++i) one->Append(ScreenedRecord(100 + i), [](auto) {});
  EXPECT_THAT(one->Flush(), IsOk());
  writer.join();
  stop = true;
  reader.join();
  const auto rest = two->Query({.page_size = 1000, .after_id = last_seen}).value();
  for (const record::Record& record : rest) {
    seen.insert(record.id);
  }
  EXPECT_EQ(seen.size(), 600u);
}

TEST_F(PostgresTest, BrokenConnectionNeitherLosesNorDuplicates) {
  const auto store = Open();
  constexpr int kRecords = 3000;
  std::atomic<int> acknowledged = 0;
  std::thread breaking([&] {
    for (int next = 200; next < kRecords; next += 600) {
      while (acknowledged < next) std::this_thread::yield();
      BreakConnections();
    }
  });
  std::set<int64_t> ids;
  for (int i = 0; i < kRecords; ++i) {
    store->Append(ScreenedRecord(100 + i), [&](absl::StatusOr<record::Record> record) {
      EXPECT_THAT(record, IsOk());
      if (record.ok()) ids.insert(record->id);
      ++acknowledged;
    });
    if (i % 100 == 0) {
      EXPECT_THAT(store->Flush(), IsOk());
    }
  }
  EXPECT_THAT(store->Flush(), IsOk());
  breaking.join();
  std::set<int64_t> found;
  std::set<double> latencies;
  for (int64_t after = 0;;) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto page,
                              store->Query({.page_size = 1000, .after_id = after}));
    if (page.empty()) break;
    for (const record::Record& record : page) {
      found.insert(record.id);
      EXPECT_TRUE(latencies.insert(record.result.latency_ns).second) << "written twice";
    }
    after = page.back().id;
  }
  EXPECT_EQ(found, ids);
  EXPECT_EQ(found.size(), static_cast<size_t>(kRecords));
}

TEST_F(PostgresTest, UnstorableTextIsRejectedAlone) {
  const auto store = Open();
  absl::Status nul, invalid, good;
  store->PutText("good", "text", [&](absl::Status status) { good = status; });
  store->PutText("nul", std::string("a\0b", 3), [&](absl::Status status) { nul = status; });
  store->PutText("invalid", "\xff\xfe", [&](absl::Status status) { invalid = status; });
  store->PutText("after", "text", [&](absl::Status status) { good.Update(status); });
  store->Flush().IgnoreError();
  EXPECT_THAT(nul, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NUL")));
  EXPECT_THAT(invalid, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(good, IsOk());
  EXPECT_EQ(store->GetText("after").value(), "text");
}

TEST_F(PostgresTest, MigratesAnOlderDatabase) {
  ASSERT_THAT(PutText(*Open(), "t", "text"), IsOk());
  const auto connection = PostgresConnection::Open(uri_).value();
  std::vector<const char*> migrations = PostgresMigrations();
  migrations.push_back(
      "ALTER TABLE text ADD COLUMN pages bigint NOT NULL DEFAULT 3;"
      "INSERT INTO nowhere VALUES (1)");
  EXPECT_FALSE(MigratePostgres(*connection, migrations).ok());
  EXPECT_THAT(MigratePostgres(*connection, PostgresMigrations()), IsOk()) << "nothing was changed";
  migrations.back() = "ALTER TABLE text ADD COLUMN pages bigint NOT NULL DEFAULT 3";
  ASSERT_THAT(MigratePostgres(*connection, migrations), IsOk());
  PostgresRows rows = connection->Query("SELECT text, pages FROM text").value();
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Text(), "text");
  EXPECT_EQ(rows.Int64(), 3);
  EXPECT_THAT(OpenPostgresStore(uri_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                HasSubstr("start the newer Hone that wrote it")));
}

// A replica that stops within a transaction holds the write lock. The other replicas get the lock
// within the time that a claim of a job lasts.
TEST_F(PostgresTest, StoppedReplicaDoesNotBlockTheOthers) {
  const auto store = Open();
  const auto stopped = PostgresConnection::Open(uri_).value();
  ASSERT_THAT(stopped->Execute("BEGIN"), IsOk());
  ASSERT_THAT(stopped->Query(kTakeWriteLock), IsOk());
  const absl::StatusOr<record::Record> record = Append(*store, ScreenedRecord());
  EXPECT_THAT(record, IsOk());
  EXPECT_FALSE(stopped->Execute("COMMIT").ok()) << "its transaction was aborted";
}

// A replica that commits after another replica's claim is refused, no matter what either has
// queued.
TEST_F(PostgresTest, OnlyTheJobHolderCommitsRecords) {
  const auto one = Open();
  const auto two = Open();
  JobRow job = PendingJob("a");
  job.lease_until_unix_ms = 10;
  job.fence = 1;
  ASSERT_THAT(PutJob(*one, job), IsOk());
  std::atomic<int> kept = 0, refused = 0;
  std::thread writing([&] {
    for (int i = 0; refused == 0 && i < 100'000; ++i) {
      const absl::StatusOr<record::Record> record =
          Append(*one, ScreenedRecord(1 + i), JobFence{"a", 1});
      EXPECT_TRUE(record.ok() || absl::IsAborted(record.status())) << record.status();
      ++(record.ok() ? kept : refused);
    }
  });
  while (kept < 20) std::this_thread::yield();
  ASSERT_EQ(ClaimJobs(*two, {"two", 11, 20})->size(), 1u);
  // From here on, the first replica commits nothing.
  const size_t at_the_claim = two->Query({.page_size = 1000})->size();
  writing.join();
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(two->Query({.page_size = 1000})->size(), at_the_claim);
  EXPECT_EQ(static_cast<int>(at_the_claim), kept);
  EXPECT_THAT(Append(*two, ScreenedRecord(1e6), JobFence{"a", 2}), IsOk());
}

TEST_F(PostgresTest, ADatabaseOfAnotherProgramIsRefused) {
  TemporaryFolder other;
  const std::string foreign = server_->DatabaseOf(other.path()).value();
  ASSERT_THAT(PostgresConnection::Open(foreign).value()->Execute("CREATE TABLE cookies (x int)"),
              IsOk());
  EXPECT_THAT(OpenPostgresStore(foreign),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another program")));
}

TEST_F(PostgresTest, MessagesDoNotContainPasswords) {
  for (const std::string& uri :
       {std::string("postgresql://hone:s3cret@/nowhere?host=/nowhere"),
        std::string("postgresql://hone:s3cret@/nowhere?host=") + folder_.path(),
        std::string("postgresql://hone:s3cret@[bad/nowhere"),
        std::string("postgresql://hone:s3cret?s3cret@nowhere/x")}) {
    const absl::Status status = OpenStore(uri).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.ToString(), Not(HasSubstr("s3cret")));
    EXPECT_THAT(StoreName(uri), Not(HasSubstr("s3cret")));
  }
  EXPECT_EQ(StoreName("postgresql://hone:s3cret@db.internal:5432/hone"),
            "postgresql://hone@db.internal:5432/hone");
  EXPECT_EQ(StoreName("postgresql://hone@/hone?host=/run&password=s3cret"),
            "postgresql://hone@/hone");
  EXPECT_EQ(StoreName("/var/lib/hone/a:b@c.db"), "/var/lib/hone/a:b@c.db");
}

}  // namespace
}  // namespace hone::store
