#include "server/store/sqlite/compaction.h"

#include <sqlite3.h>

#include <string>

#include "gtest/gtest.h"
#include "server/store/sqlite/schema.h"
#include "server/store/tables.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::store {
namespace {

// The number of statements that a connection keeps compiled.
int CompiledStatements(SqliteConnection& connection) {
  int count = 0;
  sqlite3_stmt* statement = nullptr;
  while ((statement = sqlite3_next_stmt(connection.database(), statement)) != nullptr) ++count;
  return count;
}

TEST(CompactionTest, ACompactionWithAnotherTimeLimitCompilesNoMoreStatements) {
  TemporaryFolder folder;
  const auto connection = SqliteConnection::OpenForWriting(folder / "hone.db").value();
  ASSERT_THAT(connection->SetUpForWriting(), IsOk());
  ASSERT_THAT(Migrate(*connection, SqliteMigrations()), IsOk());
  const auto run = [&](const CompactionAccess::Work& work) { return work(*connection); };
  const CompactionAccess access{.read = run, .write = run, .cancelled = [] { return false; }};
  const auto compact = [&](int64_t keep_unix_ms) {
    for (const int64_t put : {keep_unix_ms - 1, keep_unix_ms}) {
      const std::string digest = std::to_string(put);
      EXPECT_THAT(InsertText(*connection, digest, "text", put), IsOk());
      EXPECT_THAT(InsertArtifact(*connection, digest, "bytes", put), IsOk());
    }
    const absl::StatusOr<CompactReport> report =
        CompactStore(access, {.keep_unix_ms = keep_unix_ms});
    ASSERT_THAT(report, IsOk());
    for (const char* const table : {"text", "artifact"}) {
      EXPECT_EQ(
          connection->QueryInt64(std::string("SELECT MIN(put_unix_ms) FROM ") + table).value(),
          keep_unix_ms);
    }
  };
  compact(1000);
  const int first = CompiledStatements(*connection);
  EXPECT_GT(first, 0);
  compact(2000);
  EXPECT_EQ(CompiledStatements(*connection), first);
}

}  // namespace
}  // namespace hone::store
