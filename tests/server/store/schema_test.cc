#include "server/store/sqlite/schema.h"

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/store.h"
#include "tests/server/store/done.h"
#include "tests/server/store/store_rows.h"
#include "tests/server/store/temporary_folder.h"

namespace hone::store {
namespace {

std::unique_ptr<SqliteConnection> Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<SqliteConnection>> connection =
      SqliteConnection::OpenForWriting(path);
  EXPECT_TRUE(connection.ok()) << connection.status();
  return *std::move(connection);
}

std::vector<Migration> Two() {
  return {
      {1, "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (7)"},
      {2, "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 3; CREATE TABLE b (z TEXT) STRICT"}};
}

class SchemaTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string path_ = folder_.File("hone.db");
};

TEST_F(SchemaTest, VersionsAreNumberedFromOne) {
  for (size_t i = 0; i < Migrations().size(); ++i) {
    EXPECT_EQ(Migrations()[i].version, static_cast<int>(i) + 1);
  }
}

TEST_F(SchemaTest, EveryTableIsStrict) {
  auto connection = Open(path_);
  ASSERT_TRUE(Migrate(*connection, Migrations()).ok());
  EXPECT_EQ(connection
                ->QueryInt64("SELECT COUNT(*) FROM pragma_table_list WHERE schema = 'main' AND"
                             " type = 'table' AND name NOT LIKE 'sqlite%' AND NOT strict")
                .value(),
            0);
}

TEST_F(SchemaTest, MigratesAnOlderStore) {
  std::vector<Migration> migrations = Two();
  const Migration second = migrations.back();
  migrations.pop_back();
  ASSERT_TRUE(Migrate(*Open(path_), migrations).ok());
  migrations.push_back(second);
  auto connection = Open(path_);
  ASSERT_TRUE(CheckVersion(*connection, migrations).ok());
  ASSERT_TRUE(Migrate(*connection, migrations).ok());
  EXPECT_EQ(connection->QueryInt64("PRAGMA user_version").value(), 2);
  EXPECT_EQ(connection->QueryInt64("PRAGMA application_id").value(), kApplicationId);
  EXPECT_EQ(connection->QueryInt64("SELECT x * 10 + y FROM a").value(), 73);
  EXPECT_TRUE(CheckSchema(*connection, migrations).ok());
}

TEST_F(SchemaTest, FailedMigrationKeepsThePreviousVersion) {
  std::vector<Migration> migrations = Two();
  migrations[1].sql = "CREATE TABLE b (z TEXT) STRICT; INSERT INTO nowhere VALUES (1)";
  auto connection = Open(path_);
  const absl::Status status = Migrate(*connection, migrations);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "migration to schema 2")) << status;
  EXPECT_EQ(connection->QueryInt64("PRAGMA user_version").value(), 1);
  EXPECT_EQ(connection->QueryInt64("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'b'").value(),
            0);
  EXPECT_TRUE(Migrate(*connection, Two()).ok());
}

TEST_F(SchemaTest, DetectsADifferentSchema) {
  auto connection = Open(path_);
  ASSERT_TRUE(Migrate(*connection, Migrations()).ok());
  ASSERT_TRUE(CheckSchema(*connection, Migrations()).ok());
  ASSERT_TRUE(connection->Execute("DROP INDEX best_lookup").ok());
  const absl::Status missing = CheckSchema(*connection, Migrations());
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_TRUE(absl::StrContains(missing.message(), "best_lookup")) << missing;
}

// Databases of every released schema must remain readable.
class OldSchemaTest : public SchemaTest, public testing::WithParamInterface<int> {
 protected:
  // Opens a store of the parameter's schema with the current program.
  std::unique_ptr<Store> OpenDump() {
    absl::StatusOr<std::string> sql =
        ReadFile(absl::StrCat("tests/server/store/testdata/schema_", GetParam(), ".sql"));
    EXPECT_TRUE(sql.ok()) << sql.status();
    EXPECT_TRUE(Open(path_)->Execute(*sql).ok());
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
};

TEST_P(OldSchemaTest, OpensAndReads) {
  const std::unique_ptr<Store> store = OpenDump();
  ASSERT_NE(store, nullptr);
  const absl::StatusOr<BestRow> best = store->LookupBest(
      {.workload_digest = kWorkload, .target = kTarget, .tolerance = 1e-5, .policy = ""});
  ASSERT_TRUE(best.ok()) << best.status();
  record::Record expected = ConfirmedRecord();
  expected.id = 1;
  expected.result.processes = 0;  // its detail is another text
  if (GetParam() < 9) expected.result.inputs = "";
  if (GetParam() < 3) {  // older schemas do not store these
    expected.policy.repeats = 0;
    expected.policy.confidence = 0;
    expected.result.machine = {};
  }
  ExpectEqual(best->record, expected);
  EXPECT_EQ(store->GetArtifact(kArtifact).value(), "the artifact");
  EXPECT_EQ(store->GetJob("job-1").value().request, PendingJob("job-1").request);
  EXPECT_EQ(store->Events("job-1").value().size(), 2u);
}

TEST_P(OldSchemaTest, TheNumberOfProcessesIsMovedOutOfTheDetail) {
  if (GetParam() > 7) GTEST_SKIP() << "this schema has the field";
  absl::StatusOr<std::string> sql =
      ReadFile(absl::StrCat("tests/server/store/testdata/schema_", GetParam(), ".sql"));
  ASSERT_TRUE(sql.ok()) << sql.status();
  absl::StrAppend(&*sql, "UPDATE record SET detail = 'median of 3 processes' WHERE id = 1;");
  ASSERT_TRUE(Open(path_)->Execute(*sql).ok());
  const absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::vector<record::Record> records = (*store)->Query({}).value();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].result.processes, 3);
  EXPECT_EQ(records[0].result.detail, "");
  EXPECT_EQ(records[1].result.processes, 0);
}

