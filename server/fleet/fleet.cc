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
      parts_{.clock = *clock,
             .options = options_,
             .artifacts = *artifacts,
             .standings = standings_,
             .registry = registry_,
             .book = book_,
             .deferred = deferred_},
      target_waits_(options_.max_target_waits, &registry_, &deferred_),
      deliveries_(parts_,
                  [this](const std::string& lease, bool durable) { EndCommit(lease, durable); }),
      calls_(parts_) {}

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
    if (was_connected) TellLost(worker, "it has ended");
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
      Distrust(worker.id, why);
    }
  }
  std::string new_process;
  if (!worker.epoch.empty() && worker.epoch != report.epoch) {
    new_process = worker.claim == report.epoch ? "an earlier process with its name still runs"
                                               : "its process was restarted";
  }
  TellCall(worker, report, new_process);
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

void Fleet::Flag(const std::string& id, const std::string& why) {
  Section section(this);
  Worker* worker = registry_.Find(id);
  if (worker == nullptr || shut_down_) return;
  Distrust(id, why);
  calls_.Wake(*worker);
  calls_.Offer();
}

absl::StatusOr<WorkerInfo> Fleet::Drain(const std::string& id, bool resume) {
  Section section(this);
  Worker* const worker = registry_.Find(id);
  if (worker == nullptr && standings_.MayWork(id)) {
    return absl::NotFoundError(
        resume ? absl::StrCat("no worker ", id, " is connected, drained or removed")
               : absl::StrCat("there is no worker ", id));
  }
  if (const std::string other = standings_.RefusedAs(id); resume && !other.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("worker ", id, " is the worker ", other,
                                                      ", which is refused; ", ResumeCommand(other),
                                                      " admits it again"));
  }
  const Standing before = standings_.Own(id);
  if (before.removed && !resume) {
    return absl::NotFoundError(absl::StrCat("worker ", id, " was removed, so it gets no work; ",
                                            ResumeCommand(id), " admits it again"));
  }
  Standing standing = before;
  standing.drained = !resume;
  if (resume) {
    standing.refused.clear();
    standing.removed = false;
    standing.identity.clear();
  }
  if (standing != before) {
    TellStanding(id, absl::StrCat("was ", resume ? "resumed" : "drained", " by an administrator"));
  }
  const std::vector<std::string> names = standings_.NamesOf(id);
  standings_.Change(standing);
  ApplyStanding(id);
  for (const std::string& name : names) {  // which may have been refused with it
    Worker* const other = registry_.Find(name);
    if (other == nullptr || other == worker) continue;
    ApplyStandingTo(*other);
    calls_.Wake(*other);
  }
  if (worker != nullptr) calls_.Wake(*worker);
  calls_.Offer();
  return InfoOf(id);
}

absl::StatusOr<int> Fleet::Remove(const std::string& id,
                                  const std::optional<std::string>& remembered) {
  Section section(this);
  Standing standing = standings_.Own(id);
  const bool is_registered = registry_.Find(id) != nullptr;
  if (standing.removed && !is_registered) {
    return absl::NotFoundError(absl::StrCat("worker ", id, " is already removed; ",
                                            ResumeCommand(id), " admits it again"));
  }
  if (!is_registered && standings_.MayWork(id) && !remembered.has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no worker ", id));
  }
  standing.refused =
      absl::StrCat("an administrator removed it; ", ResumeCommand(id), " admits it again");
  standing.removed = true;
  if (standing.identity.empty()) standing.identity = standings_.IdentityOf(id);
  if (standing.identity.empty()) standing.identity = remembered.value_or("");
  TellStanding(id, "was removed by an administrator");
  standings_.Change(standing);
  const int requeued = ApplyStanding(id);
  for (const std::string& name : standings_.NamesOf(id)) {
    Worker* const worker = registry_.Find(name);
    if (worker == nullptr) continue;
    calls_.Wake(*worker);
    calls_.Answer(*worker);
    registry_.Erase(name);
  }
  calls_.Offer();
  return requeued;
}

void Fleet::Distrust(const std::string& id, const std::string& why) {
  Standing standing = standings_.Own(id);
  standing.refused = why;
  standing.identity = standings_.IdentityOf(id);
  standings_.Change(standing);
  ApplyStanding(id);
  if (options_.on_standing != nullptr) deferred_.Add(options_.on_standing, id);
}

int Fleet::ApplyStanding(const std::string& id) {
  int taken = 0;
  const bool refused = !standings_.Own(id).refused.empty();
  for (const std::string& name : standings_.NamesOf(id)) {
    Worker* const worker = registry_.Find(name);
    if (worker == nullptr || (name != id && !refused)) continue;
    taken += ApplyStandingTo(*worker);
    if (name != id) calls_.Wake(*worker);
  }
  return taken;
}

int Fleet::ApplyStandingTo(Worker& worker) {
  const Standing standing = standings_.Of(worker.id);
  const bool refused = !standing.refused.empty();
  worker.news.standing_told = false;
  // Otherwise, no other worker would retry the suspects.
  if (!standings_.MayWork(worker.id)) worker.solo = false;
  calls_.NoteHunger(worker);
  int taken = 0;
  const std::set<std::string> leases = book_.Of(worker.id);
  for (const std::string& lease_id : leases) {
    const bool queued = book_.Find(lease_id)->phase == LeasePhase::kQueued;
    if (!refused && !(standing.drained && queued)) continue;
    deliveries_.TakeBack(lease_id);
    ++taken;
  }
  // The workers that may take its items may have changed.
  book_.queue().RefreshAll();
  return taken;
}

std::set<std::string> Fleet::Targets() const {
  absl::MutexLock lock(&mutex_);
  return registry_.Targets();
}

std::optional<Capabilities> Fleet::DeviceOf(const std::string& target_key) const {
  absl::MutexLock lock(&mutex_);
  return registry_.DeviceOf(target_key);
}

std::string Fleet::BuilderOf(const std::string& artifact) const {
  absl::MutexLock lock(&mutex_);
  return deliveries_.BuilderOf(artifact);
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
  for (auto& [item, why] : calls_.FindHopeless(now)) deliveries_.Fail(item, std::move(why));
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
      TellLost(worker, why);
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
  for (const WorkerCalls::Theft& theft : calls_.FindThefts(now)) {
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
