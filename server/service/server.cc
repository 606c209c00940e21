#include "server/service/server.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/listener.h"
#include "server/store/read_limit.h"
#include "spdlog/spdlog.h"

namespace hone::service {
namespace {

// Shares of the time to shut down.
constexpr double kCallsShare = 0.4;  // for the end of open calls
constexpr double kJobsShare = 0.4;   // for the end of cancelled jobs

// Whether a failed write is lost data. Some errors only answer a request, such as to forget an
// unknown workload.
bool IsLoss(const absl::Status& write) {
  return !write.ok() && !absl::IsNotFound(write) && !absl::IsAlreadyExists(write) &&
         !absl::IsInvalidArgument(write) && !absl::IsFailedPrecondition(write) &&
         !absl::IsAborted(write);
}

// A later server of this process has the same name, because its process has not crashed since.
const std::string& NameOfThisRun() {
  static const auto* const name = new std::string(job::NameARun());
  return *name;
}

bool AsksWhoCalls(const ServerOptions& options) {
  return options.tokens != nullptr || !options.security.client_ca.empty();
}

}  // namespace

absl::Status CheckListeners(const ServerOptions& options) {
  const rpc::ServerSecurity& security = options.security;
  for (const auto& [address, role] : options.listen) {
    HONE_RETURN_IF_ERROR(rpc::CheckAllowed(address, security.tls(), security.insecure));
    if (AsksWhoCalls(options) || address.IsLocal() || security.insecure) continue;
    return absl::PermissionDeniedError(absl::StrCat(
        address.ToText(),
        " is not limited to this machine, and callers are not authenticated: give tokens, or "
        "client-certificates = \"require\" (hone-server init makes both), or --insecure if every "
        "caller on the network may do everything"));
  }
  return absl::OkStatus();
}

absl::Status CheckCanStart(const ServerOptions& options) {
  HONE_RETURN_IF_ERROR(CheckListeners(options));
  std::set<std::string> seen;
  for (const auto& [address, role] : options.listen) {
    HONE_RETURN_IF_ERROR(rpc::CheckFree(address));
    const bool is_any_port = !address.IsUnix() && address.port == 0;
    if (!is_any_port && !seen.insert(address.ToText()).second) {
      return absl::AlreadyExistsError(
          absl::StrCat("the server is to listen on ", address.ToText(), " twice"));
    }
  }
  if (options.audit_log.empty()) return absl::OkStatus();
  return AuditLog::Open(options.audit_log, options.audit).status();
}

Server::Server(ServerOptions options, std::shared_ptr<store::Store> store,
               std::unique_ptr<job::TaskEnvironment> environment)
    : options_(std::move(options)),
      authenticator_(options_.tokens),
      certificates_(options_.security),
      limiter_(&steady_clock_, options_.calls_per_second, 2 * options_.calls_per_second),
      connections_(&steady_clock_, options_.connections,
                   [this](absl::string_view reason, const std::string& host) {
                     NoteRefusedConnection(reason, host);
                   }),
      uploads_("upload", &steady_clock_, options_.uploads),
      downloads_("download", &steady_clock_, options_.downloads),
      fleet_(&steady_clock_, &artifacts_, OptionsOfFleet()),
      environment_(std::move(environment)),
      pool_(std::make_unique<job::ThreadPool>(options_.threads)),
      learning_pool_(std::make_unique<job::ThreadPool>(1, job::ThreadPool::kNiceLearning)),
      store_(std::move(store)),
      readers_(std::make_unique<ReaderThreads>(options_.readers)) {
  const job::JobServices services{
      .clock = &clock_,
      .steady_clock = &steady_clock_,
      .store = store_.get(),
      .fleet = &fleet_,
      .known_workers = [this] { return worker_memory_->WithAbsent(fleet_.KnownWorkers()); },
      .artifacts = &artifacts_,
      .environment = environment_.get(),
      .executor = pool_.get(),
      .note_result = [this](const std::string& target_key) { models_->NoteResult(target_key); },
      .server = NameOfThisRun()};
  authenticator_.SetRevoked(options_.revoked);
  jobs_ = std::make_unique<job::JobManager>(services, options_.job);
  job::JobServices of_models = services;
  of_models.executor = learning_pool_.get();
  models_ = std::make_unique<job::ModelWork>(of_models, options_.job.respect_timing_lock);
  drafts_ = std::make_unique<job::DraftWork>(services, options_.job);
  const KeeperDependencies kept{
      .clock = &clock_, .steady_clock = &steady_clock_, .fleet = &fleet_, .store = store_.get()};
  standings_ = std::make_unique<StandingKeeper>(kept);
  worker_memory_ = std::make_unique<WorkerMemory>(kept);
  if (!options_.private_mode) {
    retention_ = std::make_unique<store::RetentionWork>(&clock_, &steady_clock_, store_.get(),
                                                        options_.retention);
  }
  watches_ = std::make_unique<WatchHub>(&steady_clock_, jobs_.get(), &fleet_, readers_.get());
  services_ = std::make_unique<Services>(Dependencies{.clock = &clock_,
                                                      .authenticator = &authenticator_,
                                                      .readiness = &readiness_,
                                                      .store = store_.get(),
                                                      .fleet = &fleet_,
                                                      .artifacts = &artifacts_,
                                                      .environment = environment_.get(),
                                                      .executor = pool_.get(),
                                                      .readers = readers_.get(),
                                                      .jobs = jobs_.get(),
                                                      .models = models_.get(),
                                                      .drafts = drafts_.get(),
                                                      .standings = standings_.get(),
                                                      .worker_memory = worker_memory_.get(),
                                                      .watches = watches_.get(),
                                                      .uploads = &uploads_,
                                                      .downloads = &downloads_,
                                                      .observer = options_.observer,
                                                      .dashboard = options_.dashboard,
                                                      .target_wait = options_.target_wait,
                                                      .retention = options_.retention.policy});
}

fleet::FleetOptions Server::OptionsOfFleet() {
  fleet::FleetOptions options = options_.fleet;
  options.on_standing = [this](const std::string& worker_id) { standings_->Keep(worker_id); };
  options.on_rival = [](const std::string& worker_id, const std::string& rival) {
    spdlog::warn("worker {}: {}", worker_id, rival);
  };
  options.on_event = [](const std::string& worker_id, const std::string& event) {
    spdlog::info("worker {}: {}", worker_id, event);
  };
  return options;
}

void Server::NoteRefusedConnection(absl::string_view reason, const std::string& host) {
  if (options_.observer != nullptr) options_.observer->OnRefusedConnection(reason);
  if (audit_ == nullptr) return;
  audit_->WriteRefusal({.time = clock_.Now(),
                        .peer = host,
                        .result = "RESOURCE_EXHAUSTED",
                        .detail = "the limit of connections is reached",
                        .reason = std::string(reason)});
}

absl::Status Server::ReplaceTokens(std::shared_ptr<const rpc::TokenTable> tokens) {
  if ((tokens == nullptr) != (options_.tokens == nullptr)) {
    return absl::FailedPreconditionError(
        "restart the server to change whether callers need a token");
  }
  authenticator_.SetTokens(std::move(tokens));
  return absl::OkStatus();
}

absl::Status Server::ReplaceCertificates(const rpc::ServerSecurity& security) {
  return certificates_.Replace(security);
}

Server::~Server() { Shutdown(); }

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    ServerOptions options, std::shared_ptr<store::Store> store,
    std::unique_ptr<job::TaskEnvironment> environment) {
  auto server = std::unique_ptr<Server>(
      new Server(std::move(options), std::move(store), std::move(environment)));
  HONE_RETURN_IF_ERROR(server->Listen());
  if (absl::Status led = server->Compete();
      absl::IsUnavailable(led) || absl::IsAborted(led) || absl::IsResourceExhausted(led)) {
    server->Depose(led);
  } else if (!led.ok()) {
    return led;
  }
  server->ticks_ = std::thread([raw = server.get()] { raw->RunTicks(); });
  return server;
}

