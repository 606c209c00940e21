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
      tuning_(&gate_, deps.tuning),
      worker_(&gate_, deps.worker),
      admin_(&gate_, deps.admin) {}

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
