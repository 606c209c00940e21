-- A store of schema 9, as the sqlite3 shell dumps it. It must open with every later Hone: never regenerate it.
PRAGMA application_id = 1213156933;
PRAGMA user_version = 9;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE artifact (
  digest TEXT NOT NULL PRIMARY KEY,
  bytes BLOB NOT NULL
, put_unix_ms INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO artifact VALUES('0000000000000000000000000000000c',X'746865206172746966616374',0);
CREATE TABLE best (
  id INTEGER PRIMARY KEY,
  workload TEXT NOT NULL,
  target TEXT NOT NULL,
  tolerance REAL NOT NULL,
  policy TEXT NOT NULL,
  record INTEGER NOT NULL REFERENCES record (id),
  latency_ns REAL NOT NULL,
  published_unix_ms INTEGER NOT NULL,
  replaced_unix_ms INTEGER
, pinned_by TEXT NOT NULL DEFAULT '', pinned_unix_ms INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO best VALUES(1,'0000000000000000000000000000000a','x86_64-generic-sse-2c-01234567',1.0000000000000000817e-05,'confirm/flushed/2',1,1234.5,1795219110696,NULL,'somebody',1700000000125);
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
INSERT INTO environment VALUES(1,'a cpu','avx2',2,'an os','performance','llvm 19.1.7',7,'0.1.0');
CREATE TABLE identity (
  id TEXT NOT NULL
) STRICT;
INSERT INTO identity VALUES('0123456789abcdef');
CREATE TABLE job (
  id TEXT NOT NULL PRIMARY KEY,
  request_id TEXT NOT NULL,
  request BLOB NOT NULL,
  state TEXT NOT NULL,
  error TEXT NOT NULL,
  summary BLOB NOT NULL,
  created_unix_ms INTEGER NOT NULL,
  updated_unix_ms INTEGER NOT NULL
, owner TEXT NOT NULL DEFAULT '', priority TEXT NOT NULL DEFAULT 'normal', replica TEXT NOT NULL DEFAULT '', lease_until_unix_ms INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO job VALUES('job-1','request of job-1',X'610072657175657374','pending','',X'610073756d6d617279',1,2,'somebody','high','',0,1);
CREATE TABLE job_event (
  job TEXT NOT NULL REFERENCES job (id),
  number INTEGER NOT NULL CHECK (number >= 0),
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
INSERT INTO job_event VALUES('job-1',0,'propose',X'70');
INSERT INTO job_event VALUES('job-1',1,'tell',X'74');
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
  bytes BLOB NOT NULL
) STRICT;
INSERT INTO model VALUES(1,'xgboost','statement','x86_64-generic-sse-2c-01234567','matmul',3,512,4,1700000000000,'{"top1": 0.9}',X'746865207472656573');
CREATE TABLE record (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workload TEXT NOT NULL,
  op TEXT NOT NULL,
  target TEXT NOT NULL,
  tolerance REAL NOT NULL,
  policy_name TEXT NOT NULL,
  policy_cache TEXT NOT NULL,
  policy_threads INTEGER NOT NULL,
  created_unix_ms INTEGER NOT NULL,
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  quarantined INTEGER NOT NULL CHECK (quarantined IN (0, 1)),
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
  samples_ns BLOB NOT NULL,
  detail TEXT NOT NULL
, policy_repeats INTEGER NOT NULL DEFAULT 0, policy_confidence REAL DEFAULT 0, quarantine_reason TEXT NOT NULL DEFAULT '', frequency_mhz REAL DEFAULT 0, temperature_c REAL DEFAULT 0, load REAL DEFAULT 0, steal REAL DEFAULT 0, remeasured INTEGER NOT NULL DEFAULT 0, processes INTEGER NOT NULL DEFAULT 0, inputs TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO record VALUES(1,'0000000000000000000000000000000a','matmul','x86_64-generic-sse-2c-01234567',1.0000000000000000817e-05,'confirm','flushed',2,1700000000123,1,0,1,'job-1',42,'0000000000000000000000000000000b',X'0001fe018002ffffffffffffffffff01feffffffffffffffff01','ok',1234.5,0.010000000000000000208,1.0200000000000000177,1,0.5,12.5,0.5,4096,3,0.4000000000000000222,65536,'0000000000000000000000000000000d','0000000000000000000000000000000c',X'000000000049934000000000004a93402e110000004a9340','a detail',9,0.94999999999999995559,'',2500.5,-3.5,0.25,0.010000000000000000208,2,0,'seeded-2');
INSERT INTO record VALUES(2,'0000000000000000000000000000000a','matmul','x86_64-generic-sse-2c-01234567',1.0000000000000000817e-05,'screen','flushed',2,1700000000123,0,0,1,'job-1',42,'0000000000000000000000000000000b',X'0001fe018002ffffffffffffffffff01feffffffffffffffff01','wrong_output',1234.5,0.010000000000000000208,1.0200000000000000177,1,NULL,12.5,0.5,4096,3,0.4000000000000000222,65536,'0000000000000000000000000000000d','0000000000000000000000000000000c',X'000000000049934000000000004a93402e110000004a9340','a detail',9,0.94999999999999995559,'',2500.5,-3.5,0.25,0.010000000000000000208,2,0,'');
CREATE TABLE standing (
  worker TEXT NOT NULL PRIMARY KEY,
  drained INTEGER NOT NULL CHECK (drained IN (0, 1)),
  refused TEXT NOT NULL,
  removed INTEGER NOT NULL CHECK (removed IN (0, 1)),
  since_unix_ms INTEGER NOT NULL
) STRICT;
INSERT INTO standing VALUES('pi-07',1,'',0,1700000000123);
INSERT INTO standing VALUES('pi-08',0,'it reported what cannot be: 5000 ns',0,1700000000124);
CREATE TABLE text (
  digest TEXT NOT NULL PRIMARY KEY,
  text TEXT NOT NULL
, put_unix_ms INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO text VALUES('0000000000000000000000000000000a','the workload',0);
INSERT INTO text VALUES('0000000000000000000000000000000b','the space',0);
CREATE TABLE worker (
  name TEXT NOT NULL PRIMARY KEY,
  host TEXT NOT NULL,
  target TEXT NOT NULL,
  can_build INTEGER NOT NULL CHECK (can_build IN (0, 1)),
  can_run INTEGER NOT NULL CHECK (can_run IN (0, 1)),
  seen_unix_ms INTEGER NOT NULL
) STRICT;
INSERT INTO worker VALUES('pi','board','x86_64-generic-sse-2c-01234567',0,1,1700000000000);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('record',2);
INSERT INTO sqlite_sequence VALUES('model',1);
CREATE INDEX record_by_workload ON record (workload);
CREATE INDEX record_by_op ON record (op);
CREATE INDEX record_by_target ON record (target);
CREATE UNIQUE INDEX best_is_one ON best (workload, target, tolerance, policy)
  WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_lookup ON best
  (workload, target, tolerance, latency_ns, policy, record, replaced_unix_ms)
  WHERE replaced_unix_ms IS NULL;
CREATE INDEX best_by_record ON best (record);
CREATE UNIQUE INDEX job_by_request ON job (request_id) WHERE request_id <> '';
CREATE INDEX job_by_age ON job (created_unix_ms, id);
CREATE INDEX model_by_key ON model (name, feature_set, target, scope);
CREATE INDEX record_by_job ON record (job);
CREATE INDEX record_by_time ON record (created_unix_ms);
CREATE INDEX record_failed ON record (outcome) WHERE outcome <> 'ok';
CREATE INDEX record_quarantined ON record (quarantined) WHERE quarantined = 1;
CREATE INDEX job_unfinished ON job (lease_until_unix_ms, id)
  WHERE state IN ('pending', 'running', 'confirming');
CREATE INDEX record_confirmed ON record (target, workload, tolerance, latency_ns)
  WHERE policy_name = 'confirm' AND outcome = 'ok' AND quarantined = 0;
COMMIT;
