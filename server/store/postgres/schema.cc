#include "server/store/schema.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "server/store/postgres/postgres_store.h"

namespace hone::store {
namespace {

// The tables that only PostgreSQL has.
constexpr char kOnlyPostgres[] = R"sql(
CREATE TABLE leader (epoch bigint PRIMARY KEY, last_group bigint NOT NULL);
INSERT INTO leader VALUES (0, 0);
CREATE SEQUENCE job_number;
CREATE INDEX environment_by_cpu ON environment (cpu, hone_version);
)sql";

// Texts are sorted by their bytes, regardless of the database's language.
std::string FirstPostgres() {
  return absl::StrCat(
      absl::StrReplaceAll(
          kFirstSchema,
          {{"@id", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
           {"@sequence", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
           {"@key", "text COLLATE \"C\" PRIMARY KEY"},
           {"@text", "text NOT NULL"},
           {"@sorted", "text COLLATE \"C\" NOT NULL"},
           {"@raw", "bytea NOT NULL"},
           {"@bytes", "bytea NOT NULL"},
           {"@int", "bigint NOT NULL"},
           {"@maybe", "bigint"},
           {"@number", "double precision NOT NULL"},
           {"@real", "double precision NOT NULL"},
           {"@bool", "boolean NOT NULL"},
           {"@yes", "true"},
           {"@no", "false"},
           {"@row", ", id"},
           {" @strict", ""},
           {" @clustered", ""},
           {"@unique_environment", ""},
           {"@name", "substr(md5(random()::text || clock_timestamp()::text), 1, 16)"}}),
      kOnlyPostgres);
}

absl::StatusOr<int64_t> QueryInt64(PostgresConnection& connection, const std::string& sql) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows, connection.Query(sql));
  return rows.Next() ? rows.Int64() : 0;
}

absl::Status MigrateInTransaction(PostgresConnection& connection,
                                  const std::vector<const char*>& migrations, bool is_leader) {
  HONE_RETURN_IF_ERROR(connection.Query("SELECT pg_advisory_xact_lock(1213156933)").status());
  HONE_ASSIGN_OR_RETURN(
      const int64_t ours,
      QueryInt64(connection,
                 "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()"
                 " AND tablename = 'hone_schema'"));
  if (ours == 0) {
    HONE_ASSIGN_OR_RETURN(
        const int64_t foreign,
        QueryInt64(connection,
                   "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()"));
    if (foreign > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the PostgreSQL ", connection.name(), " holds ", foreign,
                       " tables of another program and no Hone store: name another database"));
    }
    HONE_RETURN_IF_ERROR(connection.Execute("CREATE TABLE hone_schema (version bigint NOT NULL)"));
  }
  HONE_ASSIGN_OR_RETURN(
      const int64_t version,
      QueryInt64(connection, "SELECT COALESCE(MAX(version), 0) FROM hone_schema"));
  const auto newest = static_cast<int64_t>(migrations.size());
  if (version > newest) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store in the PostgreSQL ", connection.name(), " has schema ", version,
                     ", this program knows schemas up to ", newest,
                     ": start the newer Hone that wrote it, or name another database"));
  }
  if (version > 0 && !is_leader) return absl::OkStatus();
  for (int64_t next = version + 1; next <= newest; ++next) {
    HONE_RETURN_IF_ERROR(connection.Execute(migrations[next - 1]));
    HONE_RETURN_IF_ERROR(
        connection.Execute(absl::StrCat("INSERT INTO hone_schema VALUES (", next, ")")));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<const char*>& PostgresMigrations() {
  static const auto* const first = new std::string(FirstPostgres());
  static const auto* const migrations = new std::vector<const char*>{first->c_str()};
  return *migrations;
}

absl::Status MigratePostgres(PostgresConnection& connection,
                             const std::vector<const char*>& migrations, bool is_leader) {
  HONE_RETURN_IF_ERROR(connection.Execute("BEGIN"));
  absl::Status status = MigrateInTransaction(connection, migrations, is_leader);
  if (status.ok()) return connection.Execute("COMMIT");
  connection.Execute("ROLLBACK").IgnoreError();
  return status;
}

}  // namespace hone::store
