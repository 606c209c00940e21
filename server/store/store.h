#ifndef HONE_SERVER_STORE_STORE_H_
#define HONE_SERVER_STORE_STORE_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/record/record.h"

namespace hone::store {

class Connection;

// What happens to a write while the disk is full.
enum class WhenFull {
  kWait,  // it is tried again until there is space
  kFail,  // its `done` gets ResourceExhausted, because somebody waits for the answer
};

// A stored job: its request and its state.
struct JobRow {
  std::string id;
  std::string request_id;
  std::string request;  // serialized CreateJobRequest, opaque here
  std::string state;    // "pending", "running", "confirming", "done", "cancelled", "failed"
  std::string error;
  std::string summary;  // serialized last snapshot of the job, opaque here
  int64_t created_unix_ms = 0;
  int64_t updated_unix_ms = 0;
  std::string owner;                // the caller that created it; "" without authentication
  std::string priority = "normal";  // "low", "normal" or "high"
};

// The event of a job that a record follows from. If that event could not be stored, for example
// because the disk was full, the record is refused too. Otherwise the resumed job would use the
// same trial numbers for other candidates.
struct JobStep {
  std::string job_id;
  int64_t event = -1;  // number of the event; -1: the record follows from none
};

// One numbered step of a job's search. A replay of the events reproduces every candidate.
struct JobEvent {
  std::string job_id;
  int64_t number = 0;   // 0, 1, … without gaps in a job
  std::string kind;     // "propose", "external" or "tell"
  std::string payload;  // opaque here
};

struct BestQuery {
  std::string workload_digest;
  std::string target;
  double tolerance = 0;
  std::string policy;  // Policy::Key(); "" for the confirmed best of any policy
};

// What is tuned: one workload on one target.
struct TaskKey {
  std::string workload_digest;
  std::string target;
  double tolerance = 0;
};

// Who pinned a published best, and when. A pinned best is not replaced.
struct Pin {
  std::string by;       // the caller's name; "" if callers are not authenticated
  int64_t unix_ms = 0;  // 0: it is not pinned
  friend bool operator==(const Pin&, const Pin&) = default;
};

enum class QuarantineFilter { kAll, kOnly, kNone };

// What records are sorted by, and then by their ids.
enum class RecordOrder {
  kId,
  kTime,
  kOperator,
  kWorkload,
  kTarget,
  kJob,
  kLatency,  // only records that are ok and not quarantined
};

// Where a page of records ends: the value that they are sorted by, and the id.
struct RecordPlace {
  std::string text;   // of an operator, a workload, a target or a job
  double number = 0;  // of a time (whole) or a latency
  int64_t id = 0;
  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};

struct RecordQuery {
  // "" and 0 match all records unless a comment says otherwise.
  std::string workload_digest;
  std::string target;
  std::string op;
  bool best_only = false;  // only the published bests
  // Only the fastest record of a finished confirmation (MeasureResult::processes is not 0), ok and
  // not quarantined, of each (workload, target, tolerance) without a published best. Imports bring
  // such records without their artifacts.
  bool unpublished_best = false;
  int64_t since_unix_ms = 0;
  int page_size = 100;        // 1 to 1000
  int64_t after_id = 0;       // only records with a larger id; serves as the page token
  int64_t before_id = 0;      // only records with a smaller id
  bool newest_first = false;  // in descending order, otherwise in ascending order
  int64_t until_unix_ms = 0;  // only records that were made before this time
  std::string job_id;
  std::string outcome;  // by name
  QuarantineFilter quarantine = QuarantineFilter::kAll;
  bool proposed = false;  // only candidates that other programs proposed
  std::string proposer;   // only those of this program
  RecordOrder order = RecordOrder::kId;
  // For another order than that of ids: only records behind this place, in place of after_id and
  // before_id. Pages stay complete while records arrive, because their places never change.
  std::optional<RecordPlace> after;
};

// Whether an index serves an order with the filters of a query, so that a page takes milliseconds
// in a store of any size. The order of ids is always served, that of times without other filters
// than times, and that of latencies without filters or of a workload on a target; the others only
// without filters.
bool IsServed(const RecordQuery& query, RecordOrder order);
// The place of a record in an order.
RecordPlace PlaceOf(const record::Record& record, RecordOrder order);

// The key of a trained cost model. One row of a key is in use: the newest that this server trained,
// or the newest imported one if it was both stored and trained later.
struct ModelKey {
  std::string name;         // the model's registered name
  std::string feature_set;  // the feature set that it reads; "" if none
  std::string target;       // the target of its training records
  std::string scope;        // the operator of its training records; "" for all operators
  friend auto operator<=>(const ModelKey&, const ModelKey&) = default;
};

// A stored cost model.
struct ModelRow {
  int64_t id = 0;  // assigned by the store, in ascending order
  ModelKey key;
  int64_t version = 0;    // version of the form of `bytes`, defined by the model
  int64_t records = 0;    // number of training records
  int64_t workloads = 0;  // number of their workloads
  int64_t created_unix_ms = 0;
  std::string metrics;  // its accuracy, as a JSON object; opaque here
  std::string bytes;    // the result of CostModel::Save; opaque here
  int64_t size = 0;     // size of `bytes`, set even if `bytes` is omitted in a list
  // The text of the target of its records, with the calibration of a machine; "": not known.
  std::string target_text;
  std::string origin;   // the server that it was imported from; "": trained by this server
  bool in_use = false;  // set by the store
};

// A result of another autotuner, see Store::PutCached.
struct CachedRow {
  std::string name, environment;
  std::string value;
  int64_t put_unix_ms = 0;
  friend bool operator==(const CachedRow&, const CachedRow&) = default;
};

struct BestRow {
  record::Record record;
  std::string workload;  // text form
  std::string space;     // the design space's text
  Pin pin;
};

// What Store::Forget quarantined and withdrew.
struct Forgotten {
  int64_t records = 0;
  std::vector<record::Record> bests;  // the published ones, as they were before
};

// The health of the store, for metrics; CheckWritable says what is damaged.
struct StoreHealth {
  // The state of the check that reads the database after opening.
  enum class Check {
    kUnderWay,
    kSound,
    kDamaged,     // found by the check or later; the store is only read
    kNotChecked,  // the check is switched off, or the database has its own checks
  };
  Check check = Check::kNotChecked;
  int64_t size_bytes = 0;     // on disk
  int64_t queued_writes = 0;  // not committed yet
};

struct BackupReport {
  int64_t size_bytes = 0;
  int64_t records = 0;
};

// What a compaction removes, and what it keeps regardless of its age.
struct CompactOptions {
  // Unix times in milliseconds. Older rows of each kind are removed; 0: none of this kind.
  struct Before {
    int64_t records = 0;  // also texts and artifacts that no kept row needs
    int64_t bests = 0;    // that were replaced
    int64_t events = 0;   // of jobs that are done
    int64_t jobs = 0;     // that have ended, with their events
  };
  static constexpr Before All(int64_t unix_ms) { return {unix_ms, unix_ms, unix_ms, unix_ms}; }
  Before before;
  // Of each workload, target and tolerance, this many of the fastest records are kept, for searches
  // and revalidations, and this many others, chosen evenly, from which cost models learn.
  int keep_best = 32;
  int keep_sample = 256;
  // If the rows of the store have more bytes than `most_bytes` (0: no limit), more of the oldest
  // records are removed, but none that is as new as `spare_since_unix_ms`.
  int64_t most_bytes = 0;
  int64_t spare_since_unix_ms = 0;
  bool dry_run = false;    // count, but change nothing
  bool free_space = true;  // gives unused space back to the disk
  absl::Duration pause;    // between two steps
};

// Rows of one kind that a compaction removed.
struct RemovedRows {
  int64_t rows = 0;
  int64_t bytes = 0;  // approximately, without indexes
};

struct CompactReport {
  RemovedRows records, bests, events, jobs, texts, artifacts;
  int64_t bytes_before = 0;  // on disk
  int64_t bytes_after = 0;
};

// The kinds of rows in a report, with their names for metrics.
inline constexpr std::pair<const char*, RemovedRows CompactReport::*> kRemovedKinds[] = {
    {"record", &CompactReport::records}, {"best", &CompactReport::bests},
    {"event", &CompactReport::events},   {"job", &CompactReport::jobs},
    {"text", &CompactReport::texts},     {"artifact", &CompactReport::artifacts}};

// A worker that an administrator has drained or removed, or that was flagged because its results
// are not trusted.
struct WorkerStanding {
  std::string worker_id;
  std::string identity;  // of a refused worker: its credentials, and its host if they are shared
  bool drained = false;
  std::string refused;   // why it gets no leases; "" if it is not refused
  bool removed = false;  // refused because an administrator removed it, not because of a flag
  int64_t since_unix_ms = 0;
  friend bool operator==(const WorkerStanding&, const WorkerStanding&) = default;
};

// A worker that has called the server, for lists of those that are away.
struct KnownWorker {
  std::string worker_id;
  std::string identity;  // its credentials, and its host if they are shared; "" if it has none
  std::string host;
  std::string target;  // key
  bool can_build = false;
  bool can_run = false;
  int64_t seen_unix_ms = 0;  // its last call
  friend bool operator==(const KnownWorker&, const KnownWorker&) = default;
};

// Rows of another store.
struct ImportBatch {
  std::string origin;                            // the other store's Identity
  std::map<std::string, std::string> texts;      // by digest
  std::map<std::string, std::string> artifacts;  // by digest
  std::vector<record::Record> records;
  std::vector<std::string> where;  // of each record, for messages: "line 12"; may be shorter
  std::vector<size_t> bests;       // indexes of records that are published in the other store
};

struct ImportReport {
  int64_t added = 0;  // records that were added
  int64_t known = 0;  // records that were already in the store
  int64_t bests = 0;  // records that were published
};

// The durable store of records, jobs, texts by digest and artifacts. The functions of a table are
// in the source file of the table, for every database. Derived classes implement what differs: how
// reads and writes get a connection, the leadership, and copies of a whole store. Thread-safe.
//
// Writes are queued to one writer and committed in groups. `done` runs on a thread of the store,
// after the commit of the write or with the error that prevented it, and must not block. Reads see
// every write whose `done` has run.
//
// While the disk is full, writes wait for space (CheckSpace). Only those of callers who wait for
// the answer are refused: Forget, PinBest, UnpinBest, PutCached, PutStanding, PutWorker, Import,
// Compact, and PutJob if it is told so. Flush and the end of the store do not wait for space.
//
// Every function may return these errors. ResourceExhausted: the disk or the queue is full.
// PermissionDenied: the file or disk is read-only. DataLoss: the database is corrupt.
// FailedPrecondition: its schema is newer than this program. Unavailable: another process has the
// store open, or the database cannot be reached. InvalidArgument: a row or query is malformed.
// Aborted: this server does not lead (see Lead), so the write was refused; or its leadership ended
// during the commit, so it is unknown whether the write was committed. The messages say where the
// error is and what to do.
class Store {
 public:
  // Number of models that are kept for each key, of its own and imported: the newest, and earlier
  // ones that a running job may have started with.
  static constexpr int kModelsKept = 4;
  static constexpr size_t kMaxModelBytes = size_t{64} << 20;

