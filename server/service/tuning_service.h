#ifndef HONE_SERVER_SERVICE_TUNING_SERVICE_H_
#define HONE_SERVER_SERVICE_TUNING_SERVICE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/authenticator.h"
#include "hone/v1/tuning.grpc.pb.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/service/guarded_service.h"
#include "server/service/readiness.h"
#include "server/service/watch_hub.h"
#include "server/store/store.h"
#include "server/task/job_manager.h"
#include "server/task/model_work.h"
#include "server/task/nearest.h"
#include "server/task/task_environment.h"

namespace hone::service {

// The gRPC service for clients: validates, converts, and leaves the work to its dependencies.
// Thread-safe. Errors are those of tuning.proto; the limits are in job_convert.h.
class TuningService {
 public:
  struct Dependencies {
    const Clock* clock = nullptr;
    task::JobManager* jobs = nullptr;
    task::ModelWork* models = nullptr;
    const task::TaskEnvironment* environment = nullptr;
    fleet::Fleet* fleet = nullptr;
    fleet::ArtifactCache* artifacts = nullptr;
    store::Store* store = nullptr;
    WatchHub* watches = nullptr;
    task::Executor* executor = nullptr;  // for reads that take longer than a call may
    const Readiness* readiness = nullptr;
    const rpc::Authenticator* authenticator = nullptr;  // who owns a job
    absl::Duration target_wait;                         // see ServerOptions
  };
  explicit TuningService(const Dependencies& deps) : deps_(deps) {}

  using Context = grpc::CallbackServerContext;
  void CreateJob(Context*, const v1::CreateJobRequest*, v1::Job*, Reply);
  absl::Status GetJob(const v1::GetJobRequest&, v1::Job*);
  grpc::ServerWriteReactor<v1::Job>* WatchJob(Context*, const v1::GetJobRequest*);
  absl::Status CancelJob(const v1::CancelJobRequest&, v1::Job*);
  absl::Status ListJobs(const v1::ListJobsRequest&, v1::ListJobsResponse*);
  void ResumeJob(Context*, const v1::ResumeJobRequest*, v1::Job*, Reply);
  void LookupBest(Context*, const v1::LookupBestRequest*, v1::Best*, Reply);
  absl::Status ListRecords(const v1::ListRecordsRequest&, v1::ListRecordsResponse*);
  grpc::ServerWriteReactor<v1::TextChunk>* ExportRecords(Context*, const v1::ListRecordsRequest*);
  absl::Status ListWorkers(const v1::ListWorkersRequest&, v1::ListWorkersResponse*);
  grpc::ServerWriteReactor<v1::ArtifactChunk>* GetArtifact(Context*, const v1::GetArtifactRequest*);
  absl::Status DescribeFeatures(const v1::DescribeFeaturesRequest&, v1::FeatureTable*);
  absl::Status ListModels(const v1::ListModelsRequest&, v1::ListModelsResponse*);
  void TrainModel(Context*, const v1::TrainModelRequest*, v1::StoredModel*, Reply);
  void EvaluateModels(Context*, const v1::EvaluateModelsRequest*, v1::EvaluateModelsResponse*,
                      Reply);

 private:
  absl::Status FindBest(const v1::LookupBestRequest& request, v1::Best* response);
  // The record as a best, with the peaks of its device where they are known.
  task::Best WithPeaks(const record::Record& record, double flops) const;
  absl::Status FindNearest(const v1::LookupBestRequest& request, const task::WorkloadInfo& workload,
                           const std::string& target, v1::Best* response);
  // NotFound: nothing of the operator was measured on a target of that key.
  absl::StatusOr<std::string> TargetText(const std::string& key, const std::string& op) const;

  const Dependencies deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_TUNING_SERVICE_H_
