#include "server/fleet/dispatcher.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace hone::fleet {

bool Dispatcher::IsPinned(const Lane& lane) const {
  if (lane.worker_id.empty()) return false;
  const Worker* wanted = registry_.Find(lane.worker_id);
  return wanted != nullptr && wanted->connected && standings_.MayWork(wanted->id) &&
         (!lane.build || wanted->capabilities.BuildsFor(lane.target_key));
}

bool Dispatcher::Serves(const Lane& lane, const Worker& worker) const {
  if (lane.worker_id != worker.id && IsPinned(lane)) return false;
  if (!lane.build) return worker.CanRun(lane.target_key);
  // A build is useful only if some worker can run the artifact.
  return worker.capabilities.BuildsFor(lane.target_key) &&
         (worker.CanRun(lane.target_key) || registry_.HasRunner(lane.target_key));
}

bool Dispatcher::IsOpen(const Lane& lane, const Worker& worker) const {
  if ((lane.build ? worker.free_build_slots : worker.free_run_slots) <= 0) return false;
  const bool is_idle = book_.Of(worker.id).empty();
  if (lane.alone && !is_idle && worker.CanRun(lane.target_key)) return false;
  return Serves(lane, worker);
}

bool Dispatcher::Fits(const TrackedItem& item, const std::string& worker_id) const {
  if (standings_.IsOneOf(worker_id, item.work->avoid)) return false;
  return item.artifact_digest.empty() || item.builder_id == worker_id ||
         artifacts_.Has(item.artifact_digest);
}