  using Done = absl::AnyInvocable<void(absl::Status) &&>;
  virtual ~Store() = default;

  // Stores a text of a workload or design space by its digest. The first text of a digest is kept.
  virtual void PutText(const std::string& digest, const std::string& text, Done done);
  absl::StatusOr<std::string> GetText(const std::string& digest);  // NotFound

  // Appends a record. `done` gets the record with its id; ids are ascending.
  // InvalidArgument: no workload digest or target, a tolerance that is not a finite number ≥ 0, or
  // outcome ok without a positive latency. FailedPrecondition: the event of `step` is not in the
  // store.
  virtual void Append(record::Record record, const JobStep& step,
                      absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done);
  void Append(record::Record record,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) {
    Append(std::move(record), JobStep(), std::move(done));
  }
  // Returns a page of records. Rows that cannot be decoded are left out, with a warning, and others
  // take their places.
  virtual absl::StatusOr<std::vector<record::Record>> Query(const RecordQuery& query);
  // Calls `visit` with each record that the query finds on any page; `page_size` has no effect.
  // `stop` is called before each page and ends this with its error. May be null.
  absl::Status ForEachRecord(RecordQuery query,
                             absl::FunctionRef<void(const record::Record&)> visit,
                             const std::function<absl::Status()>& stop = nullptr);
  // NotFound: there is no record with this id.
  absl::StatusOr<record::Record> GetRecord(int64_t id);
  // Makes a confirmed record the published best of its (workload, target, tolerance, policy) in one
  // transaction. The caller has decided that it is better than `incumbent`, the id of the record
  // that LookupBest returned for any policy (0 if it found none). nullopt replaces any incumbent.
  // Does nothing if the record is already published.
  // AlreadyExists: another record has become the incumbent, or is pinned. NotFound: there is no
  // such record.
  // FailedPrecondition: its policy is not "confirm", its outcome is not ok, it is quarantined, or
  // its artifact or the text of its workload or design space is not in the store yet. Put these
  // first; writes keep their order.
  void PublishBest(int64_t record_id, std::optional<int64_t> incumbent, Done done);
  void PublishBest(int64_t record_id, Done done) {
    PublishBest(record_id, std::nullopt, std::move(done));
  }
  // Quarantines the records of a candidate with ids up to `last_record` and any policy. Quarantined
  // records are kept, but are neither published nor used for training. A published best among them
  // is withdrawn with its pin. `reason` is text for people; records that were quarantined before
  // keep their reason.
  void Quarantine(const std::string& workload_digest, const std::string& target,
                  const record::Candidate& candidate, int64_t last_record,
                  const std::string& reason, Done done);
  // Returns the published best; if several policies match, the fastest. NotFound: none is
  // published.
  absl::StatusOr<BestRow> LookupBest(const BestQuery& query);
  // Quarantines all records of a task, as Quarantine does for a candidate. NotFound: the task has
  // no record that is not quarantined.
  void Forget(const TaskKey& task, const std::string& reason,
              absl::AnyInvocable<void(absl::StatusOr<Forgotten>) &&> done);
  // Pins the published best of a task, or publishes and pins one of the task's records (`record` is
  // not 0), regardless of what is published or pinned. NotFound: nothing is published; no such
  // record. InvalidArgument: the record is of another task. FailedPrecondition: as for PublishBest.
  void PinBest(const TaskKey& task, int64_t record, const std::string& by, Done done);
  // Removes the pin of a task's best, which stays published. NotFound: it is not pinned.
  void UnpinBest(const TaskKey& task, Done done);
  // Returns the pinned bests, in the order of their publication.
  absl::StatusOr<std::vector<BestRow>> PinnedBests();