absl::Status Server::Compete() {
  const absl::StatusOr<bool> leads = store_->Lead();
  if (leads.ok() && *leads) return BeginToLead();
  const Readiness::State state = leads.ok() ? Readiness::State::kStandby
                                 : absl::IsUnavailable(leads.status())
                                     ? Readiness::State::kUnreachable
                                     : Readiness::State::kRefused;
  if (readiness_.state() == state) return absl::OkStatus();
  readiness_.Set(state);
  if (leads.ok()) {
    spdlog::info("another server leads, and this one is a standby");
  } else {
    spdlog::error("cannot lead, and tries again: {}", std::string(leads.status().message()));
  }
  return absl::OkStatus();
}

absl::Status Server::BeginToLead() {
  HONE_RETURN_IF_ERROR(standings_->Restore());
  // The worker of a private server ends with it.
  if (!options_.private_mode) HONE_RETURN_IF_ERROR(worker_memory_->Restore());
  HONE_RETURN_IF_ERROR(store_->KeepLeading());  // the reads may take long
  HONE_RETURN_IF_ERROR(jobs_->Restore());
  readiness_.Set(Readiness::State::kLeader);
  SetServing(Listener::Serving::kAll);
  return absl::OkStatus();
}

void Server::Depose(const absl::Status& why) {
  spdlog::error("{}; its jobs wait", std::string(why.message()));
  readiness_.Set(Readiness::State::kUnreachable);
  EndServing();
  jobs_->Suspend();
  deposed_ = true;
}

