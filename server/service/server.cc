#include "server/service/server.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/listener.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "spdlog/spdlog.h"

namespace hone::service {
namespace {

constexpr absl::Duration kCallsLimit = absl::Seconds(2);  // that open calls get to end
constexpr absl::Duration kJobsLimit = absl::Seconds(2);   // that cancelled jobs get to end

}  // namespace

Server::Server(ServerOptions options, std::unique_ptr<store::Store> store,
               std::unique_ptr<task::TaskEnvironment> environment)
    : options_(std::move(options)),
      fleet_(&clock_, &artifacts_, options_.fleet),
      environment_(std::move(environment)),
      pool_(std::make_unique<task::ThreadPool>(options_.threads)),
      store_(std::move(store)) {
  const task::JobServices services{.clock = &clock_,
                                   .store = store_.get(),
                                   .fleet = &fleet_,
                                   .artifacts = &artifacts_,
                                   .environment = environment_.get(),
                                   .executor = pool_.get()};
  jobs_ = std::make_unique<task::JobManager>(services, options_.job);
  models_ = std::make_unique<task::ModelWork>(services, options_.job.respect_timing_lock);
  watches_ = std::make_unique<WatchHub>(&clock_, jobs_.get());
  tuning_service_ =
      std::make_unique<TuningService>(TuningService::Rooms{.clock = &clock_,
                                                           .jobs = jobs_.get(),
                                                           .models = models_.get(),
                                                           .environment = environment_.get(),
                                                           .fleet = &fleet_,
                                                           .artifacts = &artifacts_,
                                                           .store = store_.get(),
                                                           .watches = watches_.get(),
                                                           .executor = pool_.get(),
                                                           .readiness = &readiness_,
                                                           .target_wait = options_.target_wait});
  worker_service_ =
      std::make_unique<WorkerService>(&fleet_, &artifacts_, store_.get(), &readiness_);
  admin_service_ =
      std::make_unique<AdminService>(AdminService::Rooms{.store = store_.get(),
                                                         .environment = environment_.get(),
                                                         .executor = pool_.get(),
                                                         .readiness = &readiness_});
}

Server::~Server() { Shutdown(); }

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    ServerOptions options, std::unique_ptr<store::Store> store,
    std::unique_ptr<task::TaskEnvironment> environment) {
  auto server = std::unique_ptr<Server>(
      new Server(std::move(options), std::move(store), std::move(environment)));
  HONE_RETURN_IF_ERROR(server->Listen());
  HONE_RETURN_IF_ERROR(server->jobs_->Restore());
  server->ticks_ = std::thread([raw = server.get()] { raw->RunTicks(); });
  server->readiness_.Set(Readiness::State::kReady);
  server->SetServing(true);
  return server;
}

absl::Status Server::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  std::vector<int> ports(options_.listen.size(), 0);
  for (size_t i = 0; i < options_.listen.size(); ++i) {
    HONE_RETURN_IF_ERROR(
        rpc::AddListener(builder, options_.listen[i], options_.insecure, &ports[i]));
  }
  builder.RegisterService(tuning_service_.get());
  builder.RegisterService(worker_service_.get());
  builder.RegisterService(admin_service_.get());
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) {
    std::string addresses;
    for (const rpc::Address& address : options_.listen) {
      absl::StrAppend(&addresses, addresses.empty() ? "" : ", ", address.ToText());
    }
    return absl::AlreadyExistsError(
        absl::StrCat("cannot listen on ", addresses,
                     ": the address is in use, not of this machine, or its folder is missing or "
                     "not writable"));
  }
  SetServing(false);
  for (size_t i = 0; i < options_.listen.size(); ++i) {
    addresses_.push_back(options_.listen[i]);
    if (!addresses_.back().IsUnix()) addresses_.back().port = ports[i];
  }
  return absl::OkStatus();
}

void Server::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = grpc_->GetHealthCheckService();
  health->SetServingStatus("hone.v1.TuningService", serving);
  health->SetServingStatus("hone.v1.WorkerService", serving);
  health->SetServingStatus("hone.v1.AdminService", serving);
  health->SetServingStatus("", serving);
}

void Server::RunTicks() {
  while (!stop_ticks_.WaitForNotificationWithTimeout(kTick)) {
    fleet_.Tick();
    jobs_->Tick();
    watches_->Tick();
    if (options_.private_mode) CancelUnwatched();
  }
}

void Server::CancelUnwatched() {
  const std::set<std::string> watched = watches_->Watched();
  const absl::Time now = clock_.Now();
  std::map<std::string, absl::Time> unwatched;
  for (const std::string& id : jobs_->Unfinished()) {
    if (watched.contains(id)) continue;
    auto known = unwatched_since_.find(id);
    const absl::Time since = known == unwatched_since_.end() ? now : known->second;
    unwatched[id] = since;
    if (now - since < options_.unwatched_limit) continue;
    spdlog::info("job {}: cancelled, since its client has gone", id);
    if (!jobs_->Cancel(id, false).ok()) spdlog::warn("job {}: has gone, too", id);
  }
  unwatched_since_ = std::move(unwatched);
}

void Server::CancelAllJobs() {
  for (const std::string& id : jobs_->Unfinished()) {
    if (!jobs_->Cancel(id, false).ok()) spdlog::warn("job {}: could not be cancelled", id);
  }
  const absl::Time limit = clock_.Now() + kJobsLimit;
  while (!jobs_->Unfinished().empty() && clock_.Now() < limit) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

void Server::Shutdown() {
  if (std::exchange(shut_down_, true)) return;
  readiness_.Set(Readiness::State::kDraining);
  if (grpc_ != nullptr) SetServing(false);
  if (ticks_.joinable()) {
    stop_ticks_.Notify();
    ticks_.join();
  }
  if (options_.private_mode) CancelAllJobs();
  jobs_->Suspend();
  models_->Stop();
  watches_->Drain();
  fleet_.Shutdown();
  if (grpc_ != nullptr) {
    grpc_->Shutdown(absl::ToChronoTime(clock_.Now() + kCallsLimit));
    grpc_->Wait();
  }
  if (absl::Status flushed = store_->Flush(); !flushed.ok()) {
    spdlog::error("the last writes were lost: {}", flushed.ToString());
  }
  pool_.reset();  // runs what is queued; suspended jobs do nothing
  store_.reset();
}

}  // namespace hone::service