  // Artifacts of winners, by digest.
  virtual void PutArtifact(const std::string& digest, std::string bytes, Done done);
  absl::StatusOr<std::string> GetArtifact(const std::string& digest);  // NotFound

  // Returns a number that no job has used, for the id of the next job.
  virtual absl::StatusOr<int64_t> NextJobNumber() = 0;
  // Inserts a job, or replaces the job with the same id. AlreadyExists: another job has this
  // request_id, which is not "". InvalidArgument: no id, or an unknown state or priority.
  virtual void PutJob(JobRow job, Done done, WhenFull when_full = WhenFull::kWait);
  absl::StatusOr<JobRow> GetJob(const std::string& id);                   // NotFound
  absl::StatusOr<JobRow> GetJobByRequest(const std::string& request_id);  // NotFound
  // Returns a page of jobs, newest first. `after_id`: the last job of the previous page, "" for the
  // first page. NotFound: there is no job `after_id`.
  absl::StatusOr<std::vector<JobRow>> ListJobs(int page_size, const std::string& after_id);
  // Returns the jobs that have not ended, by id.
  absl::StatusOr<std::vector<JobRow>> UnfinishedJobs();
  // Appends an event to a job. NotFound: there is no such job. AlreadyExists: the number is used.
  // FailedPrecondition: the number leaves a gap.
  virtual void AppendEvent(JobEvent event, Done done);
  absl::StatusOr<std::vector<JobEvent>> Events(const std::string& job_id);  // in order; none: empty

