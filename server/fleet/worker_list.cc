#include "server/fleet/worker_list.h"

#include <set>
#include <utility>

namespace hone::fleet {

WorkerInfo WorkerList::Of(const std::string& id) const {
  const Standing standing = parts_.standings->Of(id);
  const Worker* worker = parts_.registry->Find(id);
  if (worker == nullptr) {
    return {.id = id,
            .drained = standing.drained,
            .flagged = standing.refused,
            .silent = absl::InfiniteDuration()};
  }
  const absl::Time now = parts_.clock->Now();
  const bool has_rival = now < worker->rival_seen + parts_.options->rival_limit();
  return {.id = id,
          .capabilities = worker->capabilities,
          .connected = worker->connected,
          .drained = standing.drained,
          .stopping = worker->leaving,
          .flagged = standing.refused,
          .silent = parts_.calls->IsHeld(*worker) ? absl::ZeroDuration() : now - worker->last_seen,
          .leases = static_cast<int>(parts_.book->Of(id).size()),
          .last_error = has_rival ? worker->rival : worker->last_error,
          .machine = worker->machine};
}

std::optional<WorkerInfo> WorkerList::Find(const std::string& id) const {
  if (parts_.registry->Find(id) == nullptr) return std::nullopt;
  return Of(id);
}

std::vector<WorkerInfo> WorkerList::Registered() const {
  std::vector<WorkerInfo> list;
  for (const auto& [id, worker] : parts_.registry->all()) list.push_back(Of(id));
  parts_.registry->AddBuilders(list);
  return list;
}

std::vector<WorkerInfo> WorkerList::Known() const {
  std::set<std::string> ids;
  for (const auto& [id, worker] : parts_.registry->all()) ids.insert(id);
  for (const auto& [id, standing] : parts_.standings->all()) ids.insert(id);
  std::vector<WorkerInfo> list;
  for (const std::string& id : ids) list.push_back(Of(id));
  parts_.registry->AddBuilders(list);
  return list;
}

bool WorkerList::IsServed(const std::string& target_key) const {
  const absl::Time now = parts_.clock->Now();
  bool runs = false, builds = false;
  for (const auto& [id, worker] : parts_.registry->all()) {
    if (!worker.connected || worker.leaving || !parts_.standings->MayWork(id)) continue;
    if (!parts_.calls->IsHeld(worker) && !HasCalledAfter(now - worker.last_seen)) continue;
    runs = runs || worker.CanRun(target_key);
    builds = builds || worker.capabilities.BuildsFor(target_key);
    if (runs && builds) return true;
  }
  return false;
}

std::optional<WorkerInfo> WorkerList::SilentHolder(const std::string& job_id) const {
  std::optional<WorkerInfo> silent;
  for (const int64_t id : parts_.book->queue().ItemsOf(job_id)) {
    const auto lease = parts_.book->leases().find(parts_.book->queue().Find(id)->lease_id);
    if (lease == parts_.book->leases().end()) return std::nullopt;
    WorkerInfo worker = Of(lease->second.worker_id);
    if (worker.HasCalled()) return std::nullopt;
    silent = std::move(worker);
  }
  return silent;
}

}  // namespace hone::fleet
