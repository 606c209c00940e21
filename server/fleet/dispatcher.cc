// Of WorkerCalls: which worker gets which item.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/fleet/worker_calls.h"

namespace hone::fleet {
namespace {

constexpr size_t kAnswerBytes = 4 << 20;

// The size of the long texts of a lease.
size_t BytesOf(const LeaseGrant& grant) {
  return grant.work->workload.size() + (grant.build ? grant.work->space.size() : 0);
}

}  // namespace

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
