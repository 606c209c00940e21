#ifndef HONE_SERVER_STORE_STORE_H_
#define HONE_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"

namespace hone::store {

// A job as it is kept: what was asked (an opaque request), where it stands, and its numbered
// events.
struct JobRow {
  std::string id;
  std::string request_id;
  std::string request;  // serialized CreateJobRequest, opaque here
  std::string state;    // "pending", "running", "confirming", "done", "cancelled", "failed"
  std::string error;
  std::string summary;  // serialized Job of the last report, opaque here
  int64_t created_unix_ms = 0;
  int64_t updated_unix_ms = 0;
  std::string owner;                // who created it; "" if callers are not authenticated
  std::string priority = "normal";  // "low", "normal" or "high"
  // The claim of the server replica that works on it: given when the row is new, later only by
  // ClaimJobs, RenewJobs and ReleaseJob.
  std::string replica;              // "" none
  int64_t lease_until_unix_ms = 0;  // after which any replica may claim it
  int64_t fence = 0;                // grows with every claim
};

// A server replica that claims jobs until a moment.
struct JobClaim {
  std::string replica;        // unique to a run of a server, never used again
  int64_t now_unix_ms = 0;    // leases that end before are free
  int64_t until_unix_ms = 0;  // when the new or renewed leases end
};

// The claim under which a replica writes what belongs to a job. It is looked at in the transaction
// of the write: a replica that lost the job commits nothing more.
struct JobFence {
  std::string job_id;  // "": the write belongs to no job, and nothing is looked at
  int64_t fence = 0;   // as the job's row has it
  // A record's: the job's event that it follows from. -1: of none. Where that event could not be
  // written – the disk was full – its results are not, either, or the job, resumed, would
  // number others the same.
  int64_t event = -1;
};

// One numbered step of a job's search, so that a replay of the events reproduces every candidate.
struct JobEvent {
  std::string job_id;
  int64_t number = 0;   // 0, 1, … without gaps in a job
  std::string kind;     // "propose" or "tell"
  std::string payload;  // opaque here
  int64_t fence = 0;    // of the claim under which it is written, as the job's row has it
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

struct RecordQuery {
  std::string workload_digest;  // "" all
  std::string target;           // "" all
  std::string op;               // "" all
  bool best_only = false;       // the published bests
  // Of each (workload, target, tolerance) without a published best, the fastest confirmed record
  // that is ok and not quarantined: imports bring such records without their artifacts.
  bool unpublished_best = false;
  int64_t since_unix_ms = 0;
  int page_size = 100;        // 1 to 1000
  int64_t after_id = 0;       // the page token: records with a larger id
  int64_t before_id = 0;      // and, when it is not 0, a smaller one than this
  bool newest_first = false;  // by falling id; else by rising id
  int64_t until_unix_ms = 0;  // not 0: made before this
  std::string job_id;         // "" all
  std::string outcome;        // by name; "" all
  QuarantineFilter quarantine = QuarantineFilter::kAll;
};

// What a trained cost model is of. The newest row of a key is the one in force.
struct ModelKey {
  std::string name;         // the model's registered name
  std::string feature_set;  // that it reads; "" none
  std::string target;       // the target whose records it learnt from
  std::string scope;        // the operator whose records it learnt from; "" every one
  friend bool operator==(const ModelKey&, const ModelKey&) = default;
};

// A trained cost model as it is kept.
struct ModelRow {
  int64_t id = 0;  // given by the store; only grows
  ModelKey key;
  int64_t version = 0;    // of the form of `bytes`, counted by the model
  int64_t records = 0;    // that it learnt from
  int64_t workloads = 0;  // that they were of
  int64_t created_unix_ms = 0;
  std::string metrics;  // how good it is, as a JSON object; opaque here
  std::string bytes;    // as CostModel::Save gives them, opaque here
  int64_t size = 0;     // of `bytes`, also where a list leaves them out
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
  std::vector<record::Record> bests;  // that were published, as they were before
};

// How the store does, for a person and for metrics.
struct StoreHealth {
  enum class Check {
    kUnderWay,    // the whole of it is being read
    kSound,       // was read and is as it must be
    kDamaged,     // is not; writes are refused
    kNotChecked,  // this run did not look, or the database looks after itself
  };
  std::string backend;  // "sqlite", "postgresql"
  Check check = Check::kNotChecked;
  std::string damage;         // what is wrong and what to do
  int64_t size_bytes = 0;     // on disk
  int64_t queued_writes = 0;  // not committed yet
};

struct BackupReport {
  int64_t size_bytes = 0;
  int64_t records = 0;
};

struct CompactOptions {
  int64_t keep_unix_ms = 0;  // what is older may go; 0: nothing is removed, only space given back
  int keep_best = 32;        // of each workload and target so many stay whatever their age
  bool dry_run = false;      // count and change nothing
};

struct CompactReport {
  int64_t records_removed = 0;
  int64_t jobs_removed = 0;
  int64_t texts_removed = 0;
  int64_t artifacts_removed = 0;
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
};

// What is to be remembered of a worker that is not like the others: what an administrator said, and
// whether it is believed.
struct WorkerStanding {
  std::string worker_id;
  bool drained = false;  // an administrator's wish
  std::string refused;   // why it gets no leases; "" it does
  bool removed = false;  // refused since an administrator removed it; else it is flagged
  int64_t since_unix_ms = 0;
  friend bool operator==(const WorkerStanding&, const WorkerStanding&) = default;
};

// What has changed in how a worker stands. The rest stays as it is stored: server replicas that
// share the store do not overwrite what another of them was told.
struct StandingChange {
  std::string worker_id;
  std::optional<bool> drained;
  // Why it gets no leases; "" it gets them again. A flag leaves the refusal of a removal as it is.
  std::optional<std::string> refused;
  bool removed = false;  // of `refused`
  int64_t since_unix_ms = 0;
};

// Rows of another store.
struct ImportBatch {
  std::string origin;                            // the other store's Identity
  std::map<std::string, std::string> texts;      // by digest
  std::map<std::string, std::string> artifacts;  // by digest
  std::vector<record::Record> records;
  std::vector<std::string> where;  // of each record, for messages: "line 12"; may be shorter
  std::vector<size_t> bests;       // indexes of records that were published there
};

struct ImportReport {
  int64_t added = 0;  // records
  int64_t known = 0;  // that were there already
  int64_t bests = 0;  // that are published now
};

// The durable store of records, jobs, texts by digest and artifacts. Thread-safe. Writes are queued
// to one writer and committed in groups; `done` runs on a thread of the store after the commit that
// holds the write (or with the error that lost it) and must not block. Reads see every write whose
// `done` has run. Errors: ResourceExhausted the disk is full or the queue is; PermissionDenied the
// file or disk is read-only; DataLoss the database is corrupt; FailedPrecondition its schema is
// newer than this program; Unavailable another process has the store open; InvalidArgument a
// malformed row or query; the messages say where and what to do.
class Store {
 public:
  // Rows of a model's key that are kept: the newest, and those before it that a job under way may
  // have begun with.
  static constexpr int kModelsKept = 4;
  static constexpr size_t kMaxModelBytes = size_t{64} << 20;

