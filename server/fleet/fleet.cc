#include "server/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "server/fleet/result_check.h"

namespace hone::fleet {
namespace {

// A worker that gets nothing but a refusal need not ask often.
constexpr absl::Duration kTurnedAwayWait = absl::Seconds(30);
constexpr size_t kPastEpochs = 16;
// Idle workers are looked after this often.
constexpr absl::Duration kStealInterval = absl::Milliseconds(500);

}  // namespace

// Holds the lock; its end releases the lock and runs what was noted in `after_`.
class ABSL_SCOPED_LOCKABLE Fleet::Section {
 public:
  explicit Section(Fleet* fleet) ABSL_EXCLUSIVE_LOCK_FUNCTION(fleet->mutex_) : fleet_(fleet) {
    fleet->mutex_.Lock();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() ABSL_UNLOCK_FUNCTION() {
    auto after = std::exchange(fleet_->after_, {});
    fleet_->mutex_.Unlock();
    for (auto& call : after) std::move(call)();
  }

 private:
  Fleet* const fleet_;
};

// Remembers that the owner has a result, until it says that the result is committed or gives up.
class Fleet::Commit {
 public:
  Commit(Fleet* fleet, std::string lease_id) : fleet_(fleet), lease_id_(std::move(lease_id)) {}
  Commit(Commit&& other) noexcept
      : fleet_(std::exchange(other.fleet_, nullptr)), lease_id_(std::move(other.lease_id_)) {}
  Commit& operator=(Commit&&) = delete;
  ~Commit() {
    if (fleet_ != nullptr) End(false);
  }
  void Done() { End(true); }

 private:
  void End(bool durable) {
    if (!lease_id_.empty()) fleet_->EndCommit(std::exchange(lease_id_, ""), durable);
  }

