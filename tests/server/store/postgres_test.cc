// Behavior specific to stores on PostgreSQL: the leader and its standbys, and connections that
// break.
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "server/store/postgres/connection.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/read_limit.h"
#include "tests/server/store/done.h"
#include "tests/server/store/postgres_server.h"
#include "tests/server/store/store_factories.h"
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
  std::unique_ptr<Store> Open() {
    std::unique_ptr<Store> store = OpenStandby();
    EXPECT_TRUE(store != nullptr && LeadsSoon(*store));
    return store;
  }
  std::unique_ptr<Store> OpenStandby() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenPostgresStore(uri_);
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

TEST_F(PostgresTest, OneServerLeadsAndTheNextOneFollows) {
  auto one = Open();
  const auto two = OpenStandby();
  EXPECT_FALSE(two->Lead().value());
  EXPECT_THAT(PutText(*two, "t", "of a standby"), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(two->KeepLeading(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(PutText(*one, "t", "of the leader"), IsOk());
  EXPECT_EQ(two->GetText("t").value(), "of the leader");
  EXPECT_THAT(one->KeepLeading(), IsOk());
  one.reset();
  EXPECT_TRUE(LeadsSoon(*two));
  EXPECT_THAT(PutText(*two, "u", "of the next leader"), IsOk());
}

TEST_F(PostgresTest, AReadThatNobodyWaitsForIsCancelledInTheDatabase) {
  const auto connection = PostgresConnection::Open(uri_).value();
  const absl::Time begin = SteadyNow();
  {
    const auto check = [&] {
      return SteadyNow() < begin + absl::Milliseconds(200) ? absl::OkStatus()
                                                           : absl::CancelledError("gone");
    };
    const ReadLimit limit(check);
    EXPECT_THAT(connection->Query("SELECT pg_sleep(60)").status(),
                StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(30));
  EXPECT_FALSE(connection->IsLost());
  PostgresRows rows = connection->Query("SELECT 1").value();
  ASSERT_TRUE(rows.Next()) << "the connection can be used again";
  EXPECT_EQ(rows.Int64(), 1);
}

TEST_F(PostgresTest, ADeposedLeaderCommitsNothing) {
  const auto one = Open();
  const auto two = OpenStandby();
  std::atomic<int> kept = 0, refused = 0;
  std::thread writing([&] {
    for (int i = 0; refused == 0 && i < 100'000; ++i) {
      const absl::StatusOr<record::Record> record = Append(*one, ScreenedRecord(1 + i));
      EXPECT_TRUE(record.ok() || absl::IsAborted(record.status())) << record.status();
      ++(record.ok() ? kept : refused);
    }
  });
  while (kept < 20) std::this_thread::yield();
  // The first server may be faster and continue its epoch.
  while (!two->Lead().value()) {
    EXPECT_THAT(server_->Administer("SELECT pg_terminate_backend(pid) FROM pg_locks"
                                    " WHERE locktype = 'advisory' AND granted"),
                IsOk());
  }
  const size_t at_the_take_over = two->Query({.page_size = 1000, .newest_first = true})->size();
  writing.join();
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(two->Query({.page_size = 1000, .newest_first = true})->size(), at_the_take_over);
  EXPECT_THAT(one->KeepLeading(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(one->Compact({.before = CompactOptions::All(1)}, [] { return false; }),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Append(*two, ScreenedRecord(1e6)), IsOk());
  EXPECT_FALSE(one->Lead().value());
}

TEST_F(PostgresTest, ARecordOfAnUnstoredEventLeavesNothing) {
  const auto store = Open();
  ASSERT_THAT(PutJob(*store, PendingJob("a")), IsOk());
  record::Record record = ScreenedRecord();
  record.environment.cpu = "of nothing";
  EXPECT_THAT(Append(*store, record, {"a", 3}), StatusIs(absl::StatusCode::kFailedPrecondition));
  const auto connection = PostgresConnection::Open(uri_).value();
  const auto environments = [&] {
    PostgresRows rows = connection->Query("SELECT COUNT(*) FROM environment").value();
    rows.Next();
    return rows.Int64();
  };
  EXPECT_EQ(environments(), 0);
  ASSERT_THAT(Append(*store, record, {"a"}), IsOk());
  EXPECT_EQ(environments(), 1);
}

// A group of one write, which says when its connection breaks.
class CommitterTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    OpenStandby();  // makes the tables
    committer_ = std::make_unique<PostgresCommitter>(uri_);
    ASSERT_TRUE(committer_->Lead().value());
  }
  absl::Status Commit(absl::AnyInvocable<absl::Status(PostgresConnection&)> apply) {
    QueuedWrite<PostgresWork> write{.work = {.apply = std::move(apply)}};
    return committer_->Commit({&write});
  }
  static absl::Status Insert(PostgresConnection& connection, const std::string& digest) {
    return connection.Execute(absl::StrCat("INSERT INTO text VALUES ('", digest, "', '', 0)"));
  }
  // Ends the session of the connection.
  static absl::Status Break(PostgresConnection& connection) {
    return connection.Execute("SELECT pg_terminate_backend(pg_backend_pid())");
  }
  int Rows() {
    const auto connection = PostgresConnection::Open(uri_).value();
    PostgresRows rows = connection->Query("SELECT COUNT(*) FROM text").value();
    rows.Next();
    return static_cast<int>(rows.Int64());
  }

  std::unique_ptr<PostgresCommitter> committer_;
};

TEST_F(CommitterTest, ACommittedGroupIsRecognisedAfterALostConnection) {
  int runs = 0;
  EXPECT_THAT(Commit([&](PostgresConnection& connection) {
                ++runs;
                HONE_RETURN_IF_ERROR(Insert(connection, "a"));
                HONE_RETURN_IF_ERROR(connection.Execute("COMMIT"));
                return Break(connection);
              }),
              IsOk());
  EXPECT_EQ(runs, 1) << "it was committed the first time";
  EXPECT_EQ(Rows(), 1);
  EXPECT_THAT(Commit([](PostgresConnection& connection) { return Insert(connection, "b"); }),
              IsOk());
  EXPECT_EQ(Rows(), 2) << "the next group is not taken for the one before";
}

TEST_F(CommitterTest, AGroupThatWasNotCommittedRunsAgain) {
  int runs = 0;
  EXPECT_THAT(Commit([&](PostgresConnection& connection) {
                HONE_RETURN_IF_ERROR(Insert(connection, "a"));
                return ++runs == 1 ? Break(connection) : absl::OkStatus();
              }),
              IsOk());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(Rows(), 1);
}

// The connection breaks during the commit, and the next attempt fails for another reason.
TEST_F(CommitterTest, AFailedGroupIsNotReportedAsCommitted) {
  int runs = 0;
  EXPECT_THAT(Commit([&](PostgresConnection& connection) -> absl::Status {
                if (++runs == 2) return absl::PermissionDeniedError("this group must not run");
                HONE_RETURN_IF_ERROR(Insert(connection, "lost"));
                return Break(connection);
              }),
              StatusIs(absl::StatusCode::kPermissionDenied));
  bool ran = false;
  EXPECT_THAT(Commit([&](PostgresConnection& connection) {
                ran = true;
                return Insert(connection, "a");
              }),
              IsOk());
  EXPECT_TRUE(ran);
  EXPECT_EQ(Rows(), 1);
}

// Another server has begun an epoch: the outcome is unknown, but it is not reported as committed.
TEST_F(CommitterTest, AGroupOfADeposedLeaderIsNotCommitted) {
  PostgresCommitter next(uri_);
  EXPECT_THAT(Commit([&](PostgresConnection& connection) {
                HONE_RETURN_IF_ERROR(Insert(connection, "a"));
                const absl::Status broken = Break(connection);
                while (!next.Lead().value()) std::this_thread::yield();
                return broken;
              }),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("another server leads")));
  EXPECT_EQ(Rows(), 0);
  EXPECT_THAT(committer_->leading(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_GT(next.epoch(), committer_->epoch());
}

// As after a failover to a replica that had not received everything.
TEST_F(CommitterTest, ADatabaseThatLostCommitsDeposesTheLeader) {
  for (const char* const digest : {"a", "b"}) {
    ASSERT_THAT(Commit([&](PostgresConnection& connection) { return Insert(connection, digest); }),
                IsOk());
  }
  const auto connection = PostgresConnection::Open(uri_).value();
  ASSERT_THAT(connection->Execute("UPDATE leader SET last_group = last_group - 1"), IsOk());
  EXPECT_THAT(Commit(Break), StatusIs(absl::StatusCode::kAborted, HasSubstr("lost commits")));
}

TEST_F(CommitterTest, ADatabaseThatOnlyReadsDeposesTheLeader) {
  const auto connection = PostgresConnection::Open(uri_).value();
  const std::string name = folder_.path().substr(folder_.path().rfind('/') + 1);
  const auto set = [&](const char* setting) {
    return connection->Execute(absl::StrCat("ALTER DATABASE \"", name, "\" SET ", setting));
  };
  ASSERT_THAT(set("default_transaction_read_only = on"), IsOk());
  EXPECT_THAT(Commit(Break), StatusIs(absl::StatusCode::kAborted, HasSubstr("only accepts reads")));
  EXPECT_THAT(committer_->Lead(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("only accepts reads")));
  ASSERT_THAT(connection->Execute("SET default_transaction_read_only = off"), IsOk());
  ASSERT_THAT(set("default_transaction_read_only = off"), IsOk());
  ASSERT_THAT(set("synchronous_commit = off"), IsOk());
  EXPECT_THAT(OpenPostgresStore(uri_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("synchronous_commit")));
  ASSERT_THAT(set("synchronous_commit = on"), IsOk());
  EXPECT_TRUE(committer_->Lead().value()) << "it competes again";
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

// A job whose read fails is left to the next leader, which may be this server.
TEST_F(PostgresTest, AFailedReadEndsTheLeadership) {
  const auto store = Open();
  ASSERT_THAT(PutText(*store, "t", "text"), IsOk());
  const std::string name = folder_.path().substr(folder_.path().rfind('/') + 1);
  const auto allow = [&](const char* allowed) {
    ASSERT_THAT(server_->Administer(
                    absl::StrCat("ALTER DATABASE \"", name, "\" ALLOW_CONNECTIONS ", allowed)),
                IsOk());
  };
  allow("false");
  BreakConnections();
  EXPECT_THAT(store->Leading(), IsOk()) << "nothing was read or written";
  EXPECT_THAT(store->GetText("t"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->Leading(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(store->KeepLeading(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(PutText(*store, "u", "text"), StatusIs(absl::StatusCode::kAborted));
  allow("true");
  // The first attempt may find out that its connection is broken.
  ASSERT_TRUE(store->Lead().value_or(false) || LeadsSoon(*store));
  EXPECT_EQ(store->GetText("t").value(), "text");
  EXPECT_THAT(PutText(*store, "u", "text"), IsOk());
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

// A leader that stops, or whose machine is lost, keeps its session. The database ends it.
TEST_F(PostgresTest, AStoppedLeaderIsReplaced) {
  PostgresCommitter stopped(uri_);
  const auto next = OpenStandby();
  ASSERT_TRUE(stopped.Lead().value());
  const absl::Time began = SteadyNow();
  while (!next->Lead().value() && SteadyNow() < began + absl::Minutes(1)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_THAT(Append(*next, ScreenedRecord()), IsOk());
  EXPECT_LT(SteadyNow() - began, absl::Seconds(30));
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
