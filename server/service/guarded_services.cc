#include "server/service/guarded_services.h"

#include <chrono>
#include <utility>

#include "common/rpc/status.h"

namespace hone::service {
namespace {

template <typename Message>
class RefusedWrite final : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedWrite(const absl::Status& why) { this->Finish(rpc::ToGrpc(why)); }
  void OnDone() override { delete this; }

 private:
  ~RefusedWrite() override = default;
};

template <typename Message>
class RefusedRead final : public grpc::ServerReadReactor<Message> {
 public:
  explicit RefusedRead(const absl::Status& why) { this->Finish(rpc::ToGrpc(why)); }
  void OnDone() override { delete this; }

 private:
  ~RefusedRead() override = default;
};

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& why) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(why));
  return reactor;
}

// The call, or the refusal of the gate.
template <typename Inner>
grpc::ServerUnaryReactor* PassUnary(const Gate& gate, grpc::CallbackServerContext* context,
                                    const char* method, const google::protobuf::Message* request,
                                    Inner inner) {
  const auto caller = gate.Admit(*context, method, request);
  return caller.ok() ? inner() : Refuse(context, caller.status());
}

template <typename Message, typename Inner>
grpc::ServerWriteReactor<Message>* Writes(const Gate& gate, grpc::CallbackServerContext* context,
                                          const char* method,
                                          const google::protobuf::Message* request, Inner inner) {
  const auto caller = gate.Admit(*context, method, request);
  if (!caller.ok()) return new RefusedWrite<Message>(caller.status());
  return inner();
}

template <typename Message, typename Inner>
grpc::ServerReadReactor<Message>* Reads(const Gate& gate, grpc::CallbackServerContext* context,
                                        const char* method, Inner inner) {
  const auto caller = gate.Admit(*context, method, nullptr);
  if (!caller.ok()) return new RefusedRead<Message>(caller.status());
  return inner();
}

}  // namespace

