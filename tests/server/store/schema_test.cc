#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::store {
namespace {

std::unique_ptr<SqliteConnection> Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<SqliteConnection>> connection =
      SqliteConnection::OpenForWriting(path);
  EXPECT_THAT(connection, IsOk());
  return *std::move(connection);
}

constexpr char kOne[] = "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (7)";
constexpr char kTwo[] =
    "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 3; CREATE TABLE b (z TEXT) STRICT";

class SchemaTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string path_ = folder_ / "hone.db";
};

TEST_F(SchemaTest, EveryTableIsStrict) {
  auto connection = Open(path_);
  ASSERT_THAT(Migrate(*connection, SqliteMigrations()), IsOk());
  EXPECT_EQ(connection
                ->QueryInt64("SELECT COUNT(*) FROM pragma_table_list WHERE schema = 'main' AND"
                             " type = 'table' AND name NOT LIKE 'sqlite%' AND NOT strict")
                .value(),
            0);
}

TEST_F(SchemaTest, MigratesAnOlderStore) {
  ASSERT_THAT(Migrate(*Open(path_), {kOne}), IsOk());
  auto connection = Open(path_);
  ASSERT_THAT(CheckVersion(*connection, {kOne, kTwo}), IsOk());
  ASSERT_THAT(CheckSchema(*connection, {kOne, kTwo}), IsOk()) << "it is a store of version 1";
  ASSERT_THAT(Migrate(*connection, {kOne, kTwo}), IsOk());
  EXPECT_EQ(connection->QueryInt64("PRAGMA user_version").value(), 2);
  EXPECT_EQ(connection->QueryInt64("PRAGMA application_id").value(), kApplicationId);
  EXPECT_EQ(connection->QueryInt64("SELECT x * 10 + y FROM a").value(), 73);
  EXPECT_THAT(CheckSchema(*connection, {kOne, kTwo}), IsOk());
  const absl::Status newer = CheckVersion(*connection, {kOne});
  EXPECT_THAT(newer, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(absl::StrContains(newer.message(), "start the newer Hone that wrote it")) << newer;
}

TEST_F(SchemaTest, FailedMigrationKeepsThePreviousVersion) {
  auto connection = Open(path_);
  const absl::Status status = Migrate(
      *connection, {kOne, "CREATE TABLE b (z TEXT) STRICT; INSERT INTO nowhere VALUES (1)"});
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "migration to schema 2")) << status;
  EXPECT_EQ(connection->QueryInt64("PRAGMA user_version").value(), 1);
  EXPECT_EQ(connection->QueryInt64("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'b'").value(),
            0);
  EXPECT_THAT(Migrate(*connection, {kOne, kTwo}), IsOk());
}

// The migration of a damaged store could lose what can still be saved.
TEST_F(SchemaTest, ADamagedStoreOfAnOlderSchemaIsRefused) {
  ASSERT_THAT(Migrate(*Open(path_), {kOne}), IsOk());
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(size - 4096);
  file << std::string(2000, '\x55');
  file.close();
  EXPECT_THAT(CheckVersion(*Open(path_), {kOne}), IsOk());
  EXPECT_THAT(CheckVersion(*Open(path_), {kOne, kTwo}), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(SchemaTest, DetectsADifferentSchema) {
  auto connection = Open(path_);
  ASSERT_THAT(Migrate(*connection, SqliteMigrations()), IsOk());
  ASSERT_THAT(CheckSchema(*connection, SqliteMigrations()), IsOk());
  ASSERT_THAT(connection->Execute("DROP INDEX best_lookup"), IsOk());
  const absl::Status missing = CheckSchema(*connection, SqliteMigrations());
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(absl::StrContains(missing.message(), "best_lookup")) << missing;
}

}  // namespace
}  // namespace hone::store
