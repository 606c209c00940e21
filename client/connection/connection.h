#ifndef HONE_CLIENT_CONNECTION_CONNECTION_H_
#define HONE_CLIENT_CONNECTION_CONNECTION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/connection/api.h"
#include "client/connection/retry.h"
#include "common/rpc/security.h"

namespace hone::client {

struct ConnectionOptions {
  // For every call without a specific timeout in connection.cc.
  absl::Duration call_timeout = absl::Seconds(20);
  RetryOptions retry;
  rpc::ChannelSecurity security;
  // Called when the server cannot be reached, before each retry. If it returns an error, the call
  // is not retried and returns that error. May be null.
  std::function<absl::Status()> check;
};

// How long a server waits for a first worker of a job's target before CreateJob fails
// (ServerOptions::target_wait). Less than the timeout of the call.
inline constexpr absl::Duration kTargetWait = absl::Seconds(15);

// The longest time between two reports of WatchJob.
inline constexpr absl::Duration kTick = absl::Milliseconds(200);

// Called on the calling thread while a call waits, at least every kTick. Returns whether to wait
// longer.
using KeepWaiting = std::function<bool()>;

// The calls of a tuning server, with the messages of hone.v1. Answers were checked (Check in
// api.h). Thread-safe. Every call has a deadline; only Unavailable is retried, with backoff and
// jitter, except by ForgetRecords and UnpinBest. Errors of every call: Unavailable: the server
// cannot be reached (the message names the address). DeadlineExceeded: it does not answer in time.
// Other errors are as in proto/hone/v1/tuning.proto.
class Connection {
 public:
  virtual ~Connection() = default;

  // The server's address, as it was given to Open.
  virtual const std::string& address() const = 0;
  // Whether there is a connection to the server now. The first call makes it.
  virtual bool IsConnected() = 0;

