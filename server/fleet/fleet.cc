#include "server/fleet/fleet.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/seconds_text.h"

namespace hone::fleet {
namespace {

// Idle workers may take leases from busy workers this often.
constexpr absl::Duration kStealInterval = absl::Milliseconds(500);

// How the last error of a lost worker begins.
constexpr absl::string_view kLost = "lost: ";

}  // namespace

// Holds the lock. The destructor releases it and then runs the deferred calls.
class ABSL_SCOPED_LOCKABLE Fleet::Section {
 public:
  explicit Section(Fleet* fleet) ABSL_EXCLUSIVE_LOCK_FUNCTION(fleet->mutex_) : fleet_(fleet) {
    fleet->mutex_.Lock();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() ABSL_UNLOCK_FUNCTION() {
    auto calls = fleet_->deferred_.Take();
    fleet_->mutex_.Unlock();
    for (auto& call : calls) std::move(call)();
  }

 private:
  Fleet* const fleet_;
};

Fleet::Fleet(const Clock* clock, ArtifactCache* artifacts, FleetOptions options)
    : clock_(clock),
      artifacts_(artifacts),
      options_(std::move(options)),
      registry_(&standings_),
      book_(&options_),
      dispatcher_(&options_, artifacts, &standings_, &registry_, &book_),
      target_waits_(options_.max_target_waits, &registry_, &deferred_),
      deliveries_(&options_, artifacts, &registry_, &book_, &deferred_,
                  [this](const std::string& lease, bool durable) { EndCommit(lease, durable); }),
      calls_({.clock = clock,
              .options = &options_,
              .standings = &standings_,
              .registry = &registry_,
              .book = &book_,
              .dispatcher = &dispatcher_,
              .deferred = &deferred_}),
      events_(clock, &options_, &deferred_),
      list_({.clock = clock,
             .options = &options_,
             .standings = &standings_,
             .registry = &registry_,
             .book = &book_,
             .calls = &calls_}),
      changes_({.options = &options_,
                .standings = &standings_,
                .registry = &registry_,
                .book = &book_,
                .deliveries = &deliveries_,
                .calls = &calls_,
                .events = &events_,
                .list = &list_,
                .deferred = &deferred_}) {}

void Fleet::Submit(WorkItem work, WorkDone done) {
  Section section(this);
  if (shut_down_) return;
  if (absl::Status room = book_.CheckRoom(work.owner); !room.ok()) {
    return deferred_.Add(std::move(done), std::move(room), [] {});
  }
  book_.queue().Add(std::move(work), std::move(done));
  calls_.Offer();
}

void Fleet::CancelItems(const std::string& job_id, bool started_too) {
  Section section(this);
  for (const int64_t id : book_.queue().ItemsOf(job_id)) {
    Worker* worker = nullptr;
    if (const Lease* lease = book_.Find(book_.queue().Find(id)->lease_id); lease != nullptr) {
      if (!started_too && lease->phase != LeasePhase::kQueued) continue;
      worker = &registry_.At(lease->worker_id);
      worker->news.cancel.push_back(lease->id);
    }
    deliveries_.Fail(id, absl::CancelledError("the job was cancelled"));
    if (worker != nullptr) calls_.Wake(*worker);
  }
}

uint64_t Fleet::Synchronize(WorkerReport report, SynchronizeDone done) {
  Section section(this);
  const absl::Time now = clock_->Now();
  const Worker* known = registry_.Find(report.worker_id);
  const Presence presence = known != nullptr ? calls_.PresenceOf(*known) : Presence::kGone;
  const absl::Time rival_seen = known != nullptr ? known->rival_seen : now;
  if (auto away = registry_.WhyTurnedAway(report, options_.max_workers, presence, now)) {
    turned_away_ += static_cast<int64_t>(report.finished.size());
    if (known != nullptr) ReportRival(*known, rival_seen);
    return calls_.Refuse(report, *std::move(away), std::move(done));
  }
  Worker& worker = registry_.Add(report.worker_id);
  const bool was_connected = worker.connected;
  calls_.Answer(worker);  // an earlier call that is still held
  ReadReport(worker, report);
  ReportRival(worker, rival_seen);
  const uint64_t token = calls_.Take(worker, report.max_wait, std::move(done));
  if (worker.leaving) {
    // This was its last call: it is away, and other workers may have its leases at once.
    calls_.Answer(worker);
    if (was_connected) events_.Lost(worker, "it has ended");
    LoseWorker(worker, "it has ended");
    calls_.Offer();
  }
  return token;
}

void Fleet::ReportRival(const Worker& worker, absl::Time seen_before) {
  const bool is_news =
      worker.rival_seen > seen_before && worker.rival_seen >= seen_before + options_.rival_limit();
  if (!is_news || options_.on_rival == nullptr) return;
  deferred_.Add(options_.on_rival, worker.id, worker.rival);
}

void Fleet::Abandon(uint64_t token) {
  SynchronizeDone dropped;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  dropped = calls_.Abandon(token);
}

void Fleet::ReadReport(Worker& worker, WorkerReport& report) {
  absl::flat_hash_set<std::string> stated;
  for (FinishedLease& finished : report.finished) {
    // Some results may be of an earlier process of the worker, which left them on its disk.
    if (!stated.insert(finished.lease_id).second) continue;
    if (const std::string why = deliveries_.Take(worker, finished); !why.empty()) {
      changes_.Distrust(worker.id, why);
    }
  }
  std::string new_process;
  if (!worker.epoch.empty() && worker.epoch != report.epoch) {
    new_process = worker.claim == report.epoch ? "an earlier process with its name still runs"
                                               : "its process was restarted";
  }
  events_.Called(worker, report, new_process);
  if (!new_process.empty()) LoseWorker(worker, new_process);
  if (absl::StartsWith(worker.last_error, kLost)) worker.last_error.clear();  // it is back
  if (registry_.Update(worker, report, clock_->Now())) {
    book_.queue().RefreshAll();
    target_waits_.Answer(worker.capabilities.target_key);
  }
  ReadLeases(worker, report);
}

void Fleet::ReadLeases(Worker& worker, const WorkerReport& report) {
  absl::flat_hash_set<std::string> stated;
  for (const FinishedLease& finished : report.finished) stated.insert(finished.lease_id);
  const std::map<std::string, absl::Time> unknown = std::exchange(worker.unknown_leases, {});
  const bool stops = worker.leaving || standings_.IsDrained(worker.id);
  for (const HeldLease& held : report.held) {
    if (!stated.insert(held.lease_id).second) continue;
    Lease* lease = book_.Find(held.lease_id);
    if (lease == nullptr || lease->worker_id != worker.id) {
      // The lease belongs to another worker by now, or was granted before this server started. It
      // may take a while to stop, so this request is not repeated in every answer.
      auto told = unknown.find(held.lease_id);
      const bool tell =
          told == unknown.end() || told->second + options_.cancel_retry <= worker.last_seen;
      if (tell) worker.news.cancel.push_back(held.lease_id);
      worker.unknown_leases[held.lease_id] = tell ? worker.last_seen : told->second;
      continue;
    }
    if (lease->phase != held.phase) lease->phase_since = worker.last_seen;
    lease->phase = held.phase;
    if (stops && held.phase == LeasePhase::kQueued) deliveries_.TakeBack(held.lease_id);
  }
  // A granted lease that the worker does not report was lost with a reply, and is sent again. The
  // worker ignores it if it already has a lease with that id.
  worker.news.resend.clear();
  worker.free_build_slots = report.free_build_slots;
  worker.free_run_slots = report.free_run_slots;
  for (const std::string& lease_id : book_.Of(worker.id)) {
    if (stated.contains(lease_id)) continue;
    worker.news.resend.push_back(lease_id);
    --(book_.Find(lease_id)->build ? worker.free_build_slots : worker.free_run_slots);
  }
}

void Fleet::KeepArtifact(const std::string& digest, const std::string& worker_id) {
  Section section(this);
  Worker* worker = registry_.Find(worker_id);
  if (worker == nullptr || artifacts_->Has(digest)) return;
  worker->news.keep.emplace(digest, clock_->Now());
  calls_.Wake(*worker);
}

void Fleet::ArtifactArrived(const std::string& digest) {
  Section section(this);
  for (auto& [id, worker] : registry_.all()) {
    if (!worker.news.keep.empty()) worker.news.keep.erase(digest);
  }
  book_.queue().RefreshAll();
  calls_.Offer();
}

void Fleet::LoseWorker(Worker& worker, const std::string& why) {
  if (worker.leaving) {
    // The worker announced its end, so its leases do not count as attempts.
    const std::set<std::string> leases = book_.Of(worker.id);
    for (const std::string& lease_id : leases) deliveries_.TakeBack(lease_id);
    worker.last_error.clear();
  } else {
    deliveries_.EndLeasesOf(worker, absl::StrCat("its worker was lost: ", why));
    worker.last_error = absl::StrCat(kLost, why);
  }
  worker.connected = false;
  worker.solo = false;
  worker.free_build_slots = worker.free_run_slots = 0;
  worker.news = {.standing_told = worker.news.standing_told};
  book_.queue().RefreshAll();  // other workers may now take items that were pinned to this one
}

void Fleet::EndCommit(const std::string& lease_id, bool durable) {
  Section section(this);
  if (Worker* worker = deliveries_.EndCommit(lease_id, durable); worker != nullptr) {
    calls_.Wake(*worker);
  }
}

// Workers and their standings.

std::vector<WorkerInfo> Fleet::Workers() const {
  absl::MutexLock lock(&mutex_);
  return list_.Registered();
}

std::optional<WorkerInfo> Fleet::FindWorker(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return list_.Find(id);
}

bool Fleet::Answers(const std::string& id) const {
  const std::optional<WorkerInfo> worker = FindWorker(id);
  return worker.has_value() && worker->connected && worker->silent < options_.silence_limit() / 2;
}

bool Fleet::IsServed(const std::string& target_key) const {
  absl::MutexLock lock(&mutex_);
  return list_.IsServed(target_key);
}

std::optional<SilentWork> Fleet::FindSilentWork(const std::string& job_id) const {
  absl::MutexLock lock(&mutex_);
  return list_.FindSilentWork(job_id);
}

bool Fleet::HasBuildLease(const std::string& identity, const std::string& workload_digest,
                          const std::string& target_key) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, lease] : book_.leases()) {
    if (!lease.build) continue;
    const WorkItem& work = *book_.ItemOf(lease).work;
    if (work.workload_digest != workload_digest || work.target_key != target_key) continue;
    const Worker* const worker = registry_.Find(lease.worker_id);
    if (worker != nullptr && worker->identity == identity) return true;
  }
  return false;
}