  Fleet* fleet_;
  std::string lease_id_;
};

Fleet::Fleet(const Clock* clock, ArtifactCache* artifacts, FleetOptions options)
    : clock_(clock),
      artifacts_(artifacts),
      options_(std::move(options)),
      registry_(&standings_),
      book_(&options_),
      dispatcher_(&options_, artifacts, &standings_, &registry_, &book_) {}

void Fleet::Submit(WorkItem work, WorkDone done) {
  Section section(this);
  if (shut_down_) return;
  if (absl::Status room = book_.CheckRoom(work.owner); !room.ok()) {
    after_.push_back(
        [done = std::move(done), room]() mutable { std::move(done)(std::move(room), [] {}); });
    return;
  }
  book_.Add(std::move(work), std::move(done), clock_->Now());
  Offer();
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
    Deliver(book_.Remove(id), absl::CancelledError("the job was cancelled"), "");
    if (worker != nullptr) Wake(*worker);
  }
}

// Calls and results.

std::string Fleet::WhyTurnedAway(const WorkerReport& report) const {
  const Standing standing = standings_.Of(report.worker_id);
  if (standing.removed) return standing.refused;
  const Worker* worker = registry_.Find(report.worker_id);
  if (worker == nullptr) {
    if (registry_.size() < options_.max_workers) return "";
    return absl::StrCat(registry_.size(),
                        " workers are registered, the most that this server keeps");
  }
  if (!worker->connected) return "";
  if (worker->identity != report.identity) {
    return absl::StrCat("the name ", report.worker_id, " belongs to ",
                        worker->identity.empty() ? "a worker without credentials"
                                                 : absl::StrCat("'", worker->identity, "'"),
                        "; give this worker a name of its own");
  }
  // Only while the newer process lives: when it has gone, the name belongs to the process that
  // still calls.
  const auto& past = worker->past_epochs;
  if (std::find(past.begin(), past.end(), report.epoch) == past.end()) return "";
  return absl::StrCat("another process has registered as ", report.worker_id,
                      " since; give each worker a name of its own");
}

void Fleet::TurnAway(const WorkerReport& report, std::string why, SynchronizeDone done) {
  // Nothing that it says changes anything; it is told to let go of everything.
  SynchronizeReply reply;
  for (const HeldLease& held : report.held) reply.cancel.push_back(held.lease_id);
  for (const FinishedLease& finished : report.finished) reply.durable.push_back(finished.lease_id);
  counts_.refused_results += static_cast<int64_t>(report.finished.size());
  reply.refused = std::move(why);
  reply.next_call = kTurnedAwayWait;
  reply.heartbeat = options_.heartbeat;
  after_.push_back([done = std::move(done), reply = std::move(reply)]() mutable {
    std::move(done)(std::move(reply));
  });
}

uint64_t Fleet::Synchronize(WorkerReport report, SynchronizeDone done) {
  Section section(this);
  const uint64_t token = next_token_++;
  if (std::string why = WhyTurnedAway(report); !why.empty()) {
    TurnAway(report, std::move(why), std::move(done));
    return token;
  }
  Worker& worker = registry_.Add(report.worker_id);
  const absl::Duration max_wait = std::min(report.max_wait, options_.max_wait());
  Answer(worker, SynchronizeReply());  // an earlier call that is still held
  ReadReport(worker, report);
  // Between three quarters and all of the wait, which spreads the calls of many workers.
  const absl::Time deadline = clock_->Now() + max_wait * (0.75 + 0.25 * Rng(token).Uniform());
  registry_.Hold(worker, {token, deadline, std::move(done), max_wait > absl::ZeroDuration()});
  worker.commits.Await();
  Wake(worker);
  Offer();
  if (worker.call.token == token && (shut_down_ || !worker.call.patient)) {
    SynchronizeReply reply;
    if (shut_down_) reply.next_call = absl::Seconds(1);
    Answer(worker, std::move(reply));
  }
  return token;
}

void Fleet::Abandon(uint64_t token) {
  SynchronizeDone dropped;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  Worker* worker = registry_.FindCall(token);
  if (worker == nullptr) return;
  dropped = registry_.Release(*worker);
  worker->last_seen = clock_->Now();
}

void Fleet::ReadReport(Worker& worker, WorkerReport& report) {
  absl::flat_hash_set<std::string> stated;
  for (FinishedLease& finished : report.finished) {
    // Also those that an earlier process of the worker left on its disk.
    if (stated.insert(finished.lease_id).second) Finish(worker, finished);
  }
  if (worker.epoch != report.epoch) {
    if (!worker.epoch.empty()) {
      LoseWorker(worker, "its process was started again");
      worker.past_epochs.push_back(worker.epoch);
      std::erase(worker.past_epochs, report.epoch);
      if (worker.past_epochs.size() > kPastEpochs) worker.past_epochs.pop_front();
    }
    worker.epoch = report.epoch;
    worker.identity = report.identity;
    worker.news.standing_told = standings_.MayWork(worker.id);
  }
  const bool new_here = !worker.connected ||
                        worker.capabilities.can_run != report.capabilities.can_run ||
                        worker.capabilities.target_key != report.capabilities.target_key;
  registry_.SetCapabilities(worker, std::move(report.capabilities));
  worker.connected = true;
  worker.leaving = report.draining;
  worker.last_seen = clock_->Now();
  if (new_here) {
    book_.RefreshAll();
    AnswerTargetWaits(worker.capabilities.target_key);
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
      // Another worker's by now, or granted before this server started. It may take a while to
      // stop: no need to repeat it in every answer.
      auto told = unknown.find(held.lease_id);
      const bool tell =
          told == unknown.end() || told->second + options_.cancel_retry <= worker.last_seen;
      if (tell) worker.news.cancel.push_back(held.lease_id);
      worker.unknown_leases[held.lease_id] = tell ? worker.last_seen : told->second;
      continue;
    }
    lease->phase = held.phase;
    if (stops && held.phase == LeasePhase::kQueued) TakeBack(held.lease_id);
  }
  // What was granted and is not restated was lost with a reply: it is said again. The worker knows
  // a lease by its id.
  worker.news.resend.clear();
  worker.free_build_slots = report.free_build_slots;
  worker.free_run_slots = report.free_run_slots;
  for (const std::string& lease_id : book_.Of(worker.id)) {
    if (stated.contains(lease_id)) continue;
    worker.news.resend.push_back(lease_id);
    --(book_.Find(lease_id)->build ? worker.free_build_slots : worker.free_run_slots);
  }
}