  // Appends a trained cost model. Of the models of the key, the newest kModelsKept that this server
  // trained are kept, and as many imported ones. `done` gets the id. InvalidArgument: no name, no
  // target, no bytes or more than kMaxModelBytes, or a negative count.
  void PutModel(ModelRow model, absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done);
  // Return the model of a key that is in use, or the model with an id. NotFound: there is no such
  // model.
  absl::StatusOr<ModelRow> GetModel(const ModelKey& key);
  absl::StatusOr<ModelRow> GetModelById(int64_t id);
  // Returns the models in use, and the newest imported one of each key even if it is not in use,
  // newest first, without their bytes. `name` and `target` select models; "" selects all.
  // `with_earlier`: also the other models that are kept.
  absl::StatusOr<std::vector<ModelRow>> ListModels(const std::string& name,
                                                   const std::string& target,
                                                   bool with_earlier = false);

  // Keeps a value of another autotuner, which is opaque, by its name and environment, instead of
  // the one before. Now and then, the values that were put longest ago are forgotten, so that all
  // have about kMostCached bytes. InvalidArgument: the name or value is empty, or one is too long.
  static constexpr size_t kMaxCachedName = 512, kMaxCachedEnvironment = 1024;
  static constexpr size_t kMaxCachedValue = size_t{1} << 20;
  static constexpr int64_t kMostCached = int64_t{1} << 30;
  void PutCached(CachedRow row, Done done);
  absl::StatusOr<CachedRow> GetCached(const std::string& name,
                                      const std::string& environment);  // NotFound

