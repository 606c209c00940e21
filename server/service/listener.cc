#include "server/service/listener.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/listener.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"

namespace hone::service {

Listener::Listener(const GateOptions& options, const Dependencies& deps)
    : address_(options.address),
      gate_(options, deps.authenticator, deps.limiter),
      tuning_(&gate_, deps.readiness, deps.executor),
      worker_(&gate_, deps.readiness, deps.executor),
      admin_(&gate_, deps.readiness, deps.executor) {
  TuningService* const tuning = deps.tuning;
  tuning_.Add("/hone.v1.TuningService/CreateJob", tuning, &TuningService::CreateJob);
  tuning_.Add("/hone.v1.TuningService/GetJob", tuning, &TuningService::GetJob);
  tuning_.Add("/hone.v1.TuningService/WatchJob", tuning, &TuningService::WatchJob);
  tuning_.Add("/hone.v1.TuningService/CancelJob", tuning, &TuningService::CancelJob);
  tuning_.AddWork("/hone.v1.TuningService/ListJobs", tuning, &TuningService::ListJobs);
  tuning_.Add("/hone.v1.TuningService/ResumeJob", tuning, &TuningService::ResumeJob);
  tuning_.Add("/hone.v1.TuningService/LookupBest", tuning, &TuningService::LookupBest);
  tuning_.AddWork("/hone.v1.TuningService/ListRecords", tuning, &TuningService::ListRecords);
  tuning_.Add("/hone.v1.TuningService/ListWorkers", tuning, &TuningService::ListWorkers);
  tuning_.Add("/hone.v1.TuningService/ExportRecords", tuning, &TuningService::ExportRecords);
  tuning_.Add("/hone.v1.TuningService/GetArtifact", tuning, &TuningService::GetArtifact);
  tuning_.AddWork("/hone.v1.TuningService/DescribeFeatures", tuning,
                  &TuningService::DescribeFeatures);
  tuning_.AddWork("/hone.v1.TuningService/ListModels", tuning, &TuningService::ListModels);
  tuning_.Add("/hone.v1.TuningService/TrainModel", tuning, &TuningService::TrainModel);
  tuning_.Add("/hone.v1.TuningService/EvaluateModels", tuning, &TuningService::EvaluateModels);
  WorkerService* const worker = deps.worker;
  worker_.Add("/hone.v1.WorkerService/Synchronize", worker, &WorkerService::Synchronize);
  worker_.Add("/hone.v1.WorkerService/UploadArtifact", worker, &WorkerService::UploadArtifact);
  worker_.Add("/hone.v1.WorkerService/DownloadArtifact", worker, &WorkerService::DownloadArtifact);
  AdminService* const admin = deps.admin;
  admin_.Add("/hone.v1.AdminService/DrainWorker", admin, &AdminService::DrainWorker);
  admin_.Add("/hone.v1.AdminService/RemoveWorker", admin, &AdminService::RemoveWorker);
  admin_.Add("/hone.v1.AdminService/BackupStore", admin, &AdminService::BackupStore);
  admin_.Add("/hone.v1.AdminService/CompactStore", admin, &AdminService::CompactStore);
  admin_.Add("/hone.v1.AdminService/ImportRecords", admin, &AdminService::ImportRecords);
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(const GateOptions& options,
                                                          rpc::ServerCertificates& certificates,
                                                          const Dependencies& deps) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  TakeProtobufLog();
  auto listener = std::unique_ptr<Listener>(new Listener(options, deps));
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  int port = 0;
  HONE_RETURN_IF_ERROR(rpc::AddListener(builder, options.address, certificates, &port));
  builder.RegisterService(&listener->tuning_);
  builder.RegisterService(&listener->worker_);
  builder.RegisterService(&listener->admin_);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> observers;
  observers.push_back(
      std::make_unique<CallObserver>(CallObserver::Dependencies{.clock = deps.clock,
                                                                .authenticator = deps.authenticator,
                                                                .audit = deps.audit,
                                                                .observer = deps.observer}));
  builder.experimental().SetInterceptorCreators(std::move(observers));
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "cannot listen on ", options.address.ToText(),
        ": the address is in use, not of this machine, or its folder is missing or not writable"));
  }
  if (!listener->address_.IsUnix()) listener->address_.port = port;
  listener->SetServing(false);
  return listener;
}

void Listener::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  for (const char* service :
       {"hone.v1.TuningService", "hone.v1.WorkerService", "hone.v1.AdminService", ""}) {
    health->SetServingStatus(service, serving);
  }
}

void Listener::Shutdown(absl::Time deadline) {
  server_->Shutdown(absl::ToChronoTime(deadline));
  server_->Wait();
}

}  // namespace hone::service
