#include "server/service/listener.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/listener.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "server/service/call_observer.h"

namespace hone::service {
namespace {

// Has only requests parsed that MayBeParsed allows. Everything else is up to another handler.
class CheckedHandler final : public grpc::internal::MethodHandler {
 public:
  CheckedHandler(grpc::internal::MethodHandler* handler, size_t max_bytes)
      : handler_(handler), max_bytes_(max_bytes) {}
  void RunHandler(const HandlerParameter& parameter) override { handler_->RunHandler(parameter); }
  void* Deserialize(grpc_call* call, grpc_byte_buffer* request, grpc::Status* status,
                    void** handler_data) override {
    if (request != nullptr && !MayBeParsed(grpc_byte_buffer_length(request), max_bytes_)) {
      grpc_byte_buffer_destroy(request);
      // The other handler must make its messages nevertheless, and cannot parse this.
      grpc_slice malformed = grpc_slice_from_static_string("\x07");
      request = grpc_raw_byte_buffer_create(&malformed, 1);
    }
    return handler_->Deserialize(call, request, status, handler_data);
  }

 private:
  const std::unique_ptr<grpc::internal::MethodHandler> handler_;
  const size_t max_bytes_;
};

}  // namespace

const Access& GuardedService::AccessOf(absl::string_view name) const {
  return *FindAccess(absl::StrCat(prefix_, name));
}

void GuardedService::AddHandler(const Access& access, grpc::internal::RpcMethod::RpcType type,
                                grpc::internal::MethodHandler* handler) {
  // The names in the table are literals.
  AddMethod(new grpc::internal::RpcServiceMethod(access.method.data(), type, nullptr));
  MarkMethodCallback(count_++, new CheckedHandler(handler, access.max_bytes));
}

Listener::Listener(const GateOptions& options, const Parts& parts)
    : address_(options.address),
      gate_(options, parts.services->deps.authenticator, parts.limiter,
            options.address.IsUnix() ? nullptr : parts.connections),
      tuning_("TuningService", &gate_, parts.services->deps),
      worker_("WorkerService", &gate_, parts.services->deps),
      admin_("AdminService", &gate_, parts.services->deps),
      dashboard_("DashboardService", &gate_, parts.services->deps) {
  Services& all = *parts.services;
  using On = GuardedService::On;
  tuning_.Add("CreateJob", &all.jobs, &JobService::CreateJob, On::kShortReads);
  tuning_.Add("GetJob", &all.jobs, &JobService::GetJob);
  tuning_.Add("WatchJob", &all.jobs, &JobService::WatchJob);
  tuning_.Add("CancelJob", &all.jobs, &JobService::CancelJob, On::kShortReads);
  tuning_.Add("ListJobs", &all.jobs, &JobService::ListJobs, On::kLongReads);
  tuning_.Add("ResumeJob", &all.jobs, &JobService::ResumeJob, On::kLongReads);
  tuning_.Add("Propose", &all.jobs, &JobService::Propose, On::kShortReads);
  tuning_.Add("ListTrials", &all.jobs, &JobService::ListTrials, On::kLongReads);
  tuning_.Add("LookupBest", &all.bests, &BestService::LookupBest, On::kShortReads);
  tuning_.Add("GetCached", &all.bests, &BestService::GetCached, On::kShortReads);
  tuning_.Add("PutCached", &all.bests, &BestService::PutCached);
  tuning_.Add("ListPins", &all.bests, &BestService::ListPins, On::kLongReads);
  tuning_.Add("UploadInputs", &all.bests, &BestService::UploadInputs);
  tuning_.Add("GetArtifact", &all.bests, &BestService::GetArtifact);
  tuning_.Add("ListRecords", &all.records, &RecordService::ListRecords, On::kLongReads);
  tuning_.Add("ExportRecords", &all.records, &RecordService::ExportRecords);
  tuning_.Add("ListWorkers", &all.fleet, &FleetService::ListWorkers);
  tuning_.Add("DescribeFeatures", &all.models, &ModelService::DescribeFeatures, On::kExecutor);
  tuning_.Add("DraftSchedule", &all.jobs, &JobService::DraftSchedule);
  tuning_.Add("ExplainSchedule", &all.bests, &BestService::ExplainSchedule, On::kLongReads);
  tuning_.Add("ListModels", &all.models, &ModelService::ListModels, On::kLongReads);
  tuning_.Add("TrainModel", &all.models, &ModelService::TrainModel);
  tuning_.Add("EvaluateModels", &all.models, &ModelService::EvaluateModels);
  tuning_.Add("ExportModel", &all.models, &ModelService::ExportModel);
  worker_.Add("Synchronize", &all.worker, &WorkerService::Synchronize);
  worker_.Add("UploadArtifact", &all.worker, &WorkerService::UploadArtifact);
  worker_.Add("DownloadArtifact", &all.worker, &WorkerService::DownloadArtifact);
  admin_.Add("DrainWorker", &all.fleet, &FleetService::DrainWorker);
  admin_.Add("RemoveWorker", &all.fleet, &FleetService::RemoveWorker);
  admin_.Add("BackupStore", &all.records, &RecordService::BackupStore, On::kUnlimitedReads);
  admin_.Add("CompactStore", &all.records, &RecordService::CompactStore, On::kUnlimitedReads);
  admin_.Add("ImportRecords", &all.records, &RecordService::ImportRecords);
  admin_.Add("ImportModel", &all.models, &ModelService::ImportModel);
  admin_.Add("ForgetRecords", &all.records, &RecordService::ForgetRecords);
  admin_.Add("PinBest", &all.bests, &BestService::PinBest);
  admin_.Add("UnpinBest", &all.bests, &BestService::UnpinBest);
  dashboard_.Add("OpenDashboard", &all.dashboard, &DashboardService::OpenDashboard);
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(const GateOptions& options,
                                                          const Parts& parts) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  TakeProtobufLog();
  auto listener = std::unique_ptr<Listener>(new Listener(options, parts));
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  int port = 0;
  if (options.address.IsUnix() || parts.connections == nullptr) {
    HONE_RETURN_IF_ERROR(rpc::AddListener(builder, options.address, *parts.certificates, &port));
  } else {
    HONE_ASSIGN_OR_RETURN(
        listener->acceptor_,
        rpc::Acceptor::Listen(options.address, parts.certificates->Get(), parts.connections));
    listener->acceptor_->AddTo(builder, *parts.certificates);
    port = listener->acceptor_->port();
  }
  HONE_RETURN_IF_ERROR(listener->Build(builder, parts));
  if (!listener->address_.IsUnix()) listener->address_.port = port;
  listener->SetServing(Serving::kNothing);
  if (listener->acceptor_ != nullptr) listener->acceptor_->Start();
  return listener;
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::StartInProcess(const Parts& parts) {
  auto listener =
      std::unique_ptr<Listener>(new Listener({.address = {.host = rpc::kInProcess}}, parts));
  grpc::ServerBuilder builder;
  HONE_RETURN_IF_ERROR(listener->Build(builder, parts));
  return listener;
}

absl::Status Listener::Build(grpc::ServerBuilder& builder, const Parts& parts) {
  builder.RegisterService(&tuning_);
  builder.RegisterService(&worker_);
  builder.RegisterService(&admin_);
  builder.RegisterService(&dashboard_);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> observers;
  const Dependencies& deps = parts.services->deps;
  observers.push_back(
      std::make_unique<CallObserver>(CallObserver::Dependencies{.clock = deps.clock,
                                                                .authenticator = deps.authenticator,
                                                                .gate = &gate_,
                                                                .store = deps.store,
                                                                .audit = parts.audit,
                                                                .observer = deps.observer}));
  builder.experimental().SetInterceptorCreators(std::move(observers));
  server_ = builder.BuildAndStart();
  if (server_ != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address_.ToText()));
}

std::shared_ptr<grpc::Channel> Listener::InProcessChannel() const {
  return server_->InProcessChannel(grpc::ChannelArguments());
}

void Listener::SetServing(Serving serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("hone.v1.TuningService", serving != Serving::kNothing);
  for (const char* service : {"hone.v1.WorkerService", "hone.v1.AdminService", ""}) {
    health->SetServingStatus(service, serving == Serving::kAll);
  }
}

void Listener::EndServing() { server_->GetHealthCheckService()->Shutdown(); }

void Listener::Shutdown(absl::Time deadline) {
  if (acceptor_ != nullptr) acceptor_->Stop();
  server_->Shutdown(absl::ToChronoTime(deadline));
  server_->Wait();
}

}  // namespace hone::service
