#include "server/fleet/worker_list.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
          .identity = parts_.standings->IdentityOf(id),
          .capabilities = worker->capabilities,
          .connected = worker->connected,
          .drained = standing.drained,
          .stopping = worker->leaving,
          .flagged = standing.refused,
          .silent = parts_.calls->IsHeld(*worker) ? absl::ZeroDuration() : now - worker->last_seen,
          .leases = static_cast<int>(parts_.book->Of(id).size()),
          .last_error = has_rival ? worker->rival : worker->last_error,
          .machine = worker->machine,
          .activities = ActivitiesOf(id, now)};
}

std::vector<Activity> WorkerList::ActivitiesOf(const std::string& id, absl::Time now) const {
  std::vector<Activity> activities;
  for (const std::string& lease_id : parts_.book->Of(id)) {
    const Lease& lease = parts_.book->leases().at(lease_id);
    if (lease.phase == LeasePhase::kQueued) continue;
    const TrackedItem& item = parts_.book->ItemOf(lease);
    activities.push_back({.work = item.work,
                          .running = lease.phase == LeasePhase::kRunning,
                          .duration = now - lease.phase_since,
                          .attempt = 1 + item.attempts + item.device_errors});
  }
  std::ranges::stable_sort(activities, std::ranges::greater(), &Activity::duration);
  return activities;
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
  bool runs = false, builds = false;
  for (const auto& [id, worker] : parts_.registry->all()) {
    if (!worker.connected || worker.leaving || !parts_.standings->MayWork(id)) continue;
    if (!IsCalling(worker)) continue;
    runs = runs || worker.CanRun(target_key);
    builds = builds || worker.capabilities.BuildsFor(target_key);
    if (runs && builds) return true;
  }
  return false;
}

bool WorkerList::IsCalling(const Worker& worker) const {
  return parts_.calls->IsHeld(worker) || HasCalledAfter(parts_.clock->Now() - worker.last_seen);
}

std::optional<SilentWork> WorkerList::FindSilentWork(const std::string& job_id) const {
  std::string silent;
  int items = 0;
  bool is_all = true;
  for (const int64_t id : parts_.book->queue().ItemsOf(job_id)) {
    const auto lease = parts_.book->leases().find(parts_.book->queue().Find(id)->lease_id);
    const Worker* const worker = lease == parts_.book->leases().end()
                                     ? nullptr
                                     : parts_.registry->Find(lease->second.worker_id);
    if (worker == nullptr || IsCalling(*worker)) {
      is_all = false;
      continue;
    }
    silent = worker->id;
    ++items;
  }
  if (items == 0) return std::nullopt;
  return SilentWork{.worker = Of(silent), .items = items, .is_all = is_all};
}

}  // namespace hone::fleet
