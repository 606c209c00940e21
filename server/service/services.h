#ifndef HONE_SERVER_SERVICE_SERVICES_H_
#define HONE_SERVER_SERVICE_SERVICES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/ir/program.h"
#include "common/ir/roofline.h"
#include "common/record/record.h"
#include "common/rpc/authenticator.h"
#include "common/rpc/status.h"
#include "common/target/target.h"
#include "grpcpp/support/server_callback.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/dashboard.pb.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/fleet/worker.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/task_environment.h"
#include "server/job/job_manager.h"
#include "server/job/search/draft_work.h"
#include "server/job/search/model_work.h"
#include "server/service/call_observer.h"
#include "server/service/gate.h"
#include "server/service/reads/reader_threads.h"
#include "server/service/standing_keeper.h"
#include "server/service/transfer_handler.h"
#include "server/service/watch_hub.h"
#include "server/store/retention.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/registry.h"

// The handlers of all calls, and what they depend on. Listener says where each runs.
namespace hone::service {

// The web page of a server, which server/web implements. Thread-safe.
class Dashboard {
 public:
  virtual ~Dashboard() = default;
  struct Opened {
    std::string url;
    absl::Time expires;
  };
  // Opens a session for a caller, in which it may do what its role may do. FailedPrecondition: the
  // server serves no page. ResourceExhausted: too many sessions.
  virtual absl::StatusOr<Opened> Open(const rpc::Identity& caller) = 0;
};

// The objects to which handlers pass the work. All outlive the handlers.
struct Dependencies {
  const Clock* clock = nullptr;  // wall clock, for times that are stored
  const rpc::Authenticator* authenticator = nullptr;
  const Readiness* readiness = nullptr;
  store::Store* store = nullptr;
  fleet::Fleet* fleet = nullptr;
  fleet::ArtifactCache* artifacts = nullptr;
  const job::TaskEnvironment* environment = nullptr;
  job::Executor* executor = nullptr;  // for computation that is too slow for gRPC's threads
  ReaderThreads* readers = nullptr;   // for reads of the store
  job::JobManager* jobs = nullptr;
  job::ModelWork* models = nullptr;
  job::DraftWork* drafts = nullptr;
  StandingKeeper* standings = nullptr;
  WorkerMemory* worker_memory = nullptr;
  WatchHub* watches = nullptr;
  TransferHandler* uploads = nullptr;
  TransferHandler* downloads = nullptr;
  ServerObserver* observer = nullptr;  // may be null
  Dashboard* dashboard = nullptr;      // may be null
  absl::Duration target_wait;          // see ServerOptions
  store::RetentionPolicy retention;
};

using Context = grpc::CallbackServerContext;

// A call that the gate has admitted.
struct Call {
  Context* context = nullptr;  // valid until the call is answered
  rpc::Identity caller;
  std::chrono::steady_clock::time_point arrived;
};

// For long work: Cancelled once the caller has gone, or its deadline is over.
inline job::StopCheck StopWithCaller(const Call& call) {
  return [context = call.context] {
    return context->IsCancelled() ? absl::CancelledError("the caller has gone") : absl::OkStatus();
  };
}

// Describes a read of the store for a call. The read ends when the call does.
inline ReaderThreads::Read ReadOf(ReaderLane lane, const Call& call) {
  const std::string host = rpc::PeerHost(*call.context);
  return {.lane = lane,
          .caller = call.caller.name.empty() ? host : absl::StrCat(call.caller.name, " at ", host),
          .cancelled = [context = call.context] { return context->IsCancelled(); }};
}

// Returns the status for a caller. A write fails with Aborted if the server has lost the
// leadership; the caller should repeat the call, at the next leader.
inline grpc::Status ToCaller(const absl::Status& status) {
  return rpc::ToGrpc(absl::IsAborted(status) ? absl::UnavailableError(status.message()) : status);
}

// Finishes a unary call. Must be called once, from any thread.
class Reply {
 public:
  explicit Reply(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {}
  void operator()(const absl::Status& status) const { reactor_->Finish(ToCaller(status)); }

 private:
  grpc::ServerUnaryReactor* reactor_;
};

// What the classes of handlers have in common.
class Handler {
 public:
  // REQUIRES: the dependencies outlive this object.
  explicit Handler(const Dependencies& deps) : deps_(deps) {}

 protected:
  const Dependencies& deps_;
};

// The calls about jobs. Thread-safe. Errors are those of tuning.proto.
class JobService : private Handler {
 public:
  using Handler::Handler;