  // Stores the standing of a worker. The row is removed if the worker is neither drained nor
  // refused. InvalidArgument: the worker's name is empty.
  void PutStanding(WorkerStanding standing, Done done);
  absl::StatusOr<std::vector<WorkerStanding>> Standings();  // by id

  // Adds a worker or replaces what is known of it, and forgets the workers that were seen
  // kWorkerMemoryMs before it or earlier. InvalidArgument: its name is empty.
  static constexpr int64_t kWorkerMemoryMs = int64_t{7} * 24 * 3600 * 1000;
  void PutWorker(KnownWorker worker, Done done);
  absl::StatusOr<std::vector<KnownWorker>> Workers();  // by id

  // Returns the unique name of this store, which is stored in it.
  absl::StatusOr<std::string> Identity();
  // Adds the rows that the store does not have yet, in one transaction. A record is already known
  // if a record of the same measurement is in the store (workload, target, tolerance, policy,
  // candidate, trial, outcome, latency and time), regardless of its id and job. A new record gets
  // an id of this store. The name of a job of another store gets the origin as a prefix:
  // "origin/4711". A record of `bests` is published if it is faster than the published best, or if
  // none is published. InvalidArgument: a record is malformed, or its texts are neither in the
  // batch nor in the store; the message says which record. Nothing of the batch is then stored.
  void Import(ImportBatch batch, absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done);

  // Backup and Compact run on the calling thread, for a time that grows with the size of the store;
  // other calls continue meanwhile. They must not be called from a `done`. `cancelled` is called
  // often. Cancelled: `cancelled` returned true.

