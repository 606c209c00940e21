#ifndef HONE_SERVER_STORE_SCHEMA_H_
#define HONE_SERVER_STORE_SCHEMA_H_

namespace hone::store {

// The first version of the tables, for every database. README.md says what each table and column
// means. Each database replaces the words with @:
//   @id, @sequence   a number that is the key of a table; a sequence gives none twice
//   @key             a text that is the key of a table
//   @text, @sorted   a text; one that statements sort by, in the order of its bytes
//   @raw, @bytes     a text that may have any bytes; bytes
//   @int, @maybe     a whole number; one that may be NULL
//   @number, @real   a number; one that may be NaN, which SQLite stores as NULL
//   @bool, @yes, @no
//   @row           the id at the end of an index, which SQLite adds by itself
//   @strict, @clustered, @unique_environment, @name
inline constexpr char kFirstSchema[] = R"sql(
CREATE TABLE identity (
  id @text
) @strict;
INSERT INTO identity VALUES (@name);

CREATE TABLE text (
  digest @key,
  text @text,
  put_unix_ms @int
) @strict;

CREATE TABLE artifact (
  digest @key,
  bytes @bytes,
  put_unix_ms @int
) @strict;

CREATE TABLE environment (
  id @id,
  cpu @text,
  isa @text,
  cores @int,
  os @text,
  governor @text,
  compiler @text,
  codegen_version @int,
  hone_version @text@unique_environment
) @strict;

CREATE TABLE record (
  id @sequence,
  workload @sorted,
  op @sorted,
  target @sorted,
  tolerance @number,
  policy_name @text,
  policy_cache @text,
  policy_threads @int,
  policy_repeats @int,
  policy_confidence @real,
  created_unix_ms @int,
  is_default @bool,
  proposer @text,
  quarantined @bool,
  quarantine_reason @text,
  environment @int REFERENCES environment (id),
  job @sorted,
  trial @int,
  space @text,
  decisions @bytes,
  outcome @text,
  latency_ns @real,
  dispersion @real,
  reference_drift @real,
  stopped_early @bool,
  max_error @real,
  compile_ms @real,
  link_ms @real,
  code_bytes @int,
  spills @int,
  loads_per_fma @real,
  workspace_bytes @int,
  program @text,
  artifact @text,
  frequency_mhz @real,
  temperature_c @real,
  load @real,
  steal @real,
  remeasured @int,
  processes @int,
  inputs @text,
  counters @text,
  samples_ns @bytes,
  detail @raw
) @strict;
CREATE INDEX record_by_workload ON record (workload@row);
CREATE INDEX record_by_op ON record (op@row);
CREATE INDEX record_by_target ON record (target@row);
CREATE INDEX record_by_job ON record (job@row);
CREATE INDEX record_by_proposer ON record (proposer@row) WHERE proposer <> '';
CREATE INDEX record_by_time ON record (created_unix_ms@row);
CREATE INDEX record_failed ON record (outcome@row) WHERE outcome <> 'ok';
CREATE INDEX record_quarantined ON record (quarantined@row) WHERE quarantined = @yes;
CREATE INDEX record_by_latency ON record (latency_ns@row) WHERE outcome = 'ok' AND quarantined = @no;
CREATE INDEX record_by_task_latency ON record (workload, target, latency_ns@row)
  WHERE outcome = 'ok' AND quarantined = @no;
CREATE INDEX record_confirmed ON record (target, workload, tolerance, latency_ns)
  WHERE policy_name = 'confirm' AND outcome = 'ok' AND quarantined = @no;

CREATE TABLE best (
  id @id,
  workload @sorted,
  target @sorted,
  tolerance @number,
  policy @text,
  record @int REFERENCES record (id),
  latency_ns @number,
  published_unix_ms @int,
  replaced_unix_ms @maybe,
  pinned_by @text DEFAULT '',
  pinned_unix_ms @int DEFAULT 0
) @strict;
CREATE UNIQUE INDEX best_is_one ON best (workload, target, tolerance, policy)
  WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_lookup ON best
  (workload, target, tolerance, latency_ns, policy, record, replaced_unix_ms)
  WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_by_record ON best (record);

CREATE TABLE job (
  id @key,
  request_id @text,
  request @bytes,
  state @text,
  error @raw,
  summary @bytes,
  created_unix_ms @int,
  updated_unix_ms @int,
  owner @text,
  priority @text
) @strict;
CREATE UNIQUE INDEX job_by_request ON job (request_id) WHERE request_id <> '';
CREATE INDEX job_by_age ON job (created_unix_ms, id);
CREATE INDEX job_unfinished ON job (id)
  WHERE state IN ('pending', 'running', 'confirming');

CREATE TABLE job_event (
  job @sorted REFERENCES job (id),
  number @int CHECK (number >= 0),
  kind @text,
  payload @bytes,
  PRIMARY KEY (job, number)
) @clustered;

CREATE TABLE model (
  id @sequence,
  name @text,
  feature_set @text,
  target @text,
  scope @text,
  version @int,
  records @int CHECK (records >= 0),
  workloads @int CHECK (workloads >= 0),
  created_unix_ms @int,
  metrics @text,
  target_text @text,
  origin @text,
  bytes @bytes
) @strict;
CREATE INDEX model_by_key ON model (name, feature_set, target, scope@row);

CREATE TABLE cached (
  id @sequence,
  name @text,
  environment @text,
  put_unix_ms @int,
  value @bytes
) @strict;
CREATE UNIQUE INDEX cached_by_name ON cached (name, environment);

CREATE TABLE worker (
  name @key,
  identity @text,
  host @text,
  target @text,
  can_build @bool,
  can_run @bool,
  seen_unix_ms @int
) @strict;

CREATE TABLE standing (
  worker @key,
  identity @text,
  drained @bool,
  refused @raw,
  removed @bool,
  since_unix_ms @int
) @strict;
)sql";

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SCHEMA_H_