std::vector<WorkerInfo> Fleet::KnownWorkers() const {
  absl::MutexLock lock(&mutex_);
  return list_.Known();
}

void Fleet::NoteBuildMismatch() {
  absl::MutexLock lock(&mutex_);
  ++build_mismatches_;
}

FleetCounts Fleet::Counts() const {
  absl::MutexLock lock(&mutex_);
  FleetCounts counts{.workers_refused = standings_.refused_count(),
                     .items_waiting = book_.queue().waiting(),
                     .items_leased = book_.queue().items() - book_.queue().waiting(),
                     .granted = book_.counts().granted,
                     .results = deliveries_.results(),
                     .refused_results = deliveries_.refused() + turned_away_,
                     .requeued = book_.counts().requeued,
                     .stolen = stolen_,
                     .poisoned = book_.counts().poisoned,
                     .build_mismatches = build_mismatches_};
  for (const auto& [id, worker] : registry_.all()) {
    ++(worker.connected ? counts.workers_connected : counts.workers_away);
  }
  return counts;
}

void Fleet::Adopt(const std::vector<Standing>& stored) {
  Section section(this);
  standings_.Adopt(stored);
}

void Fleet::Flag(const std::string& id, const std::string& why) {
  Section section(this);
  Worker* worker = registry_.Find(id);
  if (worker == nullptr || shut_down_) return;
  changes_.Distrust(id, why);
  calls_.Wake(*worker);
  calls_.Offer();
}

