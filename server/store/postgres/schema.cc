#include "server/store/postgres/schema.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::store {
namespace {

// The tables of README.md. Texts that may contain any bytes are bytea. Texts are sorted by their
// bytes, regardless of the database's language.
constexpr char kFirstPostgres[] = R"sql(
CREATE TABLE leader (epoch bigint PRIMARY KEY, last_group bigint NOT NULL);
INSERT INTO leader VALUES (0, 0);
CREATE TABLE identity (id text NOT NULL);
INSERT INTO identity VALUES (substr(md5(random()::text || clock_timestamp()::text), 1, 16));

CREATE TABLE text (
  digest text PRIMARY KEY,
  text text NOT NULL,
  put_unix_ms bigint NOT NULL
);
CREATE TABLE artifact (
  digest text PRIMARY KEY,
  bytes bytea NOT NULL,
  put_unix_ms bigint NOT NULL
);
CREATE TABLE environment (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cpu text NOT NULL,
  isa text NOT NULL,
  cores bigint NOT NULL,
  os text NOT NULL,
  governor text NOT NULL,
  compiler text NOT NULL,
  codegen_version bigint NOT NULL,
  hone_version text NOT NULL
);
CREATE INDEX environment_by_cpu ON environment (cpu, hone_version);

CREATE TABLE record (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workload text COLLATE "C" NOT NULL,
  op text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  tolerance double precision NOT NULL,
  policy_name text NOT NULL,
  policy_cache text NOT NULL,
  policy_threads bigint NOT NULL,
  policy_repeats bigint NOT NULL,
  policy_confidence double precision NOT NULL,
  created_unix_ms bigint NOT NULL,
  is_default boolean NOT NULL,
  proposer text NOT NULL,
  quarantined boolean NOT NULL,
  quarantine_reason text NOT NULL,
  environment bigint NOT NULL REFERENCES environment (id),
  job text COLLATE "C" NOT NULL,
  trial bigint NOT NULL,
  space text NOT NULL,
  decisions bytea NOT NULL,
  outcome text NOT NULL,
  latency_ns double precision NOT NULL,
  dispersion double precision NOT NULL,
  reference_drift double precision NOT NULL,
  stopped_early boolean NOT NULL,
  max_error double precision NOT NULL,
  compile_ms double precision NOT NULL,
  link_ms double precision NOT NULL,
  code_bytes bigint NOT NULL,
  spills bigint NOT NULL,
  loads_per_fma double precision NOT NULL,
  workspace_bytes bigint NOT NULL,
  program text NOT NULL,
  artifact text NOT NULL,
  frequency_mhz double precision NOT NULL,
  temperature_c double precision NOT NULL,
  load double precision NOT NULL,
  steal double precision NOT NULL,
  remeasured bigint NOT NULL,
  processes bigint NOT NULL,
  inputs text NOT NULL,
  counters text NOT NULL,
  samples_ns bytea NOT NULL,
  detail bytea NOT NULL
);
CREATE INDEX record_by_workload ON record (workload, id);
CREATE INDEX record_by_op ON record (op, id);
CREATE INDEX record_by_target ON record (target, id);
CREATE INDEX record_by_job ON record (job, id);
CREATE INDEX record_by_proposer ON record (proposer, id) WHERE proposer <> '';
CREATE INDEX record_by_time ON record (created_unix_ms, id);
CREATE INDEX record_failed ON record (outcome, id) WHERE outcome <> 'ok';
CREATE INDEX record_quarantined ON record (id) WHERE quarantined;
CREATE INDEX record_by_latency ON record (latency_ns, id) WHERE outcome = 'ok' AND NOT quarantined;
CREATE INDEX record_by_task_latency ON record (workload, target, latency_ns, id)
  WHERE outcome = 'ok' AND NOT quarantined;
CREATE INDEX record_confirmed ON record (target, workload, tolerance, latency_ns)
  WHERE policy_name = 'confirm' AND outcome = 'ok' AND NOT quarantined;

CREATE TABLE best (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workload text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  tolerance double precision NOT NULL,
  policy text NOT NULL,
  record bigint NOT NULL REFERENCES record (id),
  latency_ns double precision NOT NULL,
  published_unix_ms bigint NOT NULL,
  replaced_unix_ms bigint,
  pinned_by text NOT NULL DEFAULT '',
  pinned_unix_ms bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX best_is_one ON best (workload, target, tolerance, policy)
  WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_lookup ON best (workload, target, tolerance, latency_ns)
  INCLUDE (policy, record) WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_by_record ON best (record);

CREATE SEQUENCE job_number;
CREATE TABLE job (
  id text COLLATE "C" PRIMARY KEY,
  request_id text NOT NULL,
  request bytea NOT NULL,
  state text NOT NULL,
  error bytea NOT NULL,
  summary bytea NOT NULL,
  created_unix_ms bigint NOT NULL,
  updated_unix_ms bigint NOT NULL,
  owner text NOT NULL,
  priority text NOT NULL
);
CREATE UNIQUE INDEX job_by_request ON job (request_id) WHERE request_id <> '';
CREATE INDEX job_by_age ON job (created_unix_ms, id);
CREATE INDEX job_unfinished ON job (id)
  WHERE state IN ('pending', 'running', 'confirming');
CREATE TABLE job_event (
  job text COLLATE "C" NOT NULL REFERENCES job (id),
  number bigint NOT NULL CHECK (number >= 0),
  kind text NOT NULL,
  payload bytea NOT NULL,
  PRIMARY KEY (job, number)
);

CREATE TABLE model (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  feature_set text NOT NULL,
  target text NOT NULL,
  scope text NOT NULL,
  version bigint NOT NULL,
  records bigint NOT NULL,
  workloads bigint NOT NULL,
  created_unix_ms bigint NOT NULL,
  metrics text NOT NULL,
  target_text text NOT NULL,
  origin text NOT NULL,
  bytes bytea NOT NULL
);
CREATE INDEX model_by_key ON model (name, feature_set, target, scope, id);

CREATE TABLE cached (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  environment text NOT NULL,
  put_unix_ms bigint NOT NULL,
  value bytea NOT NULL
);
CREATE UNIQUE INDEX cached_by_name ON cached (name, environment);

CREATE TABLE worker (
  name text COLLATE "C" PRIMARY KEY,
  identity text NOT NULL,
  host text NOT NULL,
  target text NOT NULL,
  can_build boolean NOT NULL,
  can_run boolean NOT NULL,
  seen_unix_ms bigint NOT NULL
);
CREATE TABLE standing (
  worker text COLLATE "C" PRIMARY KEY,
  identity text NOT NULL,
  drained boolean NOT NULL,
  refused bytea NOT NULL,
  removed boolean NOT NULL,
  since_unix_ms bigint NOT NULL
);
)sql";

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
  static const auto* const migrations = new std::vector<const char*>{kFirstPostgres};
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