absl::Status Server::Listen() {
  HONE_RETURN_IF_ERROR(CheckListeners(options_));
  if (!options_.audit_log.empty()) {
    HONE_ASSIGN_OR_RETURN(audit_, AuditLog::Open(options_.audit_log, options_.audit));
  }
  if (options_.dashboard != nullptr) {
    HONE_ASSIGN_OR_RETURN(inside_, Listener::StartInProcess({.certificates = &certificates_,
                                                             .limiter = &limiter_,
                                                             .audit = audit_.get(),
                                                             .services = services_.get()}));
  }
  for (const auto& [address, role] : options_.listen) {
    HONE_ASSIGN_OR_RETURN(listeners_.emplace_back(),
                          Listener::Start({.address = address,
                                           .role = role,
                                           .trusted = address.IsUnix() || !AsksWhoCalls(options_)},
                                          {.certificates = &certificates_,
                                           .limiter = &limiter_,
                                           .connections = &connections_,
                                           .audit = audit_.get(),
                                           .services = services_.get()}));
  }
  return absl::OkStatus();
}

std::vector<rpc::Address> Server::addresses() const {
  std::vector<rpc::Address> addresses;
  for (const auto& listener : listeners_) addresses.push_back(listener->address());
  return addresses;
}

std::vector<ServerMetric> Server::Metrics() const {
  const fleet::FleetCounts counts = fleet_.Counts();
  const rpc::Connections::Counts connections = connections_.counts();
  const ReaderThreads::Counts looks = readers_->counts(ReaderLane::kShort);
  const ReaderThreads::Counts lists = readers_->counts(ReaderLane::kLong);
  const store::StoreHealth health = store_->Health();
  const bool is_damaged = health.check == store::StoreHealth::Check::kDamaged;
  const auto retention =
      retention_ != nullptr ? retention_->stats() : store::RetentionWork::Stats();
  std::map<std::string, int64_t> jobs, states;
  for (const auto& [state, count] : jobs_->States()) {
    jobs[std::string(job::JobStateName(state))] = count;
  }
  for (const absl::string_view name : Readiness::kNames) states[std::string(name)] = 0;
  states[std::string(Readiness::kNames[static_cast<int>(readiness_.state())])] = 1;
  constexpr bool kTotal = true;
  const auto one = [](const char* name, const char* help, int64_t value) {
    return ServerMetric{name, help, "", {{"", value}}};
  };
  return {
      {"hone_workers",
       "Registered workers.",
       "state",
       {{"connected", counts.workers_connected},
        {"away", counts.workers_away},
        {"refused", counts.workers_refused}}},
      {"hone_jobs", "Jobs in progress.", "state", std::move(jobs)},
      {"hone_items",
       "Candidates that are queued or being measured.",
       "phase",
       {{"waiting", counts.items_waiting}, {"leased", counts.items_leased}}},
      {"hone_fleet_events_total",
       "Events of leases, by kind.",
       "event",
       {{"granted", counts.granted},
        {"results", counts.results},
        {"refused_results", counts.refused_results},
        {"requeued", counts.requeued},
        {"stolen", counts.stolen},
        {"poisoned", counts.poisoned},
        {"build_mismatches", counts.build_mismatches}},
       kTotal},
      {"hone_server_state", "1 for the state of the server, else 0.", "state", std::move(states)},
      {"hone_connections",
       "Connections to TCP addresses.",
       "state",
       {{"used", connections.used}, {"unused", connections.unused}}},
      {"hone_reads_waiting",
       "Reads of the store that wait for a thread.",
       "lane",
       {{"short", looks.waiting}, {"long", lists.waiting}}},
      {"hone_reads_running",
       "Reads of the store that run.",
       "lane",
       {{"short", looks.running}, {"long", lists.running}}},
      {"hone_reads_refused_total",
       "Reads refused because of a limit.",
       "lane",
       {{"short", looks.refused}, {"long", lists.refused}},
       kTotal},
      one("hone_store_bytes", "Size of the store.", health.size_bytes),
      one("hone_store_queued_writes", "Writes that wait for their commit.", health.queued_writes),
      one("hone_store_damaged", "1 if the store is damaged, so that writes are refused, else 0.",
          is_damaged),
      one("hone_store_full", "1 if the disk of the store is full, so that writes and jobs wait.",
          !store_->CheckSpace().ok()),
      one("hone_retention_last_run_timestamp_seconds",
          "Time of the last complete run since the server started; 0: none.",
          retention.last_run_unix_s),
      one("hone_retention_failed", "1 if the last run failed, else 0.", retention.has_failed),
      one("hone_standings_unstored",
          "Workers whose drain, removal or flag could not be stored yet.", standings_->unstored())};
}

void Server::SetServing(Listener::Serving serving) {
  for (const auto& listener : listeners_) listener->SetServing(serving);
}

