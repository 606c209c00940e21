#include "server/store/sqlite/schema.h"

#include <string>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/integrity_check.h"

namespace hone::store {
namespace {

// README.md says what each table and column means.
constexpr char kFirstSqlite[] = R"sql(
CREATE TABLE identity (
  id TEXT NOT NULL
) STRICT;
INSERT INTO identity VALUES (lower(hex(randomblob(8))));

CREATE TABLE text (
  digest TEXT NOT NULL PRIMARY KEY,
  text TEXT NOT NULL,
  put_unix_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE artifact (
  digest TEXT NOT NULL PRIMARY KEY,
  bytes BLOB NOT NULL,
  put_unix_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE environment (
  id INTEGER PRIMARY KEY,
  cpu TEXT NOT NULL,
  isa TEXT NOT NULL,
  cores INTEGER NOT NULL,
  os TEXT NOT NULL,
  governor TEXT NOT NULL,
  compiler TEXT NOT NULL,
  codegen_version INTEGER NOT NULL,
  hone_version TEXT NOT NULL,
  UNIQUE (cpu, isa, cores, os, governor, compiler, codegen_version, hone_version)
) STRICT;

CREATE TABLE record (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workload TEXT NOT NULL,
  op TEXT NOT NULL,
  target TEXT NOT NULL,
  tolerance REAL NOT NULL,
  policy_name TEXT NOT NULL,
  policy_cache TEXT NOT NULL,
  policy_threads INTEGER NOT NULL,
  policy_repeats INTEGER NOT NULL,
  policy_confidence REAL,
  created_unix_ms INTEGER NOT NULL,
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  proposer TEXT NOT NULL,
  quarantined INTEGER NOT NULL CHECK (quarantined IN (0, 1)),
  quarantine_reason TEXT NOT NULL,
  environment INTEGER NOT NULL REFERENCES environment (id),
  job TEXT NOT NULL,
  trial INTEGER NOT NULL,
  space TEXT NOT NULL,
  decisions BLOB NOT NULL,
  outcome TEXT NOT NULL,
  latency_ns REAL,
  dispersion REAL,
  reference_drift REAL,
  stopped_early INTEGER NOT NULL CHECK (stopped_early IN (0, 1)),
  max_error REAL,
  compile_ms REAL,
  link_ms REAL,
  code_bytes INTEGER NOT NULL,
  spills INTEGER NOT NULL,
  loads_per_fma REAL,
  workspace_bytes INTEGER NOT NULL,
  program TEXT NOT NULL,
  artifact TEXT NOT NULL,
  frequency_mhz REAL,
  temperature_c REAL,
  load REAL,
  steal REAL,
  remeasured INTEGER NOT NULL,
  processes INTEGER NOT NULL,
  inputs TEXT NOT NULL,
  counters TEXT NOT NULL,
  samples_ns BLOB NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX record_by_workload ON record (workload);
CREATE INDEX record_by_op ON record (op);
CREATE INDEX record_by_target ON record (target);
CREATE INDEX record_by_job ON record (job);
CREATE INDEX record_by_proposer ON record (proposer) WHERE proposer <> '';
CREATE INDEX record_by_time ON record (created_unix_ms);
CREATE INDEX record_failed ON record (outcome) WHERE outcome <> 'ok';
CREATE INDEX record_quarantined ON record (quarantined) WHERE quarantined = 1;
CREATE INDEX record_by_latency ON record (latency_ns) WHERE outcome = 'ok' AND quarantined = 0;
CREATE INDEX record_by_task_latency ON record (workload, target, latency_ns)
  WHERE outcome = 'ok' AND quarantined = 0;
CREATE INDEX record_confirmed ON record (target, workload, tolerance, latency_ns)
  WHERE policy_name = 'confirm' AND outcome = 'ok' AND quarantined = 0;

CREATE TABLE best (
  id INTEGER PRIMARY KEY,
  workload TEXT NOT NULL,
  target TEXT NOT NULL,
  tolerance REAL NOT NULL,
  policy TEXT NOT NULL,
  record INTEGER NOT NULL REFERENCES record (id),
  latency_ns REAL NOT NULL,
  published_unix_ms INTEGER NOT NULL,
  replaced_unix_ms INTEGER,
  pinned_by TEXT NOT NULL DEFAULT '',
  pinned_unix_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX best_is_one ON best (workload, target, tolerance, policy)
  WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_lookup ON best
  (workload, target, tolerance, latency_ns, policy, record, replaced_unix_ms)
  WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_by_record ON best (record);

CREATE TABLE job (
  id TEXT NOT NULL PRIMARY KEY,
  request_id TEXT NOT NULL,
  request BLOB NOT NULL,
  state TEXT NOT NULL,
  error TEXT NOT NULL,
  summary BLOB NOT NULL,
  created_unix_ms INTEGER NOT NULL,
  updated_unix_ms INTEGER NOT NULL,
  owner TEXT NOT NULL,
  priority TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX job_by_request ON job (request_id) WHERE request_id <> '';
CREATE INDEX job_by_age ON job (created_unix_ms, id);
CREATE INDEX job_unfinished ON job (id)
  WHERE state IN ('pending', 'running', 'confirming');

CREATE TABLE job_event (
  job TEXT NOT NULL REFERENCES job (id),
  number INTEGER NOT NULL CHECK (number >= 0),
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE model (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  feature_set TEXT NOT NULL,
  target TEXT NOT NULL,
  scope TEXT NOT NULL,
  version INTEGER NOT NULL,
  records INTEGER NOT NULL CHECK (records >= 0),
  workloads INTEGER NOT NULL CHECK (workloads >= 0),
  created_unix_ms INTEGER NOT NULL,
  metrics TEXT NOT NULL,
  target_text TEXT NOT NULL,
  origin TEXT NOT NULL,
  bytes BLOB NOT NULL
) STRICT;
CREATE INDEX model_by_key ON model (name, feature_set, target, scope);

CREATE TABLE cached (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  environment TEXT NOT NULL,
  put_unix_ms INTEGER NOT NULL,
  value BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX cached_by_name ON cached (name, environment);

CREATE TABLE worker (
  name TEXT NOT NULL PRIMARY KEY,
  identity TEXT NOT NULL,
  host TEXT NOT NULL,
  target TEXT NOT NULL,
  can_build INTEGER NOT NULL CHECK (can_build IN (0, 1)),
  can_run INTEGER NOT NULL CHECK (can_run IN (0, 1)),
  seen_unix_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE standing (
  worker TEXT NOT NULL PRIMARY KEY,
  identity TEXT NOT NULL,
  drained INTEGER NOT NULL CHECK (drained IN (0, 1)),
  refused TEXT NOT NULL,
  removed INTEGER NOT NULL CHECK (removed IN (0, 1)),
  since_unix_ms INTEGER NOT NULL
) STRICT;
)sql";

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
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare("SELECT type || ' ' || name, sql FROM sqlite_schema"
                                           " WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"));
  absl::btree_map<std::string, std::string> schema;
  HONE_RETURN_IF_ERROR(Connection::ForEachRow(statement, [&] {
    std::string name = statement.Text();
    schema[std::move(name)] = statement.Text();
  }));
  return schema;
}

}  // namespace

const std::vector<const char*>& SqliteMigrations() {
  static const auto* const migrations = new std::vector<const char*>{kFirstSqlite};
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
