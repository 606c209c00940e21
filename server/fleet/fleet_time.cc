// What the fleet does when time passes, and which devices it knows.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/fleet/fleet.h"

namespace hone::fleet {

void Fleet::Tick() {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_->Now();
    for (auto& [id, worker] : workers_) {
      if (worker.call.token != 0) {
        if (worker.call.deadline <= now) Answer(worker, SynchronizeReply(), after);
      } else if (worker.connected && worker.last_seen + options_.silence_limit <= now) {
        LoseWorker(worker,
                   absl::StrCat("not heard of for ", absl::FormatDuration(options_.silence_limit)),
                   after);
      }
    }
    for (auto it = workers_.begin(); it != workers_.end();) {
      const bool forget =
          !it->second.connected && it->second.last_seen + options_.forget_after <= now;
      it = forget ? workers_.erase(it) : std::next(it);
    }
    std::vector<std::string> overrun;
    for (const auto& [lease_id, lease] : leases_) {
      if (lease.deadline <= now) overrun.push_back(lease_id);
    }
    for (const std::string& lease_id : overrun) {
      workers_.at(leases_.at(lease_id).worker_id).cancel.push_back(lease_id);
      EndLease(lease_id, true, false, after);
    }
    ExpireItems(now, after);
    for (auto it = target_waits_.begin(); it != target_waits_.end();) {
      if (it->deadline > now) {
        ++it;
        continue;
      }
      const absl::Status why =
          absl::FailedPreconditionError(ChooseTarget(it->key).status().message());
      after.push_back([done = std::move(it->done), why]() mutable { std::move(done)(why); });
      it = target_waits_.erase(it);
    }
    Pump(after);
  }
  for (auto& call : after) std::move(call)();
}

void Fleet::ExpireItems(absl::Time now, After& after) {
  for (int64_t id : queue_.WaitingItems()) {
    TrackedItem& item = *queue_.Find(id);
    if (!item.artifact_digest.empty() && !artifacts_->Has(item.artifact_digest)) {
      auto builder = workers_.find(item.builder_id);
      const bool there = builder != workers_.end() && builder->second.connected &&
                         builder->second.capabilities.can_run &&
                         builder->second.capabilities.target_key == item.work.target_key;
      if (!there && !item.work.artifact_digest.empty()) {
        const absl::Status gone = absl::NotFoundError(
            absl::StrCat("artifact ", item.artifact_digest, " is neither here nor at a worker"));
        Deliver(queue_.Remove(id), gone, "", after);
        continue;
      }
      if (!there) item.artifact_digest.clear();  // it is built again
    }
    const std::string why = WhyUnsatisfied(item);
    if (why.empty()) {
      item.unsatisfied_since = absl::InfiniteFuture();
    } else if (item.unsatisfied_since == absl::InfiniteFuture()) {
      item.unsatisfied_since = now;
    } else if (item.unsatisfied_since + options_.unsatisfied_limit <= now) {
      Deliver(queue_.Remove(id), absl::FailedPreconditionError(why), "", after);
    }
  }
}

std::string Fleet::WhyUnsatisfied(const TrackedItem& item) const {
  bool builds = !item.artifact_digest.empty();
  const bool runs = HasRunner(item.work.target_key);
  std::set<std::string> targets;
  for (const auto& [id, worker] : workers_) {
    const Capabilities& can = worker.capabilities;
    builds = builds || can.can_build;
    if (can.can_run) targets.insert(can.target_key);
  }
  if (!runs) {
    return absl::StrCat("no registered worker runs target ", item.work.target_key, "; ",
                        targets.empty()
                            ? std::string("none is registered")
                            : absl::StrCat("registered: ", absl::StrJoin(targets, ", ")),
                        "; start hone-worker --server ADDRESS on such a machine");
  }
  if (!builds) {
    return absl::StrCat("no registered worker can build for target ", item.work.target_key,
                        "; start hone-worker on a machine with hone-builder");
  }
  return "";
}

std::vector<WorkerInfo> Fleet::Workers() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerInfo> list;
  for (const auto& [id, worker] : workers_) {
    list.push_back({.id = id,
                    .capabilities = worker.capabilities,
                    .connected = worker.connected,
                    .draining = worker.draining,
                    .last_seen = worker.call.token != 0 ? clock_->Now() : worker.last_seen,
                    .leases = static_cast<int>(worker.leases.size()),
                    .last_error = worker.last_error});
  }
  return list;
}

// Unavailable: not yet.
absl::StatusOr<Fleet::TargetChoice> Fleet::ChooseTarget(const std::string& key) const {
  std::map<std::string, std::string> targets;
  for (const auto& [id, worker] : workers_) {
    // A named target may be one that comes back; "the only one" is one that is there.
    if (!worker.capabilities.can_run || (key.empty() && !worker.connected)) continue;
    targets[worker.capabilities.target_key] = worker.capabilities.target;
  }
  if (!key.empty()) {
    if (auto found = targets.find(key); found != targets.end()) {
      return TargetChoice{found->first, found->second};
    }
    std::vector<std::string> keys;
    for (const auto& [name, text] : targets) keys.push_back(name);
    return absl::UnavailableError(
        absl::StrCat("no registered worker runs target ", key, "; ",
                     keys.empty() ? std::string("none is registered")
                                  : absl::StrCat("registered: ", absl::StrJoin(keys, ", ")),
                     "; start hone-worker --server ADDRESS on such a machine"));
  }
  if (targets.size() == 1) return TargetChoice{targets.begin()->first, targets.begin()->second};
  if (targets.empty()) {
    return absl::UnavailableError(
        "target native: no worker is registered; start hone-worker --server ADDRESS on the machine "
        "to tune for");
  }
  std::vector<std::string> keys;
  for (const auto& [name, text] : targets) keys.push_back(name);
  return absl::FailedPreconditionError(
      absl::StrCat("target native: the registered workers have several targets; name one of ",
                   absl::StrJoin(keys, ", ")));
}

void Fleet::FindTarget(const std::string& key, absl::Time deadline, TargetDone done) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) {
      after.push_back([done = std::move(done)]() mutable {
        std::move(done)(absl::UnavailableError("the server is shutting down"));
      });
    } else {
      target_waits_.push_back({key, deadline, std::move(done)});
      Pump(after);
    }
  }
  for (auto& call : after) std::move(call)();
}

}  // namespace hone::fleet