bool Dispatcher::GoesSolo(Worker& worker) const {
  const WorkQueue& queue = book_.queue();
  if (!worker.solo && !queue.HasSuspects()) return false;
  for (const std::string& lease_id : book_.Of(worker.id)) {
    const Lease& lease = *book_.Find(lease_id);
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
  for (const Worker* other : registry_.OfTarget(worker.capabilities.target_key)) {
    if (other->solo && other->connected) return false;
  }
  return worker.solo = true;
}

std::string Dispatcher::AnotherRunner(const std::string& target_key,
                                      const std::vector<std::string>& besides) const {
  std::string least;
  size_t least_leases = 0;
  for (const Worker* worker : registry_.OfTarget(target_key)) {
    if (!worker->connected || worker->leaving || !worker->capabilities.can_run) continue;
    if (!standings_.MayWork(worker->id)) continue;
    if (standings_.IsOneOf(worker->id, besides)) continue;
    const size_t leases = book_.Of(worker->id).size();
    if (!least.empty() && leases >= least_leases) continue;
    least = worker->id;
    least_leases = leases;
  }
  return least;
}

std::string Dispatcher::Rebuilder(const std::string& target_key, const BuilderVersion& version,
                                  const std::string& built_by,
                                  const std::vector<std::string>& besides) const {
  std::string same, other;
  size_t least_leases = 0;
  for (const auto& [id, worker] : registry_.all()) {
    if (!worker.connected || worker.leaving || !standings_.MayWork(id)) continue;
    if (!worker.capabilities.BuildsFor(target_key)) continue;
    if (BuilderOf(worker.capabilities.environment) != version) continue;
    if (std::find(besides.begin(), besides.end(), id) != besides.end()) continue;
    if (standings_.IsOneOf(id, {built_by})) {
      same = id;
      continue;
    }
    const size_t leases = book_.Of(id).size();
    if (!other.empty() && leases >= least_leases) continue;
    other = id;
    least_leases = leases;
  }
  return other.empty() ? same : other;
}

std::vector<LeaseGrant> Dispatcher::Grant(Worker& worker, absl::Time now, size_t bytes) {
  std::vector<LeaseGrant> grants;
  while ((worker.free_build_slots > 0 || worker.free_run_slots > 0) && book_.queue().HasWaiting() &&
         bytes < kAnswerBytes) {
    const bool solo = GoesSolo(worker);
    const Lease* lease = book_.Grant(
        worker.id, now,
        [&](const Lane& lane) {
          const bool alone = lane.alone && worker.CanRun(lane.target_key);
          return alone == solo && IsOpen(lane, worker);
        },
        [&](const TrackedItem& item) { return Fits(item, worker.id); },
        [&](const Lane& lane) { return Serves(lane, worker); });
    if (lease == nullptr) break;
    --(lease->build ? worker.free_build_slots : worker.free_run_slots);
    grants.push_back(Describe(*lease, now));
    bytes += BytesOf(grants.back());
  }
  return grants;
}

LeaseGrant Dispatcher::Describe(const Lease& lease, absl::Time now) const {
  const TrackedItem& item = book_.ItemOf(lease);
  const auto& best = item.work->best_latency_ns;
  return {.lease_id = lease.id,
          .build = lease.build,
          .run = lease.run,
          .limit = lease.deadline - now,
          .work = item.work,
          .artifact_digest = item.artifact_digest,
          .best_latency_ns = best == nullptr ? 0 : best->load()};
}

Dispatcher::Stealable Dispatcher::FindStealable(absl::Time now) const {
  Stealable stealable;
  for (const auto& [id, lease] : book_.leases()) {
    if (lease.phase != LeasePhase::kQueued || lease.granted + options_.steal_after > now) continue;
    const TrackedItem& item = book_.ItemOf(lease);
    if (item.suspect || !item.work->worker_id.empty()) continue;
    stealable[lease.worker_id].push_back(id);
  }
  return stealable;
}

Dispatcher::Theft Dispatcher::FindTheft(Worker& thief, const Stealable& stealable) const {
  Theft theft{.thief = &thief};
  for (const auto& [victim, leases] : stealable) {
    std::vector<std::string> usable;
    for (const std::string& id : leases) {
      const TrackedItem& item = book_.ItemOf(*book_.Find(id));
      if (IsOpen(item.lane(), thief) && Fits(item, thief.id)) usable.push_back(id);
    }
    usable.resize((usable.size() + 1) / 2);  // the other half stays with the busy worker
    if (usable.size() <= theft.leases.size()) continue;
    theft.leases = std::move(usable);
    theft.victim = &registry_.At(victim);
  }
  const size_t slots = std::max(thief.free_build_slots, thief.free_run_slots);
  if (theft.leases.size() > slots) theft.leases.resize(slots);
  return theft;
}

std::vector<Dispatcher::Theft> Dispatcher::FindThefts(const std::set<std::string>& idle,
                                                      absl::Time now) const {
  std::vector<Theft> thefts;
  if (idle.empty()) return thefts;
  Stealable stealable = FindStealable(now);
  for (const std::string& id : idle) {
    Theft theft = FindTheft(registry_.At(id), stealable);
    if (theft.victim == nullptr) continue;
    for (const std::string& lease : theft.leases) std::erase(stealable[theft.victim->id], lease);
    thefts.push_back(std::move(theft));
  }
  return thefts;
}

std::vector<std::pair<int64_t, absl::Status>> Dispatcher::FindHopeless(absl::Time now) {
  const WorkQueue& queue = book_.queue();
  std::vector<std::pair<int64_t, absl::Status>> hopeless;
  for (const Lane& lane : queue.Lanes()) {
    if (lane.build) continue;
    for (const int64_t id : queue.WaitingIn(lane)) {
      TrackedItem& item = *queue.Find(id);
      if (artifacts_.Has(item.artifact_digest)) continue;
      Worker* builder = registry_.Find(item.builder_id);
      if (builder != nullptr && builder->connected && builder->CanRun(lane.target_key)) {
        // A worker that gets no work can still send the artifact, for another worker to run.
        if (!standings_.MayWork(item.builder_id)) {
          builder->news.keep.emplace(item.artifact_digest, now);
        }
        continue;
      }
      if (item.work->artifact_digest.empty()) {
        book_.queue().Rebuild(item);
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