std::string Fleet::WhyRetried(const Worker& worker, const Lease& lease,
                              const record::MeasureResult& result) {
  if (result.outcome == record::Outcome::kDeviceLost &&
      ++book_.ItemOf(lease).device_errors < options_.max_device_errors) {
    return absl::StrCat(worker.id, ": ", result.detail);  // the worker's failure
  }
  if (!lease.run && result.outcome == record::Outcome::kOk &&
      !artifacts_->Has(result.artifact_digest)) {
    return absl::StrCat("artifact ", result.artifact_digest, " of ", worker.id, " did not arrive");
  }
  return "";
}

void Fleet::Finish(Worker& worker, FinishedLease& finished) {
  const Lease* found = book_.Find(finished.lease_id);
  if (found == nullptr || found->worker_id != worker.id) {
    if (book_.IsCommitting(finished.lease_id, worker.id)) return;
    worker.news.durable.push_back(finished.lease_id);  // committed long ago, or refused for good
    ++counts_.refused_results;
    return;
  }
  const Lease lease = *found;
  const WorkItem& work = *book_.ItemOf(lease).work;
  record::MeasureResult& result = finished.result;
  std::string wrong = finished.malformed;
  if (lease.run) DropImpossibleDrift(work, worker.capabilities, &result);
  if (wrong.empty() && lease.run) wrong = WhyImpossible(work, result, worker.capabilities);
  if (!wrong.empty()) {
    wrong = absl::StrCat("reported what cannot be: ", wrong);
    worker.news.durable.push_back(lease.id);
    ++counts_.refused_results;
    EndLease(lease.id, {.why = absl::StrCat(worker.id, " ", wrong)});
    Distrust(worker.id, absl::StrCat("it ", wrong));
    return;
  }
  if (result.outcome == record::Outcome::kCrash || result.outcome == record::Outcome::kDeviceLost) {
    worker.last_error =
        absl::StrCat(absl::string_view(record::OutcomeName(result.outcome)), ": ", result.detail);
  }
  if (std::string why = WhyRetried(worker, lease, result); !why.empty()) {
    worker.news.durable.push_back(lease.id);
    EndLease(lease.id, {.why = std::move(why)});
    return;
  }
  if (!lease.run && result.outcome == record::Outcome::kOk) {
    worker.news.durable.push_back(lease.id);
    book_.EndBuild(lease, result);
    return;
  }
  TrackedItem item = book_.Remove(lease.item);
  if (!lease.build) {
    result.artifact_digest = item.artifact_digest;
    if (result.facts.program_digest.empty()) result.facts = item.facts;
  }
  if (lease.run) worker.machine = result.machine;
  WorkResult answer{.result = std::move(result),
                    .worker_id = worker.id,
                    .environment = worker.capabilities.environment,
                    .peak_gflops = worker.capabilities.peak_gflops,
                    .read_gbps = worker.capabilities.read_gbps};
  book_.BeginCommit(lease.id, worker.id);
  ++worker.commits.begun;
  ++counts_.results;
  Deliver(std::move(item), std::move(answer), lease.id);
}

void Fleet::Deliver(TrackedItem item, absl::StatusOr<WorkResult> result,
                    const std::string& lease_id) {
  after_.push_back([done = std::move(item.done), result = std::move(result),
                    commit = Commit(this, lease_id)]() mutable {
    std::move(done)(std::move(result), [commit = std::move(commit)]() mutable { commit.Done(); });
  });
}

void Fleet::EndCommit(const std::string& lease_id, bool durable) {
  Section section(this);
  const std::optional<std::string> worker_id = book_.EndCommit(lease_id);
  Worker* worker = worker_id.has_value() ? registry_.Find(*worker_id) : nullptr;
  if (worker == nullptr) return;
  worker->commits.End();
  if (durable) worker->news.durable.push_back(lease_id);
  Wake(*worker);
}

// Answers.

