#ifndef HONE_CLIENT_LIB_CONNECTION_H_
#define HONE_CLIENT_LIB_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/lib/api.h"
#include "client/lib/retry.h"
#include "common/rpc/security.h"

namespace hone::client {

struct ConnectionOptions {
  absl::Duration call_timeout = absl::Seconds(20);  // of every call but WatchJob and Artifact
  absl::Duration watch_patience =
      absl::Seconds(60);  // how long WatchJob tries to find a server again
  RetryOptions retry;
  rpc::ChannelSecurity security;
  // Asked when the server cannot be reached, before a call is tried again; an error ends the trying
  // and is what the call returns. null: nobody knows more.
  std::function<absl::Status()> check;
};

// How often WatchJob reports at least.
inline constexpr absl::Duration kTick = absl::Milliseconds(200);

// The calls of a tuning server, with plain structs. Thread-safe. Every call has a deadline; only
// Unavailable is retried, with backoff and jitter. Errors of every call: Unavailable the server
// cannot be reached (the message names the address), DeadlineExceeded it does not answer in time;
// the others as in proto/hone/v1/tuning.proto.
class Connection {
 public:
  virtual ~Connection() = default;

  // Stores a job and starts it. FailedPrecondition: no worker can ever do it.
  virtual absl::StatusOr<Job> CreateJob(const JobSpec& spec) = 0;
  // Whether CreateJob would take it, as far as that can be told without a worker; makes nothing.
  // Errors as of CreateJob.
  virtual absl::Status CheckJob(const JobSpec& spec) = 0;
  virtual absl::StatusOr<Job> GetJob(const std::string& id) = 0;  // NotFound
  // Follows a job until it has ended, and returns its last state. `report` gets the state now,
  // after every change, and at least every kTick without one (then `changed` is false), on the
  // calling thread. Survives restarts of the server that are shorter than
  // ConnectionOptions::watch_patience. Cancelled: `report` returned false.
  virtual absl::StatusOr<Job> WatchJob(
      const std::string& id, const std::function<bool(const Job& job, bool changed)>& report) = 0;
  // Starts a cancelled or failed job again where it stopped; limits of 0 stay as they were.
  // FailedPrecondition: it was done.
  virtual absl::StatusOr<Job> ResumeJob(const std::string& id, int64_t max_trials,
                                        int64_t max_time_ms) = 0;
  virtual absl::StatusOr<Job> CancelJob(const std::string& id, bool confirm_finalists) = 0;
  // Newest first, `limit` at most (0: all).
  virtual absl::StatusOr<std::vector<Job>> ListJobs(int limit) = 0;

  // With `nearest`, where nothing is known of the workload, the schedule of the nearest one of its
  // form (Best::nearest). NotFound: nothing confirmed is known of it, or of any such, on that
  // target.
  virtual absl::StatusOr<Best> LookupBest(const std::string& workload, const std::string& target,
                                          double tolerance, bool nearest) = 0;
  virtual absl::StatusOr<std::vector<record::Record>> ListRecords(const RecordFilter& filter,
                                                                  int limit) = 0;
  // Up to `page_size` records after the last page's, whose token is `page_token`; the token of the
  // next page takes its place, "" where there is none.
  virtual absl::StatusOr<std::vector<record::Record>> RecordPage(const RecordFilter& filter,
                                                                 int page_size,
                                                                 std::string& page_token) = 0;
  // The records as JSON lines (server/store/README.md gives the form), in pieces that may end
  // anywhere. An error of `write` ends it and is returned.
  virtual absl::Status ExportRecords(
      const RecordFilter& filter, const std::function<absl::Status(absl::string_view)>& write) = 0;
  // Adds the records of an export, which `read` gives in pieces, "" at its end. InvalidArgument:
  // names the line; nothing of the import stays.
  virtual absl::StatusOr<ImportCounts> ImportRecords(
      const std::function<absl::StatusOr<std::string>()>& read) = 0;
  // `path`: on the server's machine. AlreadyExists: there is a file of that name.
  virtual absl::StatusOr<StoreBackup> BackupStore(const std::string& path) = 0;
  virtual absl::StatusOr<Compaction> CompactStore(const Retention& retention) = 0;
  virtual absl::StatusOr<std::vector<Worker>> ListWorkers() = 0;
  // How far the server's clock is ahead of this machine's, to within half of the time that a call
  // takes. FailedPrecondition: the server does not say.
  virtual absl::StatusOr<absl::Duration> ClockSkew() = 0;
  // What a feature set ("": statement) says of the candidate that a decided trace file is.
  // `target`: text form, or the key of one that the server has a worker of (else
  // FailedPrecondition).
  virtual absl::StatusOr<FeatureTable> DescribeFeatures(const std::string& trace,
                                                        const std::string& target,
                                                        const std::string& feature_set) = 0;
  // The bytes, checked against the digest. NotFound; DataLoss: they are not what the digest says.
  virtual absl::StatusOr<std::string> Artifact(const std::string& digest) = 0;

  // Cost models; `name`, `target`: "" all.
  virtual absl::StatusOr<ModelList> ListModels(const std::string& name,
                                               const std::string& target) = 0;
  // Both may take up to `limit`, in which the server works. NotFound: there are no records.
  // ResourceExhausted: the server trains or evaluates for somebody else.
  virtual absl::StatusOr<StoredModel> TrainModel(const TrainingRequest& request,
                                                 absl::Duration limit) = 0;
  virtual absl::StatusOr<ModelEvaluation> EvaluateModels(const EvaluationRequest& request,
                                                         absl::Duration limit) = 0;

  // Administrators only. The worker finishes what it has begun and gets no more; with `resume` it
  // gets work again, also one that was flagged or removed. NotFound.
  virtual absl::StatusOr<Worker> DrainWorker(const std::string& id, bool resume) = 0;
  // Forgets a worker and lets it in no more until it is resumed; how many leases went back.
  // NotFound.
  virtual absl::StatusOr<int> RemoveWorker(const std::string& id) = 0;

  // Connects lazily. `address`: "unix:/path", "host:port". InvalidArgument: it is neither, or may
  // not be called without encryption (rpc::CheckAllowed).
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& address,
                                                          const ConnectionOptions& options);
};

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_CONNECTION_H_