  using Done = absl::AnyInvocable<void(absl::Status) &&>;
  virtual ~Store() = default;

  // Texts by digest (workloads, design spaces): written once; the first text of a digest stays.
  virtual void PutText(const std::string& digest, const std::string& text, Done done) = 0;
  virtual absl::StatusOr<std::string> GetText(const std::string& digest) = 0;  // NotFound

  // Appends a record. The id is in the Record given to `done`; ids only grow.
  // InvalidArgument: no workload digest or target, a tolerance that is not a finite number ≥ 0, or
  // outcome ok without a positive latency. Aborted: another replica has since claimed the job of
  // `fence`, or it is not there. FailedPrecondition: the event of `fence` is not there.
  virtual void Append(record::Record record, const JobFence& fence,
                      absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) = 0;
  void Append(record::Record record,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) {
    Append(std::move(record), JobFence(), std::move(done));
  }
  virtual absl::StatusOr<std::vector<record::Record>> Query(const RecordQuery& query) = 0;
  // Makes a confirmed record the published best of its (workload, target, tolerance, policy) in one
  // transaction, with the artifact that was measured. The caller has decided that it is better than
  // `incumbent`, the id of the record that LookupBest returned for any policy (0: it found none);
  // nullopt replaces any incumbent. Does nothing if the record is published already.
  // AlreadyExists: another record is the incumbent now, or is pinned. NotFound: no such record.
  // FailedPrecondition: its policy is not "confirm", its outcome not ok, it is quarantined, or its
  // workload's or design space's text or its artifact is not in the store yet (put them first:
  // writes keep their order). Aborted: as of Append.
  virtual void PublishBest(int64_t record_id, std::optional<int64_t> incumbent,
                           const JobFence& fence, Done done) = 0;
  void PublishBest(int64_t record_id, Done done) {
    PublishBest(record_id, std::nullopt, JobFence(), std::move(done));
  }
  // Quarantines the records of a candidate whose ids are up to `last_record`, whatever their
  // policy: they stay, and nothing is learnt from them or published of them. A published best among
  // them is withdrawn, and its pin with it. `reason`, for a person, is kept with those that were
  // not quarantined before.
  // `done` is not OK only when the write was lost, or, Aborted, as of Append.
  virtual void Quarantine(const std::string& workload_digest, const std::string& target,
                          const record::Candidate& candidate, int64_t last_record,
                          const std::string& reason, const JobFence& fence, Done done) = 0;
  void Quarantine(const std::string& workload_digest, const std::string& target,
                  const record::Candidate& candidate, int64_t last_record,
                  const std::string& reason, Done done) {
    Quarantine(workload_digest, target, candidate, last_record, reason, JobFence(),
               std::move(done));
  }
  // The published best; of those of several policies the fastest. NotFound: none is published.
  virtual absl::StatusOr<BestRow> LookupBest(const BestQuery& query) = 0;
  // Quarantines all records of a task, as Quarantine does for a candidate. NotFound: the task has
  // no record that is not quarantined.
  virtual void Forget(const TaskKey& task, const std::string& reason,
                      absl::AnyInvocable<void(absl::StatusOr<Forgotten>) &&> done) = 0;
  // Pins the published best of a task, or publishes and pins one of the task's records (`record`
  // is not 0), whatever is published or pinned. NotFound: nothing is published; no such record.
  // InvalidArgument: the record is of another task. FailedPrecondition: as of PublishBest.
  virtual void PinBest(const TaskKey& task, int64_t record, const std::string& by, Done done) = 0;
  // Removes the pin of a task's best, which stays published. NotFound: it is not pinned.
  virtual void UnpinBest(const TaskKey& task, Done done) = 0;
  // The pinned bests, in the order of their publication.
  virtual absl::StatusOr<std::vector<BestRow>> PinnedBests() = 0;

