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
class TuningService final : public v1::TuningService::CallbackService {
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
    task::Executor* executor = nullptr;  // for reads that take longer than a handler may
    const Readiness* readiness = nullptr;
    const rpc::Authenticator* authenticator = nullptr;  // who owns a job
    absl::Duration target_wait;                         // see ServerOptions
  };
  explicit TuningService(const Dependencies& deps) : deps_(deps) {}

  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const v1::CreateJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerWriteReactor<v1::Job>* WatchJob(grpc::CallbackServerContext* context,
                                              const v1::GetJobRequest* request) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context,
                                      const v1::ResumeJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* LookupBest(grpc::CallbackServerContext* context,
                                       const v1::LookupBestRequest* request,
                                       v1::Best* response) override;
  grpc::ServerUnaryReactor* ListRecords(grpc::CallbackServerContext* context,
                                        const v1::ListRecordsRequest* request,
                                        v1::ListRecordsResponse* response) override;
  grpc::ServerWriteReactor<v1::TextChunk>* ExportRecords(
      grpc::CallbackServerContext* context, const v1::ListRecordsRequest* request) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* GetArtifact(
      grpc::CallbackServerContext* context, const v1::GetArtifactRequest* request) override;
  grpc::ServerUnaryReactor* DescribeFeatures(grpc::CallbackServerContext* context,
                                             const v1::DescribeFeaturesRequest* request,
                                             v1::FeatureTable* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* TrainModel(grpc::CallbackServerContext* context,
                                       const v1::TrainModelRequest* request,
                                       v1::StoredModel* response) override;
  grpc::ServerUnaryReactor* EvaluateModels(grpc::CallbackServerContext* context,
                                           const v1::EvaluateModelsRequest* request,
                                           v1::EvaluateModelsResponse* response) override;

 private:
  absl::Status FindBest(const v1::LookupBestRequest& request, v1::Best* response);
  // The record as a best, with the peaks of its device as far as anybody knows them.
  task::Best WithPeaks(const record::Record& record, double flops) const;
  absl::Status FindNearest(const v1::LookupBestRequest& request, const task::WorkloadInfo& workload,
                           const std::string& target, v1::Best* response);
  // NotFound: nothing of the operator was measured on a target of that key.
  absl::StatusOr<std::string> TargetText(const std::string& key, const std::string& op) const;
  absl::Status FindRecords(const v1::ListRecordsRequest& request,
                           v1::ListRecordsResponse* response);
  absl::Status FindFeatures(const v1::DescribeFeaturesRequest& request, v1::FeatureTable* response);
  absl::Status FindJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse* response);
  absl::Status FindWorkers(const v1::ListWorkersRequest& request,
                           v1::ListWorkersResponse* response);
  absl::Status FindModels(const v1::ListModelsRequest& request, v1::ListModelsResponse* response);

  const Dependencies deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_TUNING_SERVICE_H_