  // Stores a job and starts it. Each call has a new request id, so that a repeated attempt does not
  // create a second job. The server waits up to kTargetWait for a worker of the target.
  // FailedPrecondition: no worker can run it. Cancelled: `waiting`, which may be null, returned
  // false, and no job was created.
  virtual absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request,
                                            const KeepWaiting& waiting) = 0;
  // Checks a job without creating it, as far as this is possible without a worker. Errors as for
  // CreateJob.
  virtual absl::Status CheckJob(const v1::CreateJobRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> GetJob(const std::string& id) = 0;  // NotFound
  // Follows a job until it has ended, and returns its last state. `report` gets the state now,
  // after every change, and at least every kTick without one, on the calling thread. Survives
  // outages of the server that are shorter than ten minutes. Cancelled: `report` returned false.
  virtual absl::StatusOr<v1::Job> WatchJob(
      const std::string& id,
      const std::function<bool(const v1::Job& job, JobNews news)>& report) = 0;
  // Restarts a cancelled or failed job where it stopped. A limit of 0 is left unchanged.
  // FailedPrecondition: the job was done.
  virtual absl::StatusOr<v1::Job> ResumeJob(const std::string& id, int64_t max_trials,
                                            int64_t max_time_ms) = 0;
  virtual absl::StatusOr<v1::Job> CancelJob(const std::string& id, bool confirm_finalists) = 0;
  // Proposes schedules for a job (docs/proposers.md). If an answer was lost, the verdict of what
  // was accepted is that it is known. NotFound: no such job. FailedPrecondition: it does not
  // search. ResourceExhausted: too many of the caller's schedules are being checked.
  virtual absl::StatusOr<v1::ProposeResponse> Propose(const v1::ProposeRequest& request) = 0;
  // Newest first, at most `limit` (0: all).
  virtual absl::StatusOr<std::vector<v1::Job>> ListJobs(int limit) = 0;

  // With `nearest`, if no best of the workload is known, adapts the schedule of the nearest
  // workload of the same form (Best::nearest). NotFound: no confirmed best is known on that target.
  virtual absl::StatusOr<v1::Best> LookupBest(const std::string& workload,
                                              const std::string& target, double tolerance,
                                              bool nearest) = 0;
  // Answers many queries with calls that overlap, which is several times as fast as one call after
  // the other. Answer i belongs to query i; nullopt: no best is known.
  virtual absl::StatusOr<std::vector<std::optional<v1::Best>>> LookupBests(
      absl::Span<const v1::LookupBestRequest> queries) = 0;
  // The pinned bests, without their traces.
  virtual absl::StatusOr<std::vector<v1::Best>> ListPins() = 0;
  virtual absl::StatusOr<std::vector<record::Record>> ListRecords(
      const v1::ListRecordsRequest& filter, int limit) = 0;
  // The page of up to `page_size` records at `page_token` ("": the first page). Sets `page_token`
  // to the token of the next page, or to "" at the end.
  virtual absl::StatusOr<std::vector<record::Record>> RecordPage(
      const v1::ListRecordsRequest& filter, int page_size, std::string& page_token) = 0;
  // Exports the records as JSON lines (format: server/store/README.md). `write` gets the text in
  // pieces that may end anywhere; an error that it returns ends the export and is returned.
  virtual absl::Status ExportRecords(
      const v1::ListRecordsRequest& filter,
      const std::function<absl::Status(absl::string_view)>& write) = 0;
  // Adds the records of an export. `read` returns its text in pieces, and "" at the end.
  // InvalidArgument: the text is malformed; the message names the line, and nothing is imported.
  virtual absl::StatusOr<v1::ImportRecordsResponse> ImportRecords(
      const std::function<absl::StatusOr<std::string>()>& read) = 0;
  // Administrators only. Quarantines all records of a task and withdraws its best. NotFound:
  // nothing is known of it. FailedPrecondition: a job of the task has not ended.
  virtual absl::StatusOr<v1::ForgetRecordsResponse> ForgetRecords(const Task& task) = 0;
  // Administrators only. Pins the published best of a task or, if `record` is not 0, publishes and
  // pins that record of the task. Returns the best without its trace. NotFound: nothing is
  // published, or there is no such record. FailedPrecondition: the record cannot be published.
  virtual absl::StatusOr<v1::Best> PinBest(const Task& task, int64_t record) = 0;
  // Administrators only. NotFound: the best of the task is not pinned.
  virtual absl::Status UnpinBest(const Task& task) = 0;
  // `path` is a path on the server's machine. AlreadyExists: the file exists.
  virtual absl::StatusOr<v1::BackupStoreResponse> BackupStore(const std::string& path) = 0;
  virtual absl::StatusOr<v1::CompactStoreResponse> CompactStore(
      const v1::CompactStoreRequest& retention) = 0;
  virtual absl::StatusOr<std::vector<v1::WorkerInfo>> ListWorkers() = 0;
  // Opens a session of the server's web page.
  // FailedPrecondition: the server serves no page. PermissionDenied: the caller may only read.
  virtual absl::StatusOr<v1::OpenDashboardResponse> OpenDashboard(
      const v1::OpenDashboardRequest& request) = 0;
  // How far the server's clock is ahead of this machine's clock, accurate to half of the duration
  // of a call. FailedPrecondition: the server does not send its time.
  virtual absl::StatusOr<absl::Duration> ClockSkew() = 0;
  // What the server's last answer said about its store.
  struct StoreReport {
    bool is_being_checked = false;  // the check of the whole store may still find damage
    std::string damage;             // what is wrong, and what to do; "": no damage is known
  };
  virtual StoreReport LastStoreReport() = 0;
  // The features of a candidate, given as a trace file without open decisions. `feature_set`: "" is
  // "statement". `target`: text form, or a key. FailedPrecondition: the server has no worker of a
  // target with that key.
  virtual absl::StatusOr<v1::FeatureTable> DescribeFeatures(const std::string& trace,
                                                            const std::string& target,
                                                            const std::string& feature_set) = 0;
  // The schedule that a job with default settings would measure first, if nothing is known of the
  // workload on the target. `target` is as for DescribeFeatures. FailedPrecondition: no schedule is
  // legal, or as for DescribeFeatures. Aborted: a test run of the search failed.
  virtual absl::StatusOr<v1::DraftedSchedule> DraftSchedule(const std::string& workload,
                                                            const std::string& target,
                                                            double tolerance) = 0;
  // Explains why a stored record or a trace is as fast as it is. Errors are those of
  // TuningService::ExplainSchedule.
  virtual absl::StatusOr<v1::Explanation> Explain(const v1::ExplainScheduleRequest& request) = 0;
  // The bytes of an artifact, checked against the digest. NotFound: no such artifact. DataLoss: the
  // bytes do not match the digest.
  virtual absl::StatusOr<std::string> Artifact(const std::string& digest) = 0;
  // Sends data to measure on (common/record/given_inputs.h) and returns their digest.
  // InvalidArgument: malformed, or more than 64 MiB.
  virtual absl::StatusOr<std::string> UploadInputs(const std::string& bytes) = 0;

  // Lists the kinds of cost models and the stored models. `target`: "" for all.
  virtual absl::StatusOr<v1::ListModelsResponse> ListModels(const std::string& target) = 0;
  // The next two calls may take up to `limit`. NotFound: there are no records. ResourceExhausted:
  // the server is training or evaluating for another caller.
  virtual absl::StatusOr<v1::StoredModel> TrainModel(const v1::TrainModelRequest& request,
                                                     absl::Duration limit) = 0;
  virtual absl::StatusOr<v1::EvaluateModelsResponse> EvaluateModels(
      const v1::EvaluateModelsRequest& request, absl::Duration limit) = 0;

  // The file of a trained model, for ImportModel of another server. NotFound: no such model.
  virtual absl::StatusOr<std::string> ExportModel(int64_t id) = 0;
  // Administrators only. Stores the model of such a file. InvalidArgument: the file is malformed,
  // or its model cannot be loaded; nothing is stored.
  virtual absl::StatusOr<v1::StoredModel> ImportModel(const std::string& file) = 0;

  // Administrators only. The worker finishes its leases and gets no more. With `resume` it gets
  // work again, even if it was flagged or removed. NotFound: no such worker.
  virtual absl::StatusOr<v1::WorkerInfo> DrainWorker(const std::string& id, bool resume) = 0;
  // Administrators only. Removes a worker and rejects it until it is resumed. Returns the number of
  // leases that were requeued. NotFound: no such worker.
  virtual absl::StatusOr<int> RemoveWorker(const std::string& id) = 0;

  // Connects lazily. `address`: "unix:/path" or "host:port". InvalidArgument: the address is
  // malformed, or encryption is required for it (rpc::CheckAllowed).
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& address,
                                                          const ConnectionOptions& options);
};

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_CONNECTION_H_