  // Copies the current store to a new file and checks the copy. The file gets its name at the end.
  // AlreadyExists: a file with that name exists; it is not changed. InvalidArgument: the path is
  // not absolute. NotFound: its folder does not exist. FailedPrecondition: the database is not a
  // file.
  virtual absl::StatusOr<BackupReport> Backup(const std::string& path,
                                              const std::function<bool()>& cancelled) = 0;
  // Removes rows that are older than `options` allow, a few at a time, so that reads and other
  // writes wait only for milliseconds. The following are kept regardless of their age:
  // - the published bests, their texts, artifacts and jobs, and other records of the same
  // candidates
  // - the records of a task that a job has measured which has not ended, or can be resumed
  // - of each task the records that CompactOptions names, the fastest confirmed records and the
  //   newest confirmations of the default schedule
  // - the texts and artifacts of records that are kept, and the data that they were measured on
  // - standings of workers, and models
  // InvalidArgument: a number or a time is negative. After an error, the store is intact and a part
  // of the rows has been removed.
  absl::StatusOr<CompactReport> Compact(const CompactOptions& options,
                                        const std::function<bool()>& cancelled);
  // Tries to become the leader, the only server that may write to the store, and migrates the
  // store. Returns false if another server leads. Takes seconds if the database does not answer.
  // Unavailable: it cannot be reached. FailedPrecondition: it only accepts reads, acknowledges
  // commits too early, or has a newer schema. The only process that can open a file always leads.
  // REQUIRES: this server does not lead, and no write is queued.
  virtual absl::StatusOr<bool> Lead() { return true; }
  // Keeps the leadership, and reports when it is lost. A leader calls it a few times a second, on
  // one thread. It does not block. Aborted: this server does not lead, and all writes are refused.
  virtual absl::Status KeepLeading() { return absl::OkStatus(); }
  // Returns what KeepLeading last found out. Any thread may ask.
  virtual absl::Status Leading() { return absl::OkStatus(); }
  virtual StoreHealth Health() = 0;
  // ResourceExhausted: the disk is full. Writes wait until there is space again; those of callers
  // who wait for the answer are refused. The message says what to do.
  virtual absl::Status CheckSpace() { return absl::OkStatus(); }
  // DataLoss: the database is damaged, which was found when it was opened or later. It is then only
  // read: every write is refused with this error, whose message says what to do.
  virtual absl::Status CheckWritable() { return absl::OkStatus(); }
  // Whether the check after opening is under way, which may still find damage.
  virtual bool IsBeingChecked() { return false; }

  // Waits until every write that was queued before the call is committed and its `done` has run.
  // Returns the first error since the last Flush. Must not be called from a `done`.
  virtual absl::Status Flush() = 0;

 protected:
  // May run more than once; only the last run counts.
  using Apply = absl::AnyInvocable<absl::Status(Connection&)>;
  static constexpr size_t kRowBytes = 512;  // approximate size of a queued write without its texts
  static size_t BytesOf(const record::Record& record);

  // If `clock` is null, the system's clock is used.
  explicit Store(const Clock* clock) : clock_(clock != nullptr ? *clock : system_clock_) {}

  // What differs between databases. Runs `read` on a connection for reading, and returns its
  // result.
  virtual absl::Status Read(absl::FunctionRef<absl::Status(Connection&)> read) = 0;
  // Queues a write, which runs inside a transaction. `bytes`: its approximate size in memory.
  virtual void Write(Apply apply, Done done, size_t bytes, WhenFull when_full) = 0;
  // Gives unused space back to the disk.
  virtual absl::Status FreeSpace(const std::function<bool()>& cancelled) = 0;

  // Writes on the calling thread, and waits for the commit. REQUIRES: not called from a `done`.
  absl::Status WriteNow(const std::function<absl::Status(Connection&)>& work);
  // Runs a read that returns a value. Defined in tables.h, like WriteForResult.
  template <typename Select>
  auto Get(Select select) -> decltype(select(std::declval<Connection&>()));
  int64_t NowUnixMs() const { return absl::ToUnixMillis(clock_.Now()); }

 private:
  // Queues a write whose callback gets its result.
  template <typename Result>
  void WriteForResult(absl::AnyInvocable<absl::StatusOr<Result>(Connection&)> write,
                      absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done, size_t bytes,
                      WhenFull when_full = WhenFull::kWait);

  const SystemClock system_clock_;
  const Clock& clock_;
};

// Opens a SQLite store at `path`, and creates or migrates it if necessary; missing folders are
// created. No other process can open the store until the Store is destroyed, which commits all
// queued writes. Errors: see Store.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path);

// Opens the store that `place` names: a PostgreSQL database for "postgres://…" or "postgresql://…",
// otherwise a SQLite file. Errors: see Store.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& place);
// Returns the place without a password, for messages and logs.
std::string StoreName(const std::string& place);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_STORE_H_