  // Winners' artifacts.
  virtual void PutArtifact(const std::string& digest, std::string bytes, Done done) = 0;
  virtual absl::StatusOr<std::string> GetArtifact(const std::string& digest) = 0;  // NotFound

  // A number that no job has or had: the next job's id. ResourceExhausted, Unavailable: as above.
  virtual absl::StatusOr<int64_t> NextJobNumber() = 0;
  // Inserts or replaces by id. AlreadyExists: another job has this request_id ("" is none).
  // InvalidArgument: no id, an unknown state or priority. Aborted: the row's fence is another: the
  // job was claimed by somebody else since.
  virtual void PutJob(JobRow job, Done done) = 0;
  virtual absl::StatusOr<JobRow> GetJob(const std::string& id) = 0;                   // NotFound
  virtual absl::StatusOr<JobRow> GetJobByRequest(const std::string& request_id) = 0;  // NotFound
  // Newest first; after_id: the last job of the page before, "" for the first page. NotFound: no
  // such after_id.
  virtual absl::StatusOr<std::vector<JobRow>> ListJobs(int page_size,
                                                       const std::string& after_id) = 0;
  // Whether other server replicas may work on it at the same time: claims are for a while then, and
  // renewed. Else every claim of an earlier opener has ended, and one may be for ever.
  virtual bool IsShared() const { return false; }
  // Claims unfinished jobs that no replica holds, at most `limit`, and returns them as they are
  // now.
  virtual void ClaimJobs(const JobClaim& claim, int limit,
                         absl::AnyInvocable<void(absl::StatusOr<std::vector<JobRow>>) &&> done) = 0;
  // Extends the leases of the replica; `done` gets the ids of the unfinished jobs that it still
  // holds: others were claimed by somebody else, whose writes fence this one's off.
  virtual void RenewJobs(
      const JobClaim& claim,
      absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>) &&> done) = 0;
  // Gives a job back, so that any replica may claim it. Aborted: the fence is another. NotFound: no
  // such job.
  virtual void ReleaseJob(const std::string& id, int64_t fence, Done done) = 0;
  // NotFound: no such job. AlreadyExists / FailedPrecondition: the number is taken / leaves a gap.
  // Aborted: the job's fence is another.
  virtual void AppendEvent(JobEvent event, Done done) = 0;
  virtual absl::StatusOr<std::vector<JobEvent>> Events(
      const std::string& job_id) = 0;  // in order; none: empty