SynchronizeReply Fleet::Compose(Worker& worker) {
  const absl::Time now = clock_->Now();
  SynchronizeReply reply;
  for (const std::string& lease_id : std::exchange(worker.news.resend, {})) {
    if (const Lease* lease = book_.Find(lease_id); lease != nullptr) {
      reply.start.push_back(dispatcher_.Describe(*lease, now));
    }
  }
  const auto once = [](std::vector<std::string>& ids) {
    const std::set<std::string> sorted(ids.begin(), ids.end());
    ids.clear();
    return std::vector<std::string>(sorted.begin(), sorted.end());
  };
  reply.cancel = once(worker.news.cancel);
  reply.durable = once(worker.news.durable);
  for (auto& [digest, when] : worker.news.keep) {
    if (when > now) continue;
    reply.keep_artifacts.push_back(digest);
    when = now + options_.keep_retry;
  }
  reply.standing_new = !std::exchange(worker.news.standing_told, true);
  if (worker.leaving || !standings_.MayWork(worker.id)) return reply;
  for (LeaseGrant& grant : dispatcher_.Grant(worker, now)) reply.start.push_back(std::move(grant));
  return reply;
}

void Fleet::Answer(Worker& worker, SynchronizeReply reply) {
  if (worker.call.token == 0) return;
  worker.last_seen = clock_->Now();
  reply.drain = standings_.IsDrained(worker.id);
  reply.refused = standings_.Refusal(worker.id);
  reply.heartbeat = options_.heartbeat;
  reply.gather = Pace();
  after_.push_back([done = registry_.Release(worker), reply = std::move(reply)]() mutable {
    std::move(done)(std::move(reply));
  });
}

absl::Duration Fleet::Pace() const {
  return std::min(options_.rest(), options_.spacing * registry_.size());
}

absl::Duration Fleet::NextCall(const Worker& worker) const {
  if (book_.Of(worker.id).empty()) return absl::ZeroDuration();
  const bool is_full =
      (worker.capabilities.can_build ? worker.free_build_slots : worker.free_run_slots) <= 0;
  return is_full ? options_.rest() : Pace();
}

bool Fleet::WaitsForCommit(const Worker& worker) const {
  return worker.call.patient && worker.commits.IsAwaited() && worker.news.cancel.empty() &&
         worker.news.standing_told && !book_.Of(worker.id).empty();
}

void Fleet::Wake(Worker& worker) {
  if (worker.call.token == 0 || shut_down_) return;
  if (!WaitsForCommit(worker)) {
    SynchronizeReply reply = Compose(worker);
    if (!reply.IsEmpty()) {
      reply.next_call = NextCall(worker);
      return Answer(worker, std::move(reply));
    }
  }
  NoteHunger(worker);
}

void Fleet::NoteHunger(const Worker& worker) {
  registry_.NoteHunger(worker, worker.call.token != 0 && !worker.leaving &&
                                   standings_.MayWork(worker.id) && !WaitsForCommit(worker));
}

void Fleet::Offer() {
  for (const Lane& lane : book_.TakeFresh()) {
    const std::set<std::string>& hungry = registry_.hungry(lane.build);
    if (dispatcher_.IsPinned(lane)) {
      if (hungry.contains(lane.worker_id)) Wake(registry_.At(lane.worker_id));
      continue;
    }
    for (auto next = hungry.begin(); next != hungry.end() && book_.queue().HasWaiting(lane);) {
      Worker& worker = registry_.At(*next++);  // an answer takes it out
      if (dispatcher_.Serves(lane, worker)) Wake(worker);
    }
  }
}

void Fleet::KeepArtifact(const std::string& digest, const std::string& worker_id) {
  Section section(this);
  Worker* worker = registry_.Find(worker_id);
  if (worker == nullptr || artifacts_->Has(digest)) return;
  worker->news.keep.emplace(digest, clock_->Now());
  Wake(*worker);
}

void Fleet::ArtifactArrived(const std::string& digest) {
  Section section(this);
  for (auto& [id, worker] : registry_.all()) {
    if (!worker.news.keep.empty()) worker.news.keep.erase(digest);
  }
  book_.RefreshAll();
  Offer();
}

// Leases that end without an answer.

void Fleet::EndLease(const std::string& lease_id, LeaseEnd end) {
  if (auto given_up = book_.End(lease_id, std::move(end)); given_up.has_value()) {
    GiveUp(*std::move(given_up));
  }
}