  void CreateJob(const Call&, const v1::CreateJobRequest*, v1::Job*, Reply);
  void DraftSchedule(const Call&, const v1::DraftScheduleRequest*, v1::DraftedSchedule*, Reply);
  void GetJob(const Call&, const v1::GetJobRequest*, v1::Job*, Reply);
  grpc::ServerWriteReactor<v1::Job>* WatchJob(const Call&, const v1::GetJobRequest*);
  absl::Status CancelJob(const Call&, const v1::CancelJobRequest&, v1::Job*);
  absl::Status ListJobs(const Call&, const v1::ListJobsRequest&, v1::ListJobsResponse*);
  void ResumeJob(const Call&, const v1::ResumeJobRequest*, v1::Job*, Reply);
  void Propose(const Call&, const v1::ProposeRequest*, v1::ProposeResponse*, Reply);
  absl::Status ListTrials(const Call&, const v1::ListTrialsRequest&, v1::ListTrialsResponse*);

 private:
  // As ToSpec; also reads the text of a workload that the request names by its digest.
  absl::StatusOr<job::JobSpec> ReadSpec(const v1::CreateJobRequest& request) const;
  // PermissionDenied: the job is of another caller, and this one is no administrator. NotFound:
  // unknown job.
  absl::Status CheckMayControl(const rpc::Identity& caller, const std::string& id) const;
  absl::Status Fill(const job::SnapshotOr& snapshot, v1::Job* response) const;
};

// The calls that look up, explain and pin the best kernel, and those that transfer its data; the
// results of other autotuners. Thread-safe. Errors are those of tuning.proto and admin.proto.
class BestService : private Handler {
 public:
  using Handler::Handler;

  void LookupBest(const Call&, const v1::LookupBestRequest*, v1::Best*, Reply);
  // A client gets artifacts that were published, and the best of its own job that does not publish.
  grpc::ServerWriteReactor<v1::ArtifactChunk>* GetArtifact(const Call&,
                                                           const v1::GetArtifactRequest*);
  grpc::ServerReadReactor<v1::ArtifactChunk>* UploadInputs(const Call&, v1::UploadInputsResponse*);
  absl::Status GetCached(const Call&, const v1::GetCachedRequest&, v1::CachedValue*);
  void PutCached(const Call&, const v1::CachedValue*, v1::PutCachedResponse*, Reply);
  absl::Status ExplainSchedule(const Call&, const v1::ExplainScheduleRequest&, v1::Explanation*);
  absl::Status ListPins(const Call&, const v1::ListPinsRequest&, v1::ListPinsResponse*);
  void PinBest(const Call&, const v1::PinBestRequest*, v1::Best*, Reply);
  void UnpinBest(const Call&, const v1::UnpinBestRequest*, v1::UnpinBestResponse*, Reply);

 private:
  // Whether the artifact is the best of one of the caller's last jobs.
  bool IsBestOfOwnJob(const rpc::Identity& caller, const std::string& digest) const;
  // Describes a stored record. NotFound: there is none, or the text of its design space is gone.
  absl::StatusOr<v1::Best> FindRecord(int64_t id) const;
  absl::Status FindBest(const v1::LookupBestRequest& request, v1::Best* response);
  absl::Status FindNearest(const v1::LookupBestRequest& request, v1::Best* response);
  // Returns the key of the request's target. FailedPrecondition: it is the only target of all
  // workers, and there is none or several.
  absl::StatusOr<std::string> TargetOf(const v1::LookupBestRequest& request) const;
  // Returns a published best without its trace. `flops` is that of its workload.
  job::Best MakeBest(const store::BestRow& row, double flops) const;
  // Returns a published best as a response.
  absl::StatusOr<v1::Best> Describe(const store::BestRow& row) const;
  // Returns the record as a best, with the peaks that are stored with its job.
  job::Best WithPeaks(const record::Record& record, double flops) const;
  // Adds the shapes of both workloads to the error for pinning a record of another workload.
  absl::Status Explain(const absl::Status& status, const store::TaskKey& task,
                       int64_t record_id) const;
  // Returns the text of a target. NotFound: the operator was never measured on this target.
  // FailedPrecondition: only records of another store exist, and the target is neither a preset nor
  // this machine.
  absl::StatusOr<std::string> TargetText(const std::string& key, const std::string& op) const;
};

// The calls that read, export, import and forget records, and those that back up and compact the
// store. Thread-safe. Errors are those of tuning.proto and admin.proto.
class RecordService : private Handler {
 public:
  using Handler::Handler;