  // Trained cost models. PutModel appends a row, which becomes the newest of its key, and forgets
  // those of the key before the newest kModelsKept; `done` gets its id. InvalidArgument: no name,
  // no target, no bytes or more than kMaxModelBytes of them, or a negative count.
  virtual void PutModel(ModelRow model,
                        absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) = 0;
  // The newest of a key, and any that is kept by its id. NotFound: there is none.
  virtual absl::StatusOr<ModelRow> GetModel(const ModelKey& key) = 0;
  virtual absl::StatusOr<ModelRow> GetModelById(int64_t id) = 0;
  // The newest of every key, the newest first, without their bytes. `name`, `target`: "" all.
  virtual absl::StatusOr<std::vector<ModelRow>> ListModels(const std::string& name,
                                                           const std::string& target) = 0;

  // What is remembered of workers. ChangeStanding changes what it names; a worker that nothing is
  // said against any more is forgotten. InvalidArgument: no worker is named.
  virtual void ChangeStanding(StandingChange change, Done done) = 0;
  virtual absl::StatusOr<std::vector<WorkerStanding>> Standings() = 0;  // by id

  // A name of this store that no other has; kept in it.
  virtual absl::StatusOr<std::string> Identity() = 0;
  // Adds what is not there yet, in one transaction. A record is there when one of the same
  // measurement is (workload, target, tolerance, policy, candidate, trial, outcome, latency and
  // time), whatever its id and job. A new one gets an id of this store, and its job, when it comes
  // from another, a name with the origin in front: "origin/4711". Of `bests` those are published
  // that are faster than what is, or whose key has nothing. InvalidArgument: a malformed record, or
  // one whose texts are neither in the batch nor here; the message says where it stands. Nothing of
  // the batch stays then.
  virtual void Import(ImportBatch batch,
                      absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) = 0;

  // The next two take as long as the store is large, on the calling thread, and other calls go on
  // meanwhile; they are not called from a `done`. Cancelled: `cancelled` said so; it is asked
  // often.

  // Copies the store as it is now into a new file, checks the copy, and gives it its name at the
  // end. AlreadyExists: there is a file of that name, which stays. InvalidArgument: the path is not
  // absolute. NotFound: its folder is missing. FailedPrecondition: the database is not a file.
  virtual absl::StatusOr<BackupReport> Backup(const std::string& path,
                                              const std::function<bool()>& cancelled) = 0;
  // Removes what is older than asked, and gives unused space back. What stays whatever its age: the
  // published bests with their texts and artifacts, the records of jobs under way, and the best
  // `keep_best` of each workload and target; and with a record its texts and its job.
  virtual absl::StatusOr<CompactReport> Compact(const CompactOptions& options,
                                                const std::function<bool()>& cancelled) = 0;
  virtual StoreHealth Health() = 0;

  // Returns when everything queued before the call is committed and its `done` has run, with the
  // first error since the last Flush. Not to be called from a `done`.
  virtual absl::Status Flush() = 0;
};

// Opens (and creates or migrates) a SQLite store at `path`; missing folders are made. This process
// is its only opener until the Store is destroyed, which commits what is queued. Errors as above.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path);

// Opens the store that `place` names: a PostgreSQL database for "postgres://…" or "postgresql://…",
// else a SQLite file. Errors as above.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& place);
// The place for messages and logs: without a password.
std::string StoreName(const std::string& place);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_STORE_H_
