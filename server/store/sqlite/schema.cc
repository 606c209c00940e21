#include "server/store/schema.h"

#include <string>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/sqlite_store.h"

namespace hone::store {
namespace {

std::string FirstSqlite() {
  std::string sql = absl::StrReplaceAll(
      kFirstSchema,
      {{"@id", "INTEGER PRIMARY KEY"},
       {"@sequence", "INTEGER PRIMARY KEY AUTOINCREMENT"},
       {"@key", "TEXT NOT NULL PRIMARY KEY"},
       {"@text", "TEXT NOT NULL"},
       {"@sorted", "TEXT NOT NULL"},
       {"@raw", "TEXT NOT NULL"},
       {"@bytes", "BLOB NOT NULL"},
       {"@int", "INTEGER NOT NULL"},
       {"@maybe", "INTEGER"},
       {"@number", "REAL NOT NULL"},
       {"@real", "REAL"},
       {"@yes", "1"},
       {"@no", "0"},
       {"@row", ""},
       {"@strict", "STRICT"},
       {"@clustered", "STRICT, WITHOUT ROWID"},
       {"@unique_environment",
        ",\n  UNIQUE (cpu, isa, cores, os, governor, compiler, codegen_version, hone_version)"},
       {"@name", "lower(hex(randomblob(8)))"}});
  for (size_t at; (at = sql.find(" @bool")) != std::string::npos;) {
    const size_t column = sql.rfind(' ', at - 1) + 1;
    sql.replace(
        at, 6,
        absl::StrCat(" INTEGER NOT NULL CHECK (", sql.substr(column, at - column), " IN (0, 1))"));
  }
  return sql;
}

absl::Status Apply(SqliteConnection& connection, int64_t version, const char* migration) {
  HONE_RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
  const auto steps = [&]() -> absl::Status {
    HONE_RETURN_IF_ERROR(connection.Execute(migration));
    HONE_RETURN_IF_ERROR(
        connection.Execute(absl::StrCat("PRAGMA application_id = ", kApplicationId)));
    HONE_RETURN_IF_ERROR(connection.Execute(absl::StrCat("PRAGMA user_version = ", version)));
    return connection.Execute("COMMIT");
  };
  const absl::Status status = steps();
  if (!status.ok() && connection.InTransaction()) {
    connection.Execute("ROLLBACK").IgnoreError();
  }
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("migration to schema ", version, ": ", status.message()));
  }
  return absl::OkStatus();
}

// Returns the SQL of each table and index, by a key such as "table record".
absl::StatusOr<absl::btree_map<std::string, std::string>> ReadSchema(SqliteConnection& connection) {
  absl::btree_map<std::string, std::string> schema;
  auto tables = connection.Prepare(
      "SELECT type || ' ' || name, sql FROM sqlite_schema"
      " WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
  HONE_RETURN_IF_ERROR(Connection::ForEachRow(std::move(tables), [&](Statement& row) {
    std::string name = row.Text();
    schema[std::move(name)] = row.Text();
  }));
  return schema;
}

}  // namespace

const std::vector<const char*>& SqliteMigrations() {
  static const auto* const first = new std::string(FirstSqlite());
  static const auto* const migrations = new std::vector<const char*>{first->c_str()};
  return *migrations;
}

absl::Status CheckVersion(SqliteConnection& connection,
                          const std::vector<const char*>& migrations) {
  HONE_ASSIGN_OR_RETURN(const int64_t application, connection.QueryInt64("PRAGMA application_id"));
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection.QueryInt64("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(const int64_t objects,
                        connection.QueryInt64("SELECT COUNT(*) FROM sqlite_schema"));
  const bool fresh = application == 0 && version == 0 && objects == 0;
  if (!fresh && application != kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrCat(connection.path(),
                     " is a SQLite database of another program, not a Hone store;"
                     " name another file"));
  }
  if (!fresh && version <= 0) {
    return DamagedError(connection.path(),
                        absl::StrCat("store ", connection.path(), " has schema ", version));
  }
  const auto newest = static_cast<int64_t>(migrations.size());
  if (version > newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "store ", connection.path(), " has schema ", version, ", this program knows schemas up to ",
        newest, ": start the newer Hone that wrote it, or name another store"));
  }
  return version > 0 && version < newest ? QuickCheck(connection) : absl::OkStatus();
}

absl::Status Migrate(SqliteConnection& connection, const std::vector<const char*>& migrations) {
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection.QueryInt64("PRAGMA user_version"));
  for (size_t next = static_cast<size_t>(version); next < migrations.size(); ++next) {
    HONE_RETURN_IF_ERROR(Apply(connection, static_cast<int64_t>(next) + 1, migrations[next]));
  }
  return absl::OkStatus();
}

absl::Status CheckSchema(SqliteConnection& connection, const std::vector<const char*>& migrations) {
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection.QueryInt64("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(const auto model, SqliteConnection::OpenInMemory());
  HONE_RETURN_IF_ERROR(Migrate(*model, {migrations.begin(), migrations.begin() + version}));
  HONE_ASSIGN_OR_RETURN(const auto expected, ReadSchema(*model));
  HONE_ASSIGN_OR_RETURN(const auto found, ReadSchema(connection));
  const auto wrong = [&](absl::string_view what) {
    return DamagedError(connection.path(), absl::StrCat("store ", connection.path(), ": ", what));
  };
  for (const auto& [name, sql] : expected) {
    const auto it = found.find(name);
    if (it == found.end()) return wrong(absl::StrCat(name, " is missing"));
    if (it->second != sql) return wrong(absl::StrCat(name, " is not what this schema says"));
  }
  for (const auto& [name, sql] : found) {
    if (!expected.contains(name)) return wrong(absl::StrCat(name, " is not of this schema"));
  }
  return absl::OkStatus();
}

}  // namespace hone::store
