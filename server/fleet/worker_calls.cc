#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/seconds_text.h"
#include "server/fleet/fleet_parts.h"

namespace hone::fleet {
namespace {

// A refused worker calls again after this time.
constexpr absl::Duration kRefusedWait = absl::Seconds(30);
constexpr absl::Duration kClosedWait = absl::Seconds(1);
// The average time between two calls of busy workers, over all workers. Each busy worker collects
// its results for this time multiplied by the number of workers, but at most for
// FleetOptions::rest. The delay is negligible in a small fleet, and saves most of the calls in a
// large one.
constexpr absl::Duration kSpacing = absl::Milliseconds(1);

std::vector<std::string> TakeOnce(std::vector<std::string>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return std::exchange(ids, {});
}

absl::Status ShuttingDown() { return absl::UnavailableError("the server is shutting down"); }

constexpr size_t kAnswerBytes = 4 << 20;

// The size of the long texts of a lease.
size_t BytesOf(const LeaseGrant& grant) {
  return grant.work->workload.size() + (grant.build ? grant.work->space.size() : 0);
}

}  // namespace

uint64_t WorkerCalls::Take(Worker& worker, absl::Duration max_wait, SynchronizeDone done) {
  const uint64_t token = next_token_++;
  max_wait = std::min(max_wait, parts_.options.max_wait());
  // Waiting for a random time from 75 % to 100 % of max_wait spreads the calls of many workers.
  const absl::Time deadline = parts_.clock.Now() + max_wait * (0.75 + 0.25 * Rng(token).Uniform());
  const bool patient = max_wait > absl::ZeroDuration();
  held_[worker.id] = {token, deadline, std::move(done), patient};
  worker_ids_[token] = worker.id;
  worker.commits.Await();
  Wake(worker);
  Offer();
  if (IsHeld(worker) && (closed_ || !patient)) {
    SynchronizeReply reply;
    if (closed_) reply.next_call = kClosedWait;
    Answer(worker, std::move(reply));
  }
  return token;
}

uint64_t WorkerCalls::Refuse(const WorkerReport& report, TurnedAway turned_away,
                             SynchronizeDone done) {
  SynchronizeReply reply;
  for (const HeldLease& held : report.held) reply.cancel.push_back(held.lease_id);
  for (const FinishedLease& finished : report.finished) reply.durable.push_back(finished.lease_id);
  reply.refused = std::move(turned_away.why);
  switch (turned_away.again) {
    case TurnedAway::Again::kLater:
      reply.next_call = kRefusedWait;
      break;
    case TurnedAway::Again::kSoon:
      reply.next_call = parts_.options.name_limit();
      break;
    case TurnedAway::Again::kNow:
      reply.next_call = parts_.options.rest();
      break;
  }
  reply.heartbeat = parts_.options.heartbeat;
  parts_.deferred.Add(std::move(done), std::move(reply));
  return next_token_++;
}

Presence WorkerCalls::PresenceOf(const Worker& worker) const {
  if (worker.leaving) return Presence::kGone;
  if (IsHeld(worker)) return Presence::kCalling;
  const bool recent = parts_.clock.Now() < worker.last_seen + parts_.options.name_limit();
  return recent ? Presence::kRecent : Presence::kGone;
}

SynchronizeDone WorkerCalls::Abandon(uint64_t token) {
  auto found = worker_ids_.find(token);
  if (found == worker_ids_.end()) return nullptr;
  const std::string id = found->second;
  parts_.registry.At(id).last_seen = parts_.clock.Now();
  return Release(id);
}

SynchronizeDone WorkerCalls::Release(const std::string& worker_id) {
  auto call = held_.find(worker_id);
  SynchronizeDone done = std::move(call->second.done);
  worker_ids_.erase(call->second.token);
  held_.erase(call);
  for_builds_.erase(worker_id);
  for_runs_.erase(worker_id);
  return done;
}

SynchronizeReply WorkerCalls::Compose(Worker& worker) {
  const absl::Time now = parts_.clock.Now();
  SynchronizeReply reply;
  for (const std::string& lease_id : std::exchange(worker.news.resend, {})) {
    if (const Lease* lease = parts_.book.Find(lease_id); lease != nullptr) {
      reply.start.push_back(Describe(*lease, now));
    }
  }
  reply.cancel = TakeOnce(worker.news.cancel);
  reply.durable = TakeOnce(worker.news.durable);
  reply.stored = TakeOnce(worker.news.stored);
  for (auto& [digest, when] : worker.news.keep) {
    if (when > now) continue;
    reply.keep_artifacts.push_back(digest);
    when = now + parts_.options.keep_retry;
  }
  reply.standing_new = !std::exchange(worker.news.standing_told, true);
  if (worker.leaving || !parts_.standings.MayWork(worker.id)) return reply;
  Grant(worker, now, reply);
  return reply;
}

void WorkerCalls::Answer(Worker& worker, SynchronizeReply reply) {
  if (!IsHeld(worker)) return;
  worker.last_seen = parts_.clock.Now();
  const Standing standing = parts_.standings.Of(worker.id);
  reply.drain = standing.drained;
  reply.refused = standing.refused;
  reply.heartbeat = parts_.options.heartbeat;
  reply.gather = Pace();
  parts_.deferred.Add(Release(worker.id), std::move(reply));
}

absl::Duration WorkerCalls::Pace() const {
  return std::min(parts_.options.rest(), kSpacing * parts_.registry.size());
}

absl::Duration WorkerCalls::NextCall(const Worker& worker) const {
  if (parts_.book.Of(worker.id).empty()) return absl::ZeroDuration();
  const bool is_full =
      (worker.capabilities.can_build ? worker.free_build_slots : worker.free_run_slots) <= 0;
  return is_full ? parts_.options.rest() : Pace();
}

bool WorkerCalls::WaitsForCommit(const Worker& worker, const Call& call) const {
  return call.patient && worker.commits.IsAwaited() && worker.news.cancel.empty() &&
         worker.news.standing_told && !parts_.book.Of(worker.id).empty();
}

void WorkerCalls::Wake(Worker& worker) {
  auto call = held_.find(worker.id);
  if (call == held_.end() || closed_) return;
  if (!WaitsForCommit(worker, call->second)) {
    SynchronizeReply reply = Compose(worker);
    if (!reply.IsEmpty()) {
      reply.next_call = NextCall(worker);
      return Answer(worker, std::move(reply));
    }
  }
  NoteHunger(worker);
}

void WorkerCalls::NoteHunger(const Worker& worker) {
  auto call = held_.find(worker.id);
  const bool is_open = call != held_.end() && !worker.leaving &&
                       parts_.standings.MayWork(worker.id) && !WaitsForCommit(worker, call->second);
  for (const bool build : {true, false}) {
    if (is_open && (build ? worker.free_build_slots : worker.free_run_slots) > 0) {
      hungry(build).insert(worker.id);
    } else {
      hungry(build).erase(worker.id);
    }
  }
}

void WorkerCalls::Offer() {
  for (const Lane& lane : parts_.book.queue().TakeFresh()) {
    const std::set<std::string>& workers = hungry(lane.build);
    if (IsPinned(lane)) {
      if (workers.contains(lane.worker_id)) Wake(parts_.registry.At(lane.worker_id));
      continue;
    }
    for (auto next = workers.begin();
         next != workers.end() && parts_.book.queue().HasWaiting(lane);) {
      Worker& worker = parts_.registry.At(*next++);  // answering removes the worker from the set
      if (Serves(lane, worker)) Wake(worker);
    }
  }
}

std::set<std::string> WorkerCalls::Idle() const {
  std::set<std::string> idle = for_builds_;
  idle.insert(for_runs_.begin(), for_runs_.end());
  std::erase_if(idle, [&](const std::string& id) { return !parts_.book.Of(id).empty(); });
  return idle;
}

void WorkerCalls::Tick(absl::Time now) {
  for (auto& [id, worker] : parts_.registry.all()) {
    if (!IsHeld(worker)) continue;
    const bool keep_due = std::any_of(worker.news.keep.begin(), worker.news.keep.end(),
                                      [now](const auto& entry) { return entry.second <= now; });
    if (keep_due) Wake(worker);
    if (auto call = held_.find(id); call != held_.end() && call->second.deadline <= now) {
      Answer(worker);
    }
  }
}

void WorkerCalls::Close() {
  closed_ = true;
  for (auto& [id, worker] : parts_.registry.all()) {
    SynchronizeReply reply;
    reply.durable = std::exchange(worker.news.durable, {});
    reply.stored = std::exchange(worker.news.stored, {});
    reply.next_call = kClosedWait;
    Answer(worker, std::move(reply));
  }
}

void TargetWaits::Await(const std::string& key, absl::Time now, absl::Duration patience,
                        TargetDone done) {
  absl::StatusOr<TargetChoice> choice = ShuttingDown();
  if (!closed_) choice = registry_.ChooseTarget(key);
  if (!closed_ && absl::IsUnavailable(choice.status())) {
    if (waits_.size() < most_) {
      waits_.emplace(key, Wait{now + patience, patience, std::move(done)});
      return;
    }
    choice = absl::ResourceExhaustedError(
        absl::StrCat(waits_.size(),
                     " jobs wait for a worker of their target, which is the limit of this server; "
                     "try again later"));
  }
  deferred_.Add(std::move(done), std::move(choice));
}

void TargetWaits::Answer(const std::string& target_key) {
  for (const std::string& key : {target_key, std::string()}) {
    const auto [begin, end] = waits_.equal_range(key);
    if (begin == end) continue;
    const absl::StatusOr<TargetChoice> choice = registry_.ChooseTarget(key);
    if (absl::IsUnavailable(choice.status())) continue;
    for (auto it = begin; it != end; ++it) deferred_.Add(std::move(it->second.done), choice);
    waits_.erase(begin, end);
  }
}

void TargetWaits::Expire(absl::Time now) {
  for (auto it = waits_.begin(); it != waits_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    const absl::Status missing = registry_.ChooseTarget(it->first).status();
    deferred_.Add(std::move(it->second.done),
                  absl::FailedPreconditionError(
                      absl::StrCat("the server waited ", SecondsText(it->second.patience),
                                   " for a worker: ", missing.message())));
    it = waits_.erase(it);
  }
}

void TargetWaits::Close() {
  closed_ = true;
  for (auto& [key, wait] : waits_) deferred_.Add(std::move(wait.done), ShuttingDown());
  waits_.clear();
}

bool WorkerCalls::IsPinned(const Lane& lane) const {
  if (lane.worker_id.empty()) return false;
  const Worker* wanted = parts_.registry.Find(lane.worker_id);
  return wanted != nullptr && wanted->connected && parts_.standings.MayWork(wanted->id) &&
         (!lane.build || wanted->capabilities.BuildsFor(lane.target_key));
}

bool WorkerCalls::Serves(const Lane& lane, const Worker& worker) const {
  if (lane.worker_id != worker.id && IsPinned(lane)) return false;
  if (!lane.build) return worker.CanRun(lane.target_key);
  // A build is useful only if some worker can run the artifact.
  return worker.capabilities.BuildsFor(lane.target_key) &&
         (worker.CanRun(lane.target_key) || parts_.registry.HasRunner(lane.target_key));
}

bool WorkerCalls::IsOpen(const Lane& lane, const Worker& worker) const {
  if ((lane.build ? worker.free_build_slots : worker.free_run_slots) <= 0) return false;
  const bool is_idle = parts_.book.Of(worker.id).empty();
  if (lane.alone && !is_idle && worker.CanRun(lane.target_key)) return false;
  return Serves(lane, worker);
}

bool WorkerCalls::Fits(const TrackedItem& item, const std::string& worker_id) const {
  if (parts_.standings.IsOneOf(worker_id, item.work->avoid)) return false;
  return item.artifact_digest.empty() || item.builder_id == worker_id ||
         parts_.artifacts.Has(item.artifact_digest);
}

bool WorkerCalls::GoesSolo(Worker& worker) const {
  const WorkQueue& queue = parts_.book.queue();
  if (!worker.solo && !queue.HasSuspects()) return false;
  for (const std::string& lease_id : parts_.book.Of(worker.id)) {
    const Lease& lease = *parts_.book.Find(lease_id);
    if (lease.alone && lease.run) return true;
  }
  bool waits = false;
  for (const Lane& lane : queue.Lanes()) {
    if (!lane.alone || !worker.CanRun(lane.target_key) || !Serves(lane, worker)) continue;
    for (const int64_t item : queue.WaitingIn(lane)) {
      waits = waits || Fits(*queue.Find(item), worker.id);
    }
  }
  if (!waits || worker.solo) return worker.solo = waits;
  // One worker per target retries suspects; the others continue with other items.
  for (const Worker* other : parts_.registry.OfTarget(worker.capabilities.target_key)) {
    if (other->solo && other->connected) return false;
  }
  return worker.solo = true;
}

void WorkerCalls::Grant(Worker& worker, absl::Time now, SynchronizeReply& reply) {
  size_t bytes = 0;
  for (const LeaseGrant& grant : reply.start) bytes += BytesOf(grant);
  while ((worker.free_build_slots > 0 || worker.free_run_slots > 0) &&
         parts_.book.queue().HasWaiting() && bytes < kAnswerBytes) {
    const bool solo = GoesSolo(worker);
    const Lease* lease = parts_.book.Grant(
        worker.id, now,
        [&](const Lane& lane) {
          const bool alone = lane.alone && worker.CanRun(lane.target_key);
          return alone == solo && IsOpen(lane, worker);
        },
        [&](const TrackedItem& item) { return Fits(item, worker.id); },
        [&](const Lane& lane) { return Serves(lane, worker); });
    if (lease == nullptr) return;
    --(lease->build ? worker.free_build_slots : worker.free_run_slots);
    reply.start.push_back(Describe(*lease, now));
    bytes += BytesOf(reply.start.back());
  }
}

LeaseGrant WorkerCalls::Describe(const Lease& lease, absl::Time now) const {
  const TrackedItem& item = parts_.book.ItemOf(lease);
  const auto& best = item.work->best_latency_ns;
  return {.lease_id = lease.id,
          .build = lease.build,
          .run = lease.run,
          .limit = lease.deadline - now,
          .work = item.work,
          .artifact_digest = item.artifact_digest,
          .best_latency_ns = best == nullptr ? 0 : best->load()};
}

WorkerCalls::Stealable WorkerCalls::FindStealable(absl::Time now) const {
  Stealable stealable;
  for (const auto& [id, lease] : parts_.book.leases()) {
    if (lease.phase != LeasePhase::kQueued || lease.granted + parts_.options.steal_after > now)
      continue;
    const TrackedItem& item = parts_.book.ItemOf(lease);
    if (item.suspect || !item.work->worker_id.empty()) continue;
    stealable[lease.worker_id].push_back(id);
  }
  return stealable;
}

WorkerCalls::Theft WorkerCalls::FindTheft(Worker& thief, const Stealable& stealable) const {
  Theft theft{.thief = &thief};
  for (const auto& [victim, leases] : stealable) {
    std::vector<std::string> usable;
    for (const std::string& id : leases) {
      const TrackedItem& item = parts_.book.ItemOf(*parts_.book.Find(id));
      if (IsOpen(item.lane(), thief) && Fits(item, thief.id)) usable.push_back(id);
    }
    usable.resize((usable.size() + 1) / 2);  // the other half stays with the busy worker
    if (usable.size() <= theft.leases.size()) continue;
    theft.leases = std::move(usable);
    theft.victim = &parts_.registry.At(victim);
  }
  const size_t slots = std::max(thief.free_build_slots, thief.free_run_slots);
  if (theft.leases.size() > slots) theft.leases.resize(slots);
  return theft;
}

std::vector<WorkerCalls::Theft> WorkerCalls::FindThefts(absl::Time now) const {
  std::vector<Theft> thefts;
  const std::set<std::string> idle = Idle();
  if (idle.empty()) return thefts;
  Stealable stealable = FindStealable(now);
  for (const std::string& id : idle) {
    Theft theft = FindTheft(parts_.registry.At(id), stealable);
    if (theft.victim == nullptr) continue;
    for (const std::string& lease : theft.leases) std::erase(stealable[theft.victim->id], lease);
    thefts.push_back(std::move(theft));
  }
  return thefts;
}

std::vector<std::pair<int64_t, absl::Status>> WorkerCalls::FindHopeless(absl::Time now) {
  const WorkQueue& queue = parts_.book.queue();
  std::vector<std::pair<int64_t, absl::Status>> hopeless;
  for (const Lane& lane : queue.Lanes()) {
    if (lane.build) continue;
    for (const int64_t id : queue.WaitingIn(lane)) {
      TrackedItem& item = *queue.Find(id);
      if (parts_.artifacts.Has(item.artifact_digest)) continue;
      Worker* builder = parts_.registry.Find(item.builder_id);
      if (builder != nullptr && builder->connected && builder->CanRun(lane.target_key)) {
        // A worker that gets no work can still send the artifact, for another worker to run.
        if (!parts_.standings.MayWork(item.builder_id)) {
          builder->news.keep.emplace(item.artifact_digest, now);
        }
        continue;
      }
      if (item.work->artifact_digest.empty()) {
        parts_.book.queue().Rebuild(item);
        continue;
      }
      hopeless.emplace_back(
          id, absl::NotFoundError(absl::StrCat("artifact ", item.artifact_digest,
                                               " is neither on the server nor on a worker")));
    }
  }
  return hopeless;
}

}  // namespace hone::fleet