  absl::Status ListRecords(const Call&, const v1::ListRecordsRequest&, v1::ListRecordsResponse*);
  grpc::ServerWriteReactor<v1::TextChunk>* ExportRecords(const Call&,
                                                         const v1::ListRecordsRequest*);
  grpc::ServerReadReactor<v1::TextChunk>* ImportRecords(const Call&, v1::ImportRecordsResponse*);
  void ForgetRecords(const Call&, const v1::ForgetRecordsRequest*, v1::ForgetRecordsResponse*,
                     Reply);
  // These end early as the read of their thread does.
  absl::Status BackupStore(const Call&, const v1::BackupStoreRequest&, v1::BackupStoreResponse*);
  absl::Status CompactStore(const Call&, const v1::CompactStoreRequest&, v1::CompactStoreResponse*);
};

// Limits of requests about models.
inline constexpr int kMaxModels = 64;  // in one evaluation
inline constexpr int kMaxHeldOut = 64;

// Converts a request to a query, with defaults filled in. InvalidArgument: a number is out of
// range, or a text or a list is too long; the message names the field.
absl::StatusOr<job::TrainingQuery> ToQuery(const v1::TrainModelRequest& request,
                                           const job::TaskEnvironment& environment);
absl::StatusOr<job::EvaluationQuery> ToQuery(const v1::EvaluateModelsRequest& request,
                                             const job::TaskEnvironment& environment);

// The file in which `hone models export` carries a trained model to another server
// (proto/hone/v1/model_file.proto).

// Encodes a row with its bytes. `here` names this server; it becomes the origin of a model that
// this server has trained. An imported model keeps its origin.
std::string EncodeModelFile(const store::ModelRow& row, const std::string& here);

// Returns the row of a file, without an id. InvalidArgument: it is not such a file, is of another
// layout, truncated, damaged, or malformed; the message says which.
absl::StatusOr<store::ModelRow> DecodeModelFile(absl::string_view bytes);

// Checks whether a decoded row may be stored: its model is of this build and can be loaded, its
// predictions are numbers, its description is of this model, and its numbers are possible.
// InvalidArgument: something is wrong; the message says what.
absl::Status CheckImportedModel(const store::ModelRow& row, const job::TaskEnvironment& environment,
                                absl::Time now);

v1::ModelKind ToProto(const cost_model::CostModelInfo& info);
v1::StoredModel ToProto(const store::ModelRow& row);
v1::EvaluateModelsResponse ToProto(const job::ModelEvaluation& evaluation);

// The calls about cost models and features. Thread-safe. Errors are those of tuning.proto and
// admin.proto.
class ModelService : private Handler {
 public:
  using Handler::Handler;

  absl::Status ListModels(const Call&, const v1::ListModelsRequest&, v1::ListModelsResponse*);
  void TrainModel(const Call&, const v1::TrainModelRequest*, v1::StoredModel*, Reply);
  void EvaluateModels(const Call&, const v1::EvaluateModelsRequest*, v1::EvaluateModelsResponse*,
                      Reply);
  grpc::ServerWriteReactor<v1::ArtifactChunk>* ExportModel(const Call&,
                                                           const v1::ExportModelRequest*);
  grpc::ServerReadReactor<v1::ArtifactChunk>* ImportModel(const Call&, v1::StoredModel*);
  absl::Status DescribeFeatures(const Call&, const v1::DescribeFeaturesRequest&, v1::FeatureTable*);

 private:
  absl::StatusOr<std::shared_ptr<const std::string>> FileOf(int64_t id) const;
  // Checks a file and stores its model. `done` gets the row without its bytes.
  void KeepFile(const std::string& bytes,
                std::function<void(absl::StatusOr<store::ModelRow>)> done) const;
};

// Limits of one call of a worker.
inline constexpr int kMaxLeasesPerWorker = 4096;
inline constexpr int kMaxSlots = 1024;

// InvalidArgument: an id, epoch or target is missing, a number is out of range, a list is over its
// limit, or a key does not belong to its target; the message names the field. If record::FromProto
// refuses a result, its error is stored in FinishedLease::malformed.
absl::StatusOr<fleet::WorkerReport> FromProto(const v1::SynchronizeRequest& request);
v1::SynchronizeResponse ToProto(const fleet::SynchronizeReply& reply);

// The gRPC service for workers. It converts messages and passes the work to the fleet. Thread-safe.
// Errors:
//   INVALID_ARGUMENT    a request is malformed or over one of these limits, or the bytes of
//                       an upload do not match their digest or name (transfer_handler.h)
//   NOT_FOUND           there is no such artifact
//   FAILED_PRECONDITION a worker sends the reference kernel of a workload that it does not build
//   RESOURCE_EXHAUSTED  other uploads use all memory for uploads (transfer_handler.h)
//   UNAVAILABLE         the server is starting or shutting down
class WorkerService : private Handler {
 public:
  using Handler::Handler;