void Fleet::GiveUp(LeaseBook::GivenUp given_up) {
  WorkResult poisoned{.worker_id = given_up.worker_id,
                      .environment = registry_.At(given_up.worker_id).capabilities.environment};
  poisoned.result.outcome = record::Outcome::kDeviceLost;
  poisoned.result.detail = std::move(given_up.why);
  poisoned.result.facts = given_up.item.facts;
  Deliver(std::move(given_up.item), std::move(poisoned), "");
}

void Fleet::TakeBack(const std::string& lease_id) {
  registry_.At(book_.Find(lease_id)->worker_id).news.cancel.push_back(lease_id);
  EndLease(lease_id, {.counts = false});
}

void Fleet::LoseWorker(Worker& worker, const std::string& why) {
  for (LeaseBook::GivenUp& given_up :
       book_.EndAllOf(worker.id, absl::StrCat("its worker was lost: ", why))) {
    GiveUp(std::move(given_up));
  }
  worker.last_error = absl::StrCat("lost: ", why);
  worker.connected = false;
  worker.solo = false;
  worker.free_build_slots = worker.free_run_slots = 0;
  worker.news = {.standing_told = worker.news.standing_told};
  book_.RefreshAll();  // what was pinned to it
}

// Which workers there are, and how they stand.

WorkerInfo Fleet::InfoOf(const std::string& id) const {
  const Standing standing = standings_.Of(id);
  const Worker* worker = registry_.Find(id);
  if (worker == nullptr) {
    return {.id = id,
            .draining = standing.drained,
            .flagged = standing.refused,
            .silent = absl::InfiniteDuration()};
  }
  return {
      .id = id,
      .capabilities = worker->capabilities,
      .connected = worker->connected,
      .draining = worker->leaving || standing.drained,
      .flagged = standing.refused,
      .silent = worker->call.token != 0 ? absl::ZeroDuration() : clock_->Now() - worker->last_seen,
      .leases = static_cast<int>(book_.Of(id).size()),
      .last_error = worker->last_error,
      .machine = worker->machine};
}

std::vector<WorkerInfo> Fleet::Workers() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerInfo> list;
  for (const auto& [id, worker] : registry_.all()) list.push_back(InfoOf(id));
  return list;
}

std::vector<WorkerInfo> Fleet::KnownWorkers() const {
  absl::MutexLock lock(&mutex_);
  std::set<std::string> ids;
  for (const auto& [id, worker] : registry_.all()) ids.insert(id);
  for (const auto& [id, standing] : standings_.all()) ids.insert(id);
  std::vector<WorkerInfo> list;
  for (const std::string& id : ids) list.push_back(InfoOf(id));
  return list;
}

FleetCounts Fleet::Counts() const {
  absl::MutexLock lock(&mutex_);
  FleetCounts counts = counts_;
  for (const auto& [id, worker] : registry_.all()) {
    ++(worker.connected ? counts.workers_connected : counts.workers_away);
  }
  counts.workers_refused = standings_.refused();
  counts.items_waiting = book_.queue().waiting();
  counts.items_leased = book_.queue().items() - book_.queue().waiting();
  counts.granted = book_.counts().granted;
  counts.requeued = book_.counts().requeued;
  counts.poisoned = book_.counts().poisoned;
  return counts;
}

Standing Fleet::StandingOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return standings_.Of(id);
}

std::optional<UnstoredStanding> Fleet::UnstoredOf(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  return standings_.Unstored(id);
}

void Fleet::StandingStored(const UnstoredStanding& stored) {
  absl::MutexLock lock(&mutex_);
  standings_.Stored(stored);
}

void Fleet::BeginAdopt() {
  absl::MutexLock lock(&mutex_);
  standings_.BeginAdopt();
}

void Fleet::BreakOffAdopt() {
  absl::MutexLock lock(&mutex_);
  standings_.EndAdopt();
}

void Fleet::Adopt(const std::vector<Standing>& stored) {
  Section section(this);
  if (shut_down_) return standings_.EndAdopt();
  for (const Standing& standing : standings_.Adopt(stored)) {
    const std::string& id = standing.worker_id;
    ApplyStanding(id);
    if (standing.removed) {
      Dismiss(id);
    } else if (Worker* worker = registry_.Find(id); worker != nullptr) {
      Wake(*worker);
    }
  }
  Offer();
}