absl::StatusOr<WorkerInfo> Fleet::Drain(const std::string& id, bool resume) {
  Section section(this);
  return changes_.Drain(id, resume);
}

absl::StatusOr<int> Fleet::Remove(const std::string& id,
                                  const std::optional<std::string>& remembered) {
  Section section(this);
  return changes_.Remove(id, remembered);
}

std::set<std::string> Fleet::Targets() const {
  absl::MutexLock lock(&mutex_);
  return registry_.Targets();
}

std::optional<Capabilities> Fleet::DeviceOf(const std::string& target_key) const {
  absl::MutexLock lock(&mutex_);
  return registry_.DeviceOf(target_key);
}

std::string Fleet::AnotherRunner(const std::string& target_key,
                                 const std::vector<std::string>& besides) const {
  absl::MutexLock lock(&mutex_);
  return dispatcher_.AnotherRunner(target_key, besides);
}

std::string Fleet::BuilderOf(const std::string& artifact) const {
  absl::MutexLock lock(&mutex_);
  return deliveries_.BuilderOf(artifact);
}

std::string Fleet::Rebuilder(const std::string& target_key, const BuilderVersion& version,
                             const std::string& built_by,
                             const std::vector<std::string>& besides) const {
  absl::MutexLock lock(&mutex_);
  return dispatcher_.Rebuilder(target_key, version, built_by, besides);
}

