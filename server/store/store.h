#ifndef HONE_SERVER_STORE_STORE_H_
#define HONE_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"

namespace hone::store {

// A job as it is kept: what was asked (an opaque request), where it stands, and its numbered events.
struct JobRow {
  std::string id;
  std::string request_id;
  std::string request;   // serialized CreateJobRequest, opaque here
  std::string state;     // "pending", "running", "confirming", "done", "cancelled", "failed"
  std::string error;
  std::string summary;   // serialized Job of the last report, opaque here
  int64_t created_unix_ms = 0;
  int64_t updated_unix_ms = 0;
};

// One numbered step of a job's search, so that a replay of the events reproduces every candidate.
struct JobEvent {
  std::string job_id;
  int64_t number = 0;    // 0, 1, … without gaps in a job
  std::string kind;      // "propose" or "tell"
  std::string payload;   // opaque here
};

struct BestQuery {
  std::string workload_digest;
  std::string target;
  double tolerance = 0;
  std::string policy;    // Policy::Key(); "" for the confirmed best of any policy
};

struct RecordQuery {
  std::string workload_digest;  // "" all
  std::string target;           // "" all
  std::string op;               // "" all
  bool best_only = false;
  int64_t since_unix_ms = 0;
  int page_size = 100;          // 1 to 1000
  int64_t after_id = 0;         // the page token: records with a larger id
};

struct BestRow {
  record::Record record;
  std::string workload;         // text form
  std::string space;            // the design space's text
};

// The durable store of records, jobs, texts by digest and artifacts. Thread-safe. Writes are queued to one writer and
// committed in groups; `done` runs on the writer's thread after the commit that holds the write (or with the error that lost
// it) and must not block. Reads see every write whose `done` has run.
// Errors: ResourceExhausted the disk is full or the queue is; PermissionDenied the file or disk is read-only; DataLoss the
// database is corrupt; FailedPrecondition its schema is newer than this program; the messages say where and what to do.
class Store {
 public:
  using Done = absl::AnyInvocable<void(absl::Status) &&>;
  virtual ~Store() = default;

  // Texts by digest (workloads, design spaces): written once, idempotent.
  virtual void PutText(const std::string& digest, const std::string& text, Done done) = 0;
  virtual absl::StatusOr<std::string> GetText(const std::string& digest) = 0;  // NotFound

  // Appends a record. The id is in the Record given to `done`.
  virtual void Append(record::Record record, absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) = 0;
  virtual absl::StatusOr<std::vector<record::Record>> Query(const RecordQuery& query) = 0;
  // Makes a confirmed record the published best of its (workload, target, tolerance, policy) in one transaction, with the
  // artifact that was measured.
  virtual void PublishBest(int64_t record_id, Done done) = 0;
  virtual absl::StatusOr<BestRow> LookupBest(const BestQuery& query) = 0;  // NotFound

  // Winners' artifacts.
  virtual void PutArtifact(const std::string& digest, std::string bytes, Done done) = 0;
  virtual absl::StatusOr<std::string> GetArtifact(const std::string& digest) = 0;  // NotFound

  virtual void PutJob(JobRow job, Done done) = 0;  // inserts or replaces by id
  virtual absl::StatusOr<JobRow> GetJob(const std::string& id) = 0;  // NotFound
  virtual absl::StatusOr<JobRow> GetJobByRequest(const std::string& request_id) = 0;  // NotFound
  virtual absl::StatusOr<std::vector<JobRow>> ListJobs(int page_size, const std::string& after_id) = 0;  // newest first
  virtual void AppendEvent(JobEvent event, Done done) = 0;
  virtual absl::StatusOr<std::vector<JobEvent>> Events(const std::string& job_id) = 0;

  // Returns when everything queued before the call is committed, with the first error since the last Flush.
  virtual absl::Status Flush() = 0;
};

// Opens (and creates or migrates) a SQLite store at `path`.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_STORE_H_