int Fleet::ApplyStanding(const std::string& id) {
  Worker* worker = registry_.Find(id);
  if (worker == nullptr) return 0;
  const Standing standing = standings_.Of(id);
  const bool refused = !standing.refused.empty();
  worker->news.standing_told = false;
  if (refused) worker->solo = false;
  if (!refused && !standing.drained) worker->past_epochs.clear();
  NoteHunger(*worker);
  int taken = 0;
  const std::set<std::string> leases = book_.Of(id);
  for (const std::string& lease_id : leases) {
    const bool queued = book_.Find(lease_id)->phase == LeasePhase::kQueued;
    if (!refused && !(standing.drained && queued)) continue;
    TakeBack(lease_id);
    ++taken;
  }
  book_.RefreshAll();  // what was pinned to it, too
  return taken;
}

void Fleet::Dismiss(const std::string& id) {
  Worker* worker = registry_.Find(id);
  if (worker == nullptr) return;
  Wake(*worker);
  Answer(*worker, SynchronizeReply());
  registry_.Erase(id);
}

void Fleet::Distrust(const std::string& id, const std::string& why) {
  Standing standing = standings_.Of(id);
  standing.refused = why;
  standings_.Change(standing, /*drained=*/false, /*refused=*/true);
  ApplyStanding(id);
  if (options_.on_standing == nullptr) return;
  after_.push_back([this, id] { options_.on_standing(id); });
}

void Fleet::Flag(const std::string& id, const std::string& why) {
  Section section(this);
  Worker* worker = registry_.Find(id);
  if (worker == nullptr || shut_down_) return;
  Distrust(id, why);
  Wake(*worker);
  Offer();
}

absl::StatusOr<WorkerInfo> Fleet::Drain(const std::string& id, bool resume) {
  Section section(this);
  Worker* worker = registry_.Find(id);
  if (worker == nullptr && standings_.MayWork(id)) {
    return absl::NotFoundError(absl::StrCat("there is no worker ", id));
  }
  Standing standing = standings_.Of(id);
  standing.drained = !resume;
  if (resume) {
    standing.refused.clear();
    standing.removed = false;
  }
  standings_.Change(standing, /*drained=*/true, /*refused=*/resume);
  ApplyStanding(id);
  if (worker != nullptr) Wake(*worker);
  Offer();
  return InfoOf(id);
}

absl::StatusOr<int> Fleet::Remove(const std::string& id) {
  Section section(this);
  Standing standing = standings_.Of(id);
  const bool away = !standing.removed && !standings_.MayWork(id);
  if (registry_.Find(id) == nullptr && !away) {
    return absl::NotFoundError(absl::StrCat("there is no worker ", id));
  }
  standing.refused = "an administrator removed it; hone workers resume lets it in";
  standing.removed = true;
  standings_.Change(standing, /*drained=*/false, /*refused=*/true);
  const int requeued = ApplyStanding(id);
  Dismiss(id);
  Offer();
  return requeued;
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
  std::string least;
  size_t least_leases = 0;
  for (const Worker* worker : registry_.OfTarget(target_key)) {
    if (!worker->connected || worker->leaving || !worker->capabilities.can_run) continue;
    if (!standings_.MayWork(worker->id)) continue;
    if (std::find(besides.begin(), besides.end(), worker->id) != besides.end()) continue;
    const size_t leases = book_.Of(worker->id).size();
    if (!least.empty() && leases >= least_leases) continue;
    least = worker->id;
    least_leases = leases;
  }
  return least;
}

absl::StatusOr<TargetChoice> Fleet::FindTarget(const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  return registry_.ChooseTarget(key);
}

void Fleet::AwaitTarget(const std::string& key, absl::Duration patience, TargetDone done) {
  Section section(this);
  if (shut_down_) {
    return AnswerTarget(std::move(done), absl::UnavailableError("the server is shutting down"));
  }
  absl::StatusOr<TargetChoice> choice = registry_.ChooseTarget(key);
  if (!absl::IsUnavailable(choice.status())) {
    return AnswerTarget(std::move(done), std::move(choice));
  }
  if (target_waits_.size() >= options_.max_target_waits) {
    return AnswerTarget(std::move(done), absl::ResourceExhaustedError(absl::StrCat(
                                             target_waits_.size(),
                                             " jobs wait for a worker of their target, the "
                                             "most that this server keeps; try again later")));
  }
  target_waits_.Add(key, clock_->Now() + patience, std::move(done));
}

