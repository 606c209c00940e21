// Who gets what, and what becomes of a lease that brings no answer.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/fleet/fleet.h"

namespace hone::fleet {
namespace {

// Idle workers are looked after this often.
constexpr absl::Duration kStealInterval = absl::Milliseconds(500);

// What target keys begin with.
absl::string_view InstructionSet(absl::string_view target_key) {
  return target_key.substr(0, target_key.find('-'));
}

bool CanRun(const Capabilities& can, const std::string& target_key) {
  return can.can_run && can.target_key == target_key;
}

bool CanBuild(const Capabilities& can, const std::string& target_key) {
  if (!can.can_build) return false;
  const absl::string_view wanted = InstructionSet(target_key);
  if (can.build_isas.empty()) return InstructionSet(can.target_key) == wanted;
  return std::find(can.build_isas.begin(), can.build_isas.end(), wanted) != can.build_isas.end();
}

}  // namespace

void Fleet::Requeue(TrackedItem& item) {
  queue_.Requeue(item);
  fresh_.insert(item.lane());
}

void Fleet::EndLease(const std::string& lease_id, LeaseEnd end, After& after) {
  const LeaseState lease = leases_.at(lease_id);
  leases_.erase(lease_id);
  workers_.at(lease.worker_id).leases.erase(lease_id);
  TrackedItem& item = *queue_.Find(lease.item);
  ++counts_.requeued;
  if (end.counts) {
    ++item.attempts;
    item.last_failure = end.why;
  }
  if (end.killed) item.killed.push_back(lease.worker_id);
  std::string why;
  if (static_cast<int>(item.killed.size()) >= options_.max_killed_workers) {
    why = absl::StrCat("these workers were lost while running it: ",
                       absl::StrJoin(item.killed, ", "));
    ++counts_.poisoned;
  } else if (item.attempts >= options_.max_attempts) {
    why = absl::StrCat("no answer from ", item.attempts, " leases; the last: ", item.last_failure);
  } else {
    // One that may be to blame is tried again by itself, so that the next loss tells.
    item.suspect = item.suspect || end.killed || end.suspect;
    Requeue(item);
    return;
  }
  WorkResult poisoned{.worker_id = lease.worker_id,
                      .environment = workers_.at(lease.worker_id).capabilities.environment};
  poisoned.result.outcome = record::Outcome::kDeviceLost;
  poisoned.result.detail = std::move(why);
  poisoned.result.facts = item.facts;
  Deliver(queue_.Remove(lease.item), std::move(poisoned), "", after);
}

void Fleet::TakeBack(const std::string& lease_id, After& after) {
  workers_.at(leases_.at(lease_id).worker_id).cancel.push_back(lease_id);
  EndLease(lease_id, {.counts = false}, after);
}

void Fleet::LoseWorker(Worker& worker, absl::string_view why, After& after) {
  const std::set<std::string> leases = worker.leases;
  const auto running = std::count_if(leases.begin(), leases.end(), [&](const std::string& id) {
    return leases_.at(id).phase == LeasePhase::kRunning;
  });
  for (const std::string& lease_id : leases) {
    const bool ran = leases_.at(lease_id).phase == LeasePhase::kRunning;
    // Of several that ran at once nobody knows which one it was; and what was lost twice may have
    // begun to run after the worker's last call.
    const bool suspect = ran || queue_.Find(leases_.at(lease_id).item)->attempts >= 1;
    EndLease(lease_id,
             {.killed = ran && running == 1,
              .suspect = suspect,
              .why = absl::StrCat("its worker was lost: ", why)},
             after);
  }
  worker.last_error = absl::StrCat("lost: ", why);
  worker.connected = false;
  worker.solo = false;
  worker.free_build_slots = worker.free_run_slots = 0;
  worker.resend.clear();
  worker.cancel.clear();
  worker.durable.clear();
  worker.keep.clear();
  OfferEverything();  // what was pinned to it
}

bool Fleet::IsPinned(const Lane& lane) const {
  if (lane.worker_id.empty()) return false;
  auto wanted = workers_.find(lane.worker_id);
  return wanted != workers_.end() && wanted->second.connected && !wanted->second.drained &&
         !refused_.contains(lane.worker_id) &&
         (!lane.build || CanBuild(wanted->second.capabilities, lane.target_key));
}

bool Fleet::Serves(const Lane& lane, const std::string& id, const Worker& worker) const {
  if (lane.worker_id != id && IsPinned(lane)) return false;
  if (!lane.build) return CanRun(worker.capabilities, lane.target_key);
  // A build alone is of use only when somebody can run it.
  return CanBuild(worker.capabilities, lane.target_key) &&
         (CanRun(worker.capabilities, lane.target_key) || HasRunner(lane.target_key));
}

bool Fleet::IsOpen(const Lane& lane, const std::string& id, const Worker& worker) const {
  if ((lane.build ? worker.free_build_slots : worker.free_run_slots) <= 0) return false;
  if (lane.alone && !worker.leases.empty() && CanRun(worker.capabilities, lane.target_key)) {
    return false;
  }
  return Serves(lane, id, worker);
}

bool Fleet::Fits(const TrackedItem& item, const std::string& id) const {
  const auto& avoid = item.work.avoid;
  if (std::find(avoid.begin(), avoid.end(), id) != avoid.end()) return false;
  return item.artifact_digest.empty() || item.builder_id == id ||
         artifacts_->Has(item.artifact_digest);
}

bool Fleet::GoesSolo(const std::string& id, Worker& worker) {
  if (!worker.solo && !queue_.HasSuspects()) return false;
  for (const std::string& lease_id : worker.leases) {
    const LeaseState& lease = leases_.at(lease_id);
    if (lease.alone && lease.run) return true;
  }
  bool waits = false;
  for (const Lane& lane : queue_.Lanes()) {
    if (!lane.alone || !CanRun(worker.capabilities, lane.target_key) || !Serves(lane, id, worker)) {
      continue;
    }
    for (int64_t item : queue_.WaitingIn(lane)) waits = waits || Fits(*queue_.Find(item), id);
  }
  if (!waits || worker.solo) return worker.solo = waits;
  // One worker of a target is enough: the others go on.
  for (const auto& [other_id, other] : workers_) {
    const bool same = other.capabilities.target_key == worker.capabilities.target_key;
    if (other.solo && other.connected && same) return false;
  }
  return worker.solo = true;
}

void Fleet::Grant(const std::string& id, Worker& worker, SynchronizeReply& reply) {
  while ((worker.free_build_slots > 0 || worker.free_run_slots > 0) && queue_.HasWaiting()) {
    const bool solo = GoesSolo(id, worker);
    TrackedItem* item = queue_.Take(
        [&](const Lane& lane) {
          const bool alone = lane.alone && CanRun(worker.capabilities, lane.target_key);
          return alone == solo && IsOpen(lane, id, worker);
        },
        [&](const TrackedItem& candidate) { return Fits(candidate, id); });
    if (item == nullptr) return;
    LeaseState lease{.item = item->id, .worker_id = id, .alone = item->suspect};
    lease.build = item->artifact_digest.empty();
    Lane to_run = item->lane();
    to_run.build = false;
    lease.run = !lease.build || Serves(to_run, id, worker);
    lease.granted = clock_->Now();
    lease.deadline = lease.granted + options_.lease_limit;
    --(lease.build ? worker.free_build_slots : worker.free_run_slots);
    item->lease_id = absl::StrCat(instance_, "-", next_lease_++);
    reply.start.push_back(Describe(item->lease_id, lease));
    worker.leases.insert(item->lease_id);
    lease_deadlines_.emplace_back(lease.deadline, item->lease_id);
    leases_[item->lease_id] = std::move(lease);
    ++counts_.granted;
  }
}

LeaseGrant Fleet::Describe(const std::string& lease_id, const LeaseState& lease) {
  const TrackedItem& item = *queue_.Find(lease.item);
  const WorkItem& work = item.work;
  return {.lease_id = lease_id,
          .build = lease.build,
          .run = lease.run,
          .limit = lease.deadline - clock_->Now(),
          .workload = work.workload,
          .workload_digest = work.workload_digest,
          .space_digest = work.space_digest,
          .space = work.space,
          .decisions = work.decisions,
          .target = work.target,
          .artifact_digest = item.artifact_digest,
          .policy = work.policy,
          .tolerance = work.tolerance,
          .best_latency_ns = work.best_latency_ns == nullptr ? 0 : work.best_latency_ns->load(),
          .job_id = work.job_id,
          .priority = work.priority};
}

void Fleet::OfferEverything() {
  for (Lane& lane : queue_.Lanes()) fresh_.insert(std::move(lane));
}

void Fleet::Offer(After& after) {
  if (fresh_.empty()) return;
  const std::set<Lane> fresh = std::exchange(fresh_, {});
  for (const Lane& lane : fresh) {
    std::set<std::string>& hungry = lane.build ? hungry_for_builds_ : hungry_for_runs_;
    if (IsPinned(lane)) {
      if (hungry.contains(lane.worker_id)) {
        Wake(lane.worker_id, workers_.at(lane.worker_id), after);
      }
      continue;
    }
    for (auto next = hungry.begin(); next != hungry.end() && queue_.HasWaiting(lane);) {
      const std::string id = *next++;  // an answer takes it out
      Worker& worker = workers_.at(id);
      if (Serves(lane, id, worker)) Wake(id, worker, after);
    }
  }
}

void Fleet::Steal(absl::Time now, After& after) {
  if (now < next_steal_) return;
  next_steal_ = now + kStealInterval;
  std::vector<std::string> idle;
  std::set<std::string> hungry = hungry_for_builds_;
  hungry.insert(hungry_for_runs_.begin(), hungry_for_runs_.end());
  for (const std::string& id : hungry) {
    if (workers_.at(id).leases.empty()) idle.push_back(id);
  }
  if (idle.empty()) return;
  // What has waited at each worker, the oldest last.
  std::map<std::string, std::vector<std::string>> queued;
  for (const auto& [lease_id, lease] : leases_) {
    if (lease.phase != LeasePhase::kQueued || lease.granted + options_.steal_after > now) continue;
    const TrackedItem& item = *queue_.Find(lease.item);
    if (item.suspect || !item.work.worker_id.empty()) continue;
    queued[lease.worker_id].push_back(lease_id);
  }
  for (const std::string& id : idle) {
    Worker& thief = workers_.at(id);
    std::vector<std::string> stolen;
    std::string from;
    for (auto& [victim, leases] : queued) {
      std::vector<std::string> usable;
      for (const std::string& lease_id : leases) {
        const TrackedItem& item = *queue_.Find(leases_.at(lease_id).item);
        if (IsOpen(item.lane(), id, thief) && Fits(item, id)) usable.push_back(lease_id);
      }
      usable.resize((usable.size() + 1) / 2);  // the other half stays
      if (usable.size() <= stolen.size()) continue;
      stolen = std::move(usable);
      from = victim;
    }
    if (stolen.empty()) continue;
    const size_t slots = std::max(thief.free_build_slots, thief.free_run_slots);
    if (stolen.size() > slots) stolen.resize(slots);
    for (const std::string& lease_id : stolen) {
      std::erase(queued[from], lease_id);
      TakeBack(lease_id, after);
      ++counts_.stolen;
    }
    Wake(id, thief, after);  // before anybody else can have them
    Wake(from, workers_.at(from), after);
  }
}

}  // namespace hone::fleet