grpc::ServerUnaryReactor* GuardedTuningService::CreateJob(Context* context,
                                                          const v1::CreateJobRequest* request,
                                                          v1::Job* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/CreateJob", request,
                   [&] { return inner_->CreateJob(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::GetJob(Context* context,
                                                       const v1::GetJobRequest* request,
                                                       v1::Job* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/GetJob", request,
                   [&] { return inner_->GetJob(context, request, response); });
}

grpc::ServerWriteReactor<v1::Job>* GuardedTuningService::WatchJob(
    Context* context, const v1::GetJobRequest* request) {
  return Writes<v1::Job>(*gate_, context, "/hone.v1.TuningService/WatchJob", request,
                         [&] { return inner_->WatchJob(context, request); });
}

grpc::ServerUnaryReactor* GuardedTuningService::CancelJob(Context* context,
                                                          const v1::CancelJobRequest* request,
                                                          v1::Job* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/CancelJob", request,
                   [&] { return inner_->CancelJob(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::ListJobs(Context* context,
                                                         const v1::ListJobsRequest* request,
                                                         v1::ListJobsResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/ListJobs", request,
                   [&] { return inner_->ListJobs(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::ResumeJob(Context* context,
                                                          const v1::ResumeJobRequest* request,
                                                          v1::Job* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/ResumeJob", request,
                   [&] { return inner_->ResumeJob(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::LookupBest(Context* context,
                                                           const v1::LookupBestRequest* request,
                                                           v1::Best* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/LookupBest", request,
                   [&] { return inner_->LookupBest(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::ListRecords(Context* context,
                                                            const v1::ListRecordsRequest* request,
                                                            v1::ListRecordsResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/ListRecords", request,
                   [&] { return inner_->ListRecords(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::ListWorkers(Context* context,
                                                            const v1::ListWorkersRequest* request,
                                                            v1::ListWorkersResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/ListWorkers", request,
                   [&] { return inner_->ListWorkers(context, request, response); });
}

grpc::ServerWriteReactor<v1::TextChunk>* GuardedTuningService::ExportRecords(
    Context* context, const v1::ListRecordsRequest* request) {
  return Writes<v1::TextChunk>(*gate_, context, "/hone.v1.TuningService/ExportRecords", request,
                               [&] { return inner_->ExportRecords(context, request); });
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* GuardedTuningService::GetArtifact(
    Context* context, const v1::GetArtifactRequest* request) {
  return Writes<v1::ArtifactChunk>(*gate_, context, "/hone.v1.TuningService/GetArtifact", request,
                                   [&] { return inner_->GetArtifact(context, request); });
}

grpc::ServerUnaryReactor* GuardedTuningService::DescribeFeatures(
    Context* context, const v1::DescribeFeaturesRequest* request, v1::FeatureTable* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/DescribeFeatures", request,
                   [&] { return inner_->DescribeFeatures(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::ListModels(Context* context,
                                                           const v1::ListModelsRequest* request,
                                                           v1::ListModelsResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/ListModels", request,
                   [&] { return inner_->ListModels(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::TrainModel(Context* context,
                                                           const v1::TrainModelRequest* request,
                                                           v1::StoredModel* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/TrainModel", request,
                   [&] { return inner_->TrainModel(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedTuningService::EvaluateModels(
    Context* context, const v1::EvaluateModelsRequest* request,
    v1::EvaluateModelsResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.TuningService/EvaluateModels", request,
                   [&] { return inner_->EvaluateModels(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedWorkerService::Synchronize(Context* context,
                                                            const v1::SynchronizeRequest* request,
                                                            v1::SynchronizeResponse* response) {
  const auto arrived = std::chrono::steady_clock::now();
  const auto caller = gate_->Admit(*context, "/hone.v1.WorkerService/Synchronize", request);
  if (!caller.ok()) return Refuse(context, caller.status());
  const absl::Status own = gate_->CheckWorkerId(*caller, request->worker_id());
  if (!own.ok()) return Refuse(context, own);
  return inner_->Take(context, request, response, arrived);
}

grpc::ServerReadReactor<v1::WorkerArtifactChunk>* GuardedWorkerService::UploadArtifact(
    Context* context, v1::UploadArtifactResponse* response) {
  return Reads<v1::WorkerArtifactChunk>(*gate_, context, "/hone.v1.WorkerService/UploadArtifact",
                                        [&] { return inner_->UploadArtifact(context, response); });
}

grpc::ServerWriteReactor<v1::WorkerArtifactChunk>* GuardedWorkerService::DownloadArtifact(
    Context* context, const v1::DownloadArtifactRequest* request) {
  return Writes<v1::WorkerArtifactChunk>(
      *gate_, context, "/hone.v1.WorkerService/DownloadArtifact", request,
      [&] { return inner_->DownloadArtifact(context, request); });
}

grpc::ServerUnaryReactor* GuardedAdminService::DrainWorker(Context* context,
                                                           const v1::DrainWorkerRequest* request,
                                                           v1::WorkerInfo* response) {
  return PassUnary(*gate_, context, "/hone.v1.AdminService/DrainWorker", request,
                   [&] { return inner_->DrainWorker(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedAdminService::RemoveWorker(Context* context,
                                                            const v1::RemoveWorkerRequest* request,
                                                            v1::RemoveWorkerResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.AdminService/RemoveWorker", request,
                   [&] { return inner_->RemoveWorker(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedAdminService::BackupStore(Context* context,
                                                           const v1::BackupStoreRequest* request,
                                                           v1::BackupStoreResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.AdminService/BackupStore", request,
                   [&] { return inner_->BackupStore(context, request, response); });
}

grpc::ServerUnaryReactor* GuardedAdminService::CompactStore(Context* context,
                                                            const v1::CompactStoreRequest* request,
                                                            v1::CompactStoreResponse* response) {
  return PassUnary(*gate_, context, "/hone.v1.AdminService/CompactStore", request,
                   [&] { return inner_->CompactStore(context, request, response); });
}

grpc::ServerReadReactor<v1::TextChunk>* GuardedAdminService::ImportRecords(
    Context* context, v1::ImportRecordsResponse* response) {
  return Reads<v1::TextChunk>(*gate_, context, "/hone.v1.AdminService/ImportRecords",
                              [&] { return inner_->ImportRecords(context, response); });
}

}  // namespace hone::service
