#include "server/fleet/worker_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::fleet {
namespace {

constexpr char kStartOne[] = "; start hone-worker --server ADDRESS on such a machine";

// Target keys begin with it.
absl::string_view InstructionSet(absl::string_view target_key) {
  return target_key.substr(0, target_key.find('-'));
}

std::string Registered(const std::set<std::string>& targets) {
  return targets.empty() ? "none is registered"
                         : absl::StrCat("registered: ", absl::StrJoin(targets, ", "));
}

}  // namespace

bool Worker::CanBuild(const std::string& target_key) const {
  if (!capabilities.can_build) return false;
  const absl::string_view wanted = InstructionSet(target_key);
  const std::vector<std::string>& isas = capabilities.build_isas;
  if (isas.empty()) return InstructionSet(capabilities.target_key) == wanted;
  return std::find(isas.begin(), isas.end(), wanted) != isas.end();
}

Worker* WorkerRegistry::Find(const std::string& id) {
  auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

const Worker* WorkerRegistry::Find(const std::string& id) const {
  auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

Worker& WorkerRegistry::Add(const std::string& id) {
  Worker& worker = workers_[id];
  worker.id = id;
  return worker;
}

void WorkerRegistry::Erase(const std::string& id) {
  auto found = workers_.find(id);
  Release(found->second);
  auto peers = by_target_.find(found->second.capabilities.target_key);
  if (peers != by_target_.end() && peers->second.erase(id) > 0 && peers->second.empty()) {
    by_target_.erase(peers);
  }
  workers_.erase(found);
}

void WorkerRegistry::SetCapabilities(Worker& worker, Capabilities capabilities) {
  const std::string& before = worker.capabilities.target_key;
  if (before != capabilities.target_key) {
    auto peers = by_target_.find(before);
    if (peers != by_target_.end() && peers->second.erase(worker.id) > 0 && peers->second.empty()) {
      by_target_.erase(peers);
    }
  }
  by_target_[capabilities.target_key].insert(worker.id);
  worker.capabilities = std::move(capabilities);
}

void WorkerRegistry::Hold(Worker& worker, HeldCall call) {
  calls_[call.token] = worker.id;
  worker.call = std::move(call);
}

SynchronizeDone WorkerRegistry::Release(Worker& worker) {
  calls_.erase(worker.call.token);
  NoteHunger(worker, false);
  return std::exchange(worker.call, HeldCall()).done;
}

Worker* WorkerRegistry::FindCall(uint64_t token) {
  auto held = calls_.find(token);
  return held == calls_.end() ? nullptr : &workers_.at(held->second);
}

void WorkerRegistry::NoteHunger(const Worker& worker, bool is_open) {
  const auto note = [&](std::set<std::string>& hungry, int slots) {
    if (is_open && slots > 0) {
      hungry.insert(worker.id);
    } else {
      hungry.erase(worker.id);
    }
  };
  note(for_builds_, worker.free_build_slots);
  note(for_runs_, worker.free_run_slots);
}

std::vector<const Worker*> WorkerRegistry::OfTarget(const std::string& target_key) const {
  std::vector<const Worker*> workers;
  auto found = by_target_.find(target_key);
  if (found == by_target_.end()) return workers;
  for (const std::string& id : found->second) workers.push_back(&workers_.at(id));
  return workers;
}

std::set<std::string> WorkerRegistry::Targets() const {
  std::set<std::string> targets;
  for (const auto& [key, ids] : by_target_) {
    for (const std::string& id : ids) {
      if (!workers_.at(id).capabilities.can_run) continue;
      targets.insert(key);
      break;
    }
  }
  return targets;
}

bool WorkerRegistry::HasRunner(const std::string& target_key) const {
  auto found = by_target_.find(target_key);
  return found != by_target_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const std::string& id) {
           return workers_.at(id).capabilities.can_run && standings_->MayWork(id);
         });
}

std::optional<Capabilities> WorkerRegistry::DeviceOf(const std::string& target_key) const {
  const std::vector<const Worker*> workers = OfTarget(target_key);
  if (workers.empty()) return std::nullopt;
  for (const Worker* worker : workers) {
    if (worker->capabilities.peak_gflops > 0) return worker->capabilities;
  }
  return workers[0]->capabilities;
}

absl::StatusOr<TargetChoice> WorkerRegistry::ChooseTarget(const std::string& key) const {
  if (!key.empty()) {
    for (const Worker* worker : OfTarget(key)) {
      if (worker->capabilities.can_run) return TargetChoice{key, worker->capabilities.target};
    }
    return absl::UnavailableError(absl::StrCat("no registered worker runs target ", key, "; ",
                                               Registered(Targets()), kStartOne));
  }
  // A named target may be one that comes back; the only target is one that is connected.
  std::map<std::string, std::string> targets;
  for (const auto& [target_key, ids] : by_target_) {
    for (const std::string& id : ids) {
      const Worker& worker = workers_.at(id);
      if (!worker.connected || !worker.capabilities.can_run) continue;
      targets[target_key] = worker.capabilities.target;
      break;
    }
  }
  if (targets.size() == 1) return TargetChoice{targets.begin()->first, targets.begin()->second};
  if (targets.empty()) {
    return absl::UnavailableError(
        "target native: no worker is registered; start hone-worker --server ADDRESS on the machine "
        "to tune for");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("target native: the registered workers have several targets; name one of ",
                   absl::StrJoin(targets, ", ", [](std::string* out, const auto& target) {
                     absl::StrAppend(out, target.first);
                   })));
}

std::string WorkerRegistry::WhyNoRunner(const std::string& target_key) const {
  std::vector<std::string> idle;  // of the target, and yet of no use
  for (const Worker* worker : OfTarget(target_key)) {
    if (!worker->capabilities.can_run) continue;
    const std::string refusal = standings_->Refusal(worker->id);
    idle.push_back(absl::StrCat(worker->id, " (", refusal.empty() ? "drained" : refusal, ")"));
  }
  if (!idle.empty()) {
    return absl::StrCat(
        "no worker of target ", target_key,
        " takes work; hone workers resume NAME lets one: ", absl::StrJoin(idle, ", "));
  }
  return absl::StrCat("no registered worker runs target ", target_key, "; ", Registered(Targets()),
                      kStartOne);
}

}  // namespace hone::fleet
