// Which devices there are, and which of them are to be used.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/fleet/fleet.h"

namespace hone::fleet {
namespace {

constexpr char kStartOne[] = "; start hone-worker --server ADDRESS on such a machine";

std::string Registered(const std::set<std::string>& targets) {
  return targets.empty() ? "none is registered"
                         : absl::StrCat("registered: ", absl::StrJoin(targets, ", "));
}

}  // namespace

void Fleet::CountRunners() {
  runners_.clear();
  for (const auto& [id, worker] : workers_) {
    if (!worker.capabilities.can_run || worker.drained || refused_.contains(id)) continue;
    ++runners_[worker.capabilities.target_key];
  }
}

bool Fleet::HasRunner(const std::string& target_key) const { return runners_.contains(target_key); }

std::string Fleet::WhyUnsatisfied(const Lane& lane) const {
  if (!HasRunner(lane.target_key)) {
    std::set<std::string> targets;
    std::string idle;  // of the target, and yet of no use
    for (const auto& [id, worker] : workers_) {
      if (!worker.capabilities.can_run) continue;
      targets.insert(worker.capabilities.target_key);
      if (worker.capabilities.target_key != lane.target_key) continue;
      auto refused = refused_.find(id);
      absl::StrAppend(&idle, idle.empty() ? "" : ", ", id, " (",
                      refused != refused_.end() ? refused->second.why : "drained", ")");
    }
    if (!idle.empty()) {
      return absl::StrCat("no worker of target ", lane.target_key,
                          " takes work; hone workers resume NAME lets one: ", idle);
    }
    return absl::StrCat("no registered worker runs target ", lane.target_key, "; ",
                        Registered(targets), kStartOne);
  }
  if (!lane.build) return "";
  Lane anywhere = lane;
  anywhere.worker_id.clear();
  for (const auto& [id, worker] : workers_) {
    if (!worker.drained && !refused_.contains(id) && Serves(anywhere, id, worker)) return "";
  }
  return absl::StrCat("no registered worker can build for target ", lane.target_key,
                      "; start hone-worker on a machine with hone-builder");
}

WorkerInfo Fleet::Describe(const std::string& id, const Worker& worker) const {
  auto refused = refused_.find(id);
  return {
      .id = id,
      .capabilities = worker.capabilities,
      .connected = worker.connected,
      .draining = worker.leaving || worker.drained,
      .flagged = refused == refused_.end() ? "" : refused->second.why,
      .silent = worker.call.token != 0 ? absl::ZeroDuration() : clock_->Now() - worker.last_seen,
      .leases = static_cast<int>(worker.leases.size()),
      .last_error = worker.last_error,
      .machine = worker.machine};
}

std::vector<WorkerInfo> Fleet::Workers() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerInfo> list;
  for (const auto& [id, worker] : workers_) list.push_back(Describe(id, worker));
  return list;
}

std::vector<WorkerInfo> Fleet::KnownWorkers() const {
  absl::MutexLock lock(&mutex_);
  std::set<std::string> ids = drained_;
  for (const auto& [id, worker] : workers_) ids.insert(id);
  for (const auto& [id, refusal] : refused_) ids.insert(id);
  std::vector<WorkerInfo> list;
  for (const std::string& id : ids) {
    if (auto found = workers_.find(id); found != workers_.end()) {
      list.push_back(Describe(id, found->second));
      continue;
    }
    const Standing standing = StandingNow(id);
    list.push_back({.id = id,
                    .draining = standing.drained,
                    .flagged = standing.refused,
                    .silent = absl::InfiniteDuration()});
  }
  return list;
}

FleetCounts Fleet::Counts() const {
  absl::MutexLock lock(&mutex_);
  FleetCounts counts = counts_;
  for (const auto& [id, worker] : workers_) {
    ++(worker.connected ? counts.workers_connected : counts.workers_away);
  }
  counts.workers_refused = static_cast<int64_t>(refused_.size());
  counts.items_waiting = queue_.waiting();
  counts.items_leased = queue_.items() - queue_.waiting();
  return counts;
}

std::set<std::string> Fleet::Targets() const {
  absl::MutexLock lock(&mutex_);
  std::set<std::string> targets;
  for (const auto& [id, worker] : workers_) {
    if (worker.capabilities.can_run) targets.insert(worker.capabilities.target_key);
  }
  return targets;
}

std::optional<Capabilities> Fleet::DeviceOf(const std::string& target_key) const {
  absl::MutexLock lock(&mutex_);
  const Capabilities* first = nullptr;
  for (const auto& [id, worker] : workers_) {
    if (worker.capabilities.target_key != target_key) continue;
    if (worker.capabilities.peak_gflops > 0) return worker.capabilities;
    if (first == nullptr) first = &worker.capabilities;
  }
  return first == nullptr ? std::nullopt : std::make_optional(*first);
}

std::string Fleet::AnotherRunner(const std::string& target_key,
                                 const std::vector<std::string>& besides) const {
  absl::MutexLock lock(&mutex_);
  std::string least;
  size_t least_leases = 0;
  for (const auto& [id, worker] : workers_) {
    if (!worker.connected || worker.drained || worker.leaving || refused_.contains(id)) continue;
    if (!worker.capabilities.can_run || worker.capabilities.target_key != target_key) continue;
    if (std::find(besides.begin(), besides.end(), id) != besides.end()) continue;
    if (!least.empty() && worker.leases.size() >= least_leases) continue;
    least = id;
    least_leases = worker.leases.size();
  }
  return least;
}

// Unavailable: not yet.
absl::StatusOr<Fleet::TargetChoice> Fleet::ChooseTarget(const std::string& key) const {
  std::map<std::string, std::string> targets;
  std::set<std::string> keys;
  for (const auto& [id, worker] : workers_) {
    // A named target may be one that comes back; "the only one" is one that is there.
    if (!worker.capabilities.can_run || (key.empty() && !worker.connected)) continue;
    targets[worker.capabilities.target_key] = worker.capabilities.target;
    keys.insert(worker.capabilities.target_key);
  }
  if (!key.empty()) {
    if (auto found = targets.find(key); found != targets.end()) {
      return TargetChoice{found->first, found->second};
    }
    return absl::UnavailableError(
        absl::StrCat("no registered worker runs target ", key, "; ", Registered(keys), kStartOne));
  }
  if (targets.size() == 1) return TargetChoice{targets.begin()->first, targets.begin()->second};
  if (targets.empty()) {
    return absl::UnavailableError(
        "target native: no worker is registered; start hone-worker --server ADDRESS on the machine "
        "to tune for");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("target native: the registered workers have several targets; name one of ",
                   absl::StrJoin(keys, ", ")));
}

void Fleet::AnswerTargetWaits(After& after) {
  for (auto it = target_waits_.begin(); it != target_waits_.end();) {
    absl::StatusOr<TargetChoice> choice = ChooseTarget(it->key);
    if (absl::IsUnavailable(choice.status())) {
      ++it;
      continue;
    }
    after.push_back([done = std::move(it->done), choice = std::move(choice)]() mutable {
      std::move(done)(std::move(choice));
    });
    it = target_waits_.erase(it);
  }
}

void Fleet::FindTarget(const std::string& key, absl::Duration patience, TargetDone done) {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) {
      after.push_back([done = std::move(done)]() mutable {
        std::move(done)(absl::UnavailableError("the server is shutting down"));
      });
    } else {
      target_waits_.push_back({key, clock_->Now() + patience, std::move(done)});
      AnswerTargetWaits(after);
    }
  }
  for (auto& call : after) std::move(call)();
}

}  // namespace hone::fleet