void Server::EndServing() {
  for (const auto& listener : listeners_) listener->EndServing();
}

void Server::RunTicks() {
  // A timed wait would follow the wall clock, and would not tick for an hour if the clock were set
  // back by an hour.
  absl::Time competed = steady_clock_.Now();
  while (!deposed_) {
    absl::SleepFor(kTick);
    if (stop_ticks_.HasBeenNotified()) return;
    if (audit_ != nullptr) audit_->Tick();
    absl::Status leading;
    if (readiness_.state() == Readiness::State::kLeader) {
      leading = store_->KeepLeading();
      if (leading.ok()) TickParts();
    } else if (steady_clock_.Now() >= competed + kCompeteInterval) {
      leading = Compete();
      competed = steady_clock_.Now();
    }
    if (!leading.ok()) Depose(leading);
  }
}

void Server::TickParts() {
  const store::NoReads no_reads("the thread that ticks the fleet");
  fleet_.Tick();
  jobs_->Tick();
  models_->Tick();
  standings_->Tick();
  worker_memory_->Tick();
  uploads_.Tick();
  readers_->Tick();
  downloads_.Tick();
  watches_->Tick();
  if (options_.private_mode) CancelUnwatched();
  if (retention_ != nullptr) retention_->Tick();
  const bool can_write = store_->CheckWritable().ok() && store_->CheckSpace().ok();
  const auto serving = can_write ? Listener::Serving::kAll : Listener::Serving::kReads;
  if (std::exchange(serving_, serving) != serving) SetServing(serving);
}

void Server::CancelUnwatched() {
  const std::set<std::string> watched = watches_->Watched();
  const absl::Time now = steady_clock_.Now();
  std::map<std::string, absl::Time> unwatched;
  for (const std::string& id : jobs_->Unfinished()) {
    if (watched.contains(id)) continue;
    auto known = unwatched_since_.find(id);
    const absl::Time since = known == unwatched_since_.end() ? now : known->second;
    unwatched[id] = since;
    if (now - since < options_.unwatched_limit) continue;
    spdlog::info("job {}: cancelled because its client disconnected", id);
    jobs_->CancelHeld(id);
  }
  unwatched_since_ = std::move(unwatched);
}

void Server::CancelAllJobs() {
  for (const std::string& id : jobs_->Unfinished()) jobs_->CancelHeld(id);
  const absl::Time limit = steady_clock_.Now() + kJobsShare * options_.shutdown_limit;
  while (!jobs_->Unfinished().empty() && steady_clock_.Now() < limit) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

bool Server::Shutdown(absl::Duration limit) {
  if (std::exchange(shut_down_, true)) return StopWork(limit);
  const absl::Time began = steady_clock_.Now();
  const bool has_led = readiness_.state() == Readiness::State::kLeader;
  readiness_.Set(Readiness::State::kDraining);
  EndServing();
  if (ticks_.joinable()) {
    stop_ticks_.Notify();
    ticks_.join();
  }
  if (retention_ != nullptr) retention_->Cancel();
  if (has_led) {
    // Forgets the errors of earlier writes, which were reported when they failed, for example while
    // the disk was full. The last Flush then returns those of the last writes.
    store_->Flush().IgnoreError();
    worker_memory_->Keep();
  }
  if (options_.private_mode) CancelAllJobs();
  jobs_->Suspend();
  models_->Stop();
  drafts_->Stop();
  readers_->Stop();
  watches_->Drain();
  fleet_.Shutdown();
  const absl::Time calls_end = clock_.Now() + kCallsShare * options_.shutdown_limit;
  for (const auto& listener : listeners_) listener->Shutdown(calls_end);
  if (inside_ != nullptr) inside_->Shutdown(calls_end);
  const absl::Status flushed = store_->Flush();
  if (retention_ != nullptr) retention_->Join();  // its last write may have waited for others
  failure_ = store_->CheckWritable();
  if (!failure_.ok()) {
    spdlog::error("ends with a damaged store: {}", std::string(failure_.message()));
  } else if (IsLoss(flushed)) {
    failure_ = flushed;
    spdlog::error("the last writes were lost: {}", std::string(flushed.message()));
  }
  return StopWork(limit - (steady_clock_.Now() - began));
}

bool Server::StopWork(absl::Duration limit) {
  if (pool_ == nullptr) return true;
  const absl::Time end = steady_clock_.Now() + limit;
  if (!readers_->Join(limit)) return false;
  // Runs the queued work; suspended jobs do nothing.
  for (job::ThreadPool* const pool : {learning_pool_.get(), pool_.get()}) {
    if (!pool->Stop(end - steady_clock_.Now())) return false;
  }
  store_->Flush().IgnoreError();  // callbacks of the last writes go to the stopped pool
  store_.reset();
  learning_pool_.reset();
  pool_.reset();
  return true;
}

}  // namespace hone::service