absl::StatusOr<TargetChoice> Fleet::FindTarget(const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  return registry_.ChooseTarget(key);
}

void Fleet::AwaitTarget(const std::string& key, absl::Duration patience, TargetDone done) {
  Section section(this);
  target_waits_.Await(key, clock_->Now(), patience, std::move(done));
}

// Time.

void Fleet::Tick() {
  Section section(this);
  const absl::Time now = clock_->Now();
  ExpireWorkers(now);
  ExpireLeases(now);
  for (auto& [item, why] : dispatcher_.FindHopeless(now)) deliveries_.Fail(item, std::move(why));
  target_waits_.Expire(now);
  calls_.Offer();
  Steal(now);
  calls_.Tick(now);
}

void Fleet::ExpireLeases(absl::Time now) {
  for (const std::string& lease_id : book_.Overdue(now)) {
    Worker& worker = registry_.At(book_.Find(lease_id)->worker_id);
    worker.news.cancel.push_back(lease_id);
    deliveries_.EndLease(lease_id, {.why = absl::StrCat(worker.id, " did not finish it within ",
                                                        SecondsText(options_.lease_limit))});
    calls_.Wake(worker);
  }
}

void Fleet::ExpireWorkers(absl::Time now) {
  std::vector<std::string> forgotten;
  for (auto& [id, worker] : registry_.all()) {
    const bool silent =
        !calls_.IsHeld(worker) && worker.last_seen + options_.silence_limit() <= now;
    if (silent && worker.connected) {
      const std::string why =
          absl::StrCat("it was silent for ", SecondsText(options_.silence_limit()));
      events_.Lost(worker, why);
      LoseWorker(worker, why);
    }
    if (!worker.connected && worker.last_seen + options_.forget_after <= now) {
      forgotten.push_back(id);
    }
  }
  for (const std::string& id : forgotten) registry_.Erase(id);
}

void Fleet::Steal(absl::Time now) {
  if (now < next_steal_) return;
  next_steal_ = now + kStealInterval;
  for (const Dispatcher::Theft& theft : dispatcher_.FindThefts(calls_.Idle(), now)) {
    for (const std::string& lease_id : theft.leases) deliveries_.TakeBack(lease_id);
    stolen_ += static_cast<int64_t>(theft.leases.size());
    calls_.Wake(*theft.thief);  // before another worker can take them
    calls_.Wake(*theft.victim);
  }
}

void Fleet::Shutdown() {
  WorkQueue dropped;  // destroyed without the lock
  Section section(this);
  shut_down_ = true;
  calls_.Close();
  dropped = book_.Clear();
  target_waits_.Close();
}

}  // namespace hone::fleet
