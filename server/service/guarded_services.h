#ifndef HONE_SERVER_SERVICE_GUARDED_SERVICES_H_
#define HONE_SERVER_SERVICE_GUARDED_SERVICES_H_

#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/tuning.grpc.pb.h"
#include "hone/v1/worker.grpc.pb.h"
#include "server/service/gate.h"
#include "server/service/worker_service.h"

namespace hone::service {

// The services of one listener: each call passes the gate, and then goes to the service behind it.
// All outlive them. Thread-safe.
class GuardedTuningService final : public v1::TuningService::CallbackService {
 public:
  GuardedTuningService(const Gate* gate, v1::TuningService::CallbackService* inner)
      : gate_(gate), inner_(inner) {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* CreateJob(Context*, const v1::CreateJobRequest*, v1::Job*) override;
  Unary* GetJob(Context*, const v1::GetJobRequest*, v1::Job*) override;
  grpc::ServerWriteReactor<v1::Job>* WatchJob(Context*, const v1::GetJobRequest*) override;
  Unary* CancelJob(Context*, const v1::CancelJobRequest*, v1::Job*) override;
  Unary* ListJobs(Context*, const v1::ListJobsRequest*, v1::ListJobsResponse*) override;
  Unary* ResumeJob(Context*, const v1::ResumeJobRequest*, v1::Job*) override;
  Unary* LookupBest(Context*, const v1::LookupBestRequest*, v1::Best*) override;
  Unary* ListRecords(Context*, const v1::ListRecordsRequest*, v1::ListRecordsResponse*) override;
  Unary* ListWorkers(Context*, const v1::ListWorkersRequest*, v1::ListWorkersResponse*) override;
  grpc::ServerWriteReactor<v1::TextChunk>* ExportRecords(Context*,
                                                         const v1::ListRecordsRequest*) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* GetArtifact(Context*,
                                                           const v1::GetArtifactRequest*) override;
  Unary* DescribeFeatures(Context*, const v1::DescribeFeaturesRequest*, v1::FeatureTable*) override;
  Unary* ListModels(Context*, const v1::ListModelsRequest*, v1::ListModelsResponse*) override;
  Unary* TrainModel(Context*, const v1::TrainModelRequest*, v1::StoredModel*) override;
  Unary* EvaluateModels(Context*, const v1::EvaluateModelsRequest*,
                        v1::EvaluateModelsResponse*) override;

 private:
  const Gate* const gate_;
  v1::TuningService::CallbackService* const inner_;
};

class GuardedWorkerService final : public v1::WorkerService::CallbackService {
 public:
  GuardedWorkerService(const Gate* gate, WorkerService* inner) : gate_(gate), inner_(inner) {}

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* Synchronize(Context*, const v1::SynchronizeRequest*,
                                        v1::SynchronizeResponse*) override;
  grpc::ServerReadReactor<v1::WorkerArtifactChunk>* UploadArtifact(
      Context*, v1::UploadArtifactResponse*) override;
  grpc::ServerWriteReactor<v1::WorkerArtifactChunk>* DownloadArtifact(
      Context*, const v1::DownloadArtifactRequest*) override;

 private:
  const Gate* const gate_;
  WorkerService* const inner_;
};

class GuardedAdminService final : public v1::AdminService::CallbackService {
 public:
  GuardedAdminService(const Gate* gate, v1::AdminService::CallbackService* inner)
      : gate_(gate), inner_(inner) {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* DrainWorker(Context*, const v1::DrainWorkerRequest*, v1::WorkerInfo*) override;
  Unary* RemoveWorker(Context*, const v1::RemoveWorkerRequest*, v1::RemoveWorkerResponse*) override;
  Unary* BackupStore(Context*, const v1::BackupStoreRequest*, v1::BackupStoreResponse*) override;
  Unary* CompactStore(Context*, const v1::CompactStoreRequest*, v1::CompactStoreResponse*) override;
  grpc::ServerReadReactor<v1::TextChunk>* ImportRecords(Context*,
                                                        v1::ImportRecordsResponse*) override;

 private:
  const Gate* const gate_;
  v1::AdminService::CallbackService* const inner_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_GUARDED_SERVICES_H_