  grpc::ServerUnaryReactor* Synchronize(const Call&, const v1::SynchronizeRequest*,
                                        v1::SynchronizeResponse*);
  grpc::ServerReadReactor<v1::WorkerArtifactChunk>* UploadArtifact(const Call&,
                                                                   v1::UploadArtifactResponse*);
  grpc::ServerWriteReactor<v1::WorkerArtifactChunk>* DownloadArtifact(
      const Call&, const v1::DownloadArtifactRequest*);

 private:
  // Reference kernels that machines with a compiler have built for boards without one. They are
  // named as in common/record/reference_name.h, because the board cannot know their digests. The
  // least recently used ones are dropped; builders send them again. The board detects a reference
  // that computes something else, because it computes some hundred elements with the interpreter.
  fleet::ByteCache references_{/*max_bytes=*/64 << 20, /*max_names=*/4096};
};

// The calls of clients and administrators about workers. A drain or a removal is answered once it
// is durable. Thread-safe. Errors are those of tuning.proto and admin.proto.
class FleetService : private Handler {
 public:
  using Handler::Handler;

  absl::Status ListWorkers(const Call&, const v1::ListWorkersRequest&, v1::ListWorkersResponse*);
  void DrainWorker(const Call&, const v1::DrainWorkerRequest*, v1::WorkerInfo*, Reply);
  void RemoveWorker(const Call&, const v1::RemoveWorkerRequest*, v1::RemoveWorkerResponse*, Reply);
};

// Opens sessions of the web page. Thread-safe. Errors are those of dashboard.proto.
class DashboardService : private Handler {
 public:
  using Handler::Handler;

  absl::Status OpenDashboard(const Call&, const v1::OpenDashboardRequest&,
                             v1::OpenDashboardResponse*);
};

// The handlers of all calls, which the listeners of a server share. Thread-safe.
struct Services {
  explicit Services(const Dependencies& dependencies) : deps(dependencies) {}
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  const Dependencies deps;
  JobService jobs{deps};
  BestService bests{deps};
  RecordService records{deps};
  ModelService models{deps};
  FleetService fleet{deps};
  WorkerService worker{deps};
  DashboardService dashboard{deps};
};

// Why a schedule is as fast as it is: explanation.cc, for BestService. tuning.proto describes the
// fields of an explanation.

// What passes from L3 or memory into L2, and from memory into L3, by the estimate; 0 for a GPU.
struct EstimatedTraffic {
  double l2_bytes = 0, l3_bytes = 0;
};

// Estimates a program by the constants of the target or, if `learned` is not null, with the factors
// of a learned draft (draft_work.h), which compare schedules but know no durations. Terms that cost
// nothing are left out. The others overlap, so their gains do not add up to 1. InvalidArgument: the
// program has no block outside the prepack kernel, or a nest that is too deep.
absl::StatusOr<EstimatedTraffic> EstimateOf(const ir::Program& program,
                                            const target::Target& target,
                                            const cost_model::CostModel* learned,
                                            v1::Explanation& explanation);

// Schedules with at most this many other decisions are near, and this many of them are shown.
inline constexpr size_t kMostChanges = 2;
inline constexpr size_t kMostNear = 12;

// What is explained.
struct Explained {
  std::string trace;                     // text of a trace file with decisions
  std::string target;                    // text form
  std::optional<record::Record> record;  // nullopt: the trace alone, which was not measured
  ir::MeasuredSpeed speed;               // of the record and its device
};

// Fills in everything except the best, of which it sets the workload. Reads every record of the
// workload and the target. Takes milliseconds, and some 10 µs for each record. InvalidArgument: a
// text is malformed, the trace has open decisions, or it does not replay. Other errors are those of
// the store.
absl::Status Explain(store::Store& store, const job::TaskEnvironment& environment,
                     const Explained& what, v1::Explanation& explanation);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVICES_H_