void Fleet::AnswerTarget(TargetDone done, absl::StatusOr<TargetChoice> choice) {
  after_.push_back([done = std::move(done), choice = std::move(choice)]() mutable {
    std::move(done)(std::move(choice));
  });
}

void Fleet::AnswerTargetWaits(const std::string& key) {
  for (const std::string& wanted : {key, std::string()}) {
    const absl::StatusOr<TargetChoice> choice = registry_.ChooseTarget(wanted);
    if (absl::IsUnavailable(choice.status())) continue;
    for (TargetDone& done : target_waits_.Take(wanted)) AnswerTarget(std::move(done), choice);
  }
}

// Time.

void Fleet::Tick() {
  Section section(this);
  const absl::Time now = clock_->Now();
  ExpireWorkers(now);
  for (const std::string& lease_id : book_.Overdue(now)) {
    Worker& worker = registry_.At(book_.Find(lease_id)->worker_id);
    worker.news.cancel.push_back(lease_id);
    EndLease(lease_id, {.why = absl::StrCat(worker.id, " did not end it within ",
                                            absl::FormatDuration(options_.lease_limit))});
    Wake(worker);
  }
  for (auto& [item, why] : dispatcher_.FindHopeless(now)) {
    Deliver(book_.Remove(item), std::move(why), "");
  }
  for (auto& [key, done] : target_waits_.TakeExpired(now)) {
    AnswerTarget(std::move(done),
                 absl::FailedPreconditionError(registry_.ChooseTarget(key).status().message()));
  }
  Offer();
  Steal(now);
  AnswerCalls(now);
}

void Fleet::ExpireWorkers(absl::Time now) {
  std::vector<std::string> forgotten;
  for (auto& [id, worker] : registry_.all()) {
    const bool silent =
        worker.call.token == 0 && worker.last_seen + options_.silence_limit() <= now;
    if (silent && worker.connected) {
      LoseWorker(worker,
                 absl::StrCat("not heard of for ", absl::FormatDuration(options_.silence_limit())));
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
  std::set<std::string> idle;
  for (const bool build : {true, false}) {
    for (const std::string& id : registry_.hungry(build)) {
      if (book_.Of(id).empty()) idle.insert(id);
    }
  }
  if (idle.empty()) return;
  Dispatcher::Stealable stealable = dispatcher_.FindStealable(now);
  for (const std::string& id : idle) {
    const Dispatcher::Theft theft = dispatcher_.Steal(registry_.At(id), stealable);
    if (theft.victim == nullptr) continue;
    for (const std::string& lease_id : theft.leases) TakeBack(lease_id);
    counts_.stolen += static_cast<int64_t>(theft.leases.size());
    Wake(*theft.thief);  // before another worker can have them
    Wake(*theft.victim);
  }
}

void Fleet::AnswerCalls(absl::Time now) {
  for (auto& [id, worker] : registry_.all()) {
    if (worker.call.token == 0) continue;
    const bool keep_due = std::any_of(worker.news.keep.begin(), worker.news.keep.end(),
                                      [now](const auto& entry) { return entry.second <= now; });
    if (keep_due) Wake(worker);
    if (worker.call.deadline <= now) Answer(worker, SynchronizeReply());
  }
}

void Fleet::Shutdown() {
  WorkQueue dropped;  // destroyed without the lock
  Section section(this);
  shut_down_ = true;
  for (auto& [id, worker] : registry_.all()) {
    SynchronizeReply reply;
    reply.durable = std::exchange(worker.news.durable, {});
    reply.next_call = absl::Seconds(1);
    Answer(worker, std::move(reply));
  }
  dropped = book_.Clear();
  for (auto& [key, done] : target_waits_.TakeExpired(absl::InfiniteFuture())) {
    AnswerTarget(std::move(done), absl::UnavailableError("the server is shutting down"));
  }
}

}  // namespace hone::fleet