TEST_P(OldSchemaTest, JobsGetDefaultsForNewFields) {
  const std::unique_ptr<Store> store = OpenDump();
  ASSERT_NE(store, nullptr);
  ASSERT_TRUE(store->Flush().ok());
  const JobRow job = store->GetJob("job-1").value();
  EXPECT_EQ(job.owner, GetParam() < 3 ? "" : "somebody");
  EXPECT_EQ(job.priority, GetParam() < 3 ? "normal" : "high");
  EXPECT_EQ(job.lease_until_unix_ms, 0) << "no process has claimed it";
  EXPECT_EQ(store->Identity().value().size(), 16u);
}

// Stores of every schema can shrink after the migration.
TEST_P(OldSchemaTest, CompactionShrinksTheFile) {
  std::unique_ptr<Store> store = OpenDump();
  ASSERT_NE(store, nullptr);
  JobRow job = store->GetJob("job-1").value();
  job.state = "done";  // an unfinished job would keep the text
  ASSERT_TRUE(PutJob(*store, job).ok());
  ASSERT_TRUE(PutText(*store, "large", std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE(Compact(*store, {.keep_unix_ms = INT64_MAX}).ok());
  store.reset();
  EXPECT_EQ(Open(path_)->QueryInt64("PRAGMA auto_vacuum").value(), 2);
  EXPECT_LT(Open(path_)->SizeBytes().value(), 1 << 19);
}

TEST_P(OldSchemaTest, KeepsModels) {
  const std::unique_ptr<Store> store = OpenDump();
  ASSERT_NE(store, nullptr);
  const ModelKey key{"xgboost", "statement", kTarget, "matmul"};
  if (GetParam() == 1) {
    EXPECT_TRUE(absl::IsNotFound(store->GetModel(key).status()));
    ASSERT_TRUE(PutModel(*store, {.key = key, .bytes = "the trees"}).ok());
  }
  EXPECT_EQ(store->GetModel(key).value().bytes, "the trees");
}

TEST_P(OldSchemaTest, KeepsWorkerStates) {
  const std::unique_ptr<Store> store = OpenDump();
  ASSERT_NE(store, nullptr);
  std::vector<WorkerStanding> expected;
  if (GetParam() >= 4) {
    expected = {{.worker_id = "pi-07", .drained = true, .since_unix_ms = 1700000000123},
                {.worker_id = "pi-08",
                 .refused = "it reported what cannot be: 5000 ns",
                 .since_unix_ms = 1700000000124}};
  }
  EXPECT_EQ(store->Standings().value(), expected);
  ASSERT_TRUE(PutStanding(*store, {.worker_id = "w", .drained = true}).ok());
  EXPECT_EQ(store->Standings()->size(), expected.size() + 1);
}

TEST_P(OldSchemaTest, KeepsPins) {
  const std::unique_ptr<Store> store = OpenDump();
  ASSERT_NE(store, nullptr);
  const TaskKey task{.workload_digest = kWorkload, .target = kTarget, .tolerance = 1e-5};
  if (GetParam() < 6) {
    EXPECT_THAT(store->PinnedBests().value(), testing::IsEmpty());
    ASSERT_TRUE(PinBest(*store, task).ok());
  } else {
    EXPECT_EQ(store->PinnedBests()->at(0).pin, (Pin{"somebody", 1700000000125}));
  }
  ASSERT_EQ(store->PinnedBests()->size(), 1u);
  EXPECT_EQ(store->PinnedBests()->at(0).record.id, 1);
}

INSTANTIATE_TEST_SUITE_P(Versions, OldSchemaTest,
                         testing::Range(1, static_cast<int>(Migrations().size()) + 1));

}  // namespace
}  // namespace hone::store
