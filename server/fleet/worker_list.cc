// What the fleet says about its workers: descriptions for lists and look-ups, and events for the
// log.

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/fleet/fleet.h"

namespace hone::fleet {
namespace {

// Returns where a worker is and what it offers: "target t on host pi, builds in 4 slots, runs
// kernels".
std::string OfferText(const Capabilities& can) {
  std::string text = absl::StrCat("target ", can.target_key, " on host ", can.host);
  if (can.can_build) {
    absl::StrAppend(&text, ", builds in ", can.build_slots,
                    can.build_slots == 1 ? " slot" : " slots");
  }
  if (can.can_run) absl::StrAppend(&text, ", runs kernels");
  if (!can.accelerator.empty()) absl::StrAppend(&text, " on ", can.accelerator);
  return text;
}

std::string LastSeenText(absl::Duration silent) {
  if (silent == absl::InfiniteDuration()) return "not connected";
  if (silent < absl::Seconds(1)) return "seen now";
  return absl::StrCat("last seen ", absl::FormatDuration(absl::Trunc(silent, absl::Seconds(1))),
                      " ago");
}

}  // namespace

WorkerInfo Fleet::InfoOf(const std::string& id) const {
  const Standing standing = standings_.Of(id);
  const Worker* worker = registry_.Find(id);
  if (worker == nullptr) {
    return {.id = id,
            .drained = standing.drained,
            .flagged = standing.refused,
            .silent = absl::InfiniteDuration()};
  }
  const absl::Time now = clock_->Now();
  const bool has_rival = now < worker->rival_seen + options_.rival_limit();
  return {.id = id,
          .identity = standings_.IdentityOf(id),
          .capabilities = worker->capabilities,
          .connected = worker->connected,
          .drained = standing.drained,
          .stopping = worker->leaving,
          .flagged = standing.refused,
          .silent = calls_.IsHeld(*worker) ? absl::ZeroDuration() : now - worker->last_seen,
          .leases = static_cast<int>(book_.Of(id).size()),
          .last_error = has_rival ? worker->rival : worker->last_error,
          .machine = worker->machine,
          .activities = ActivitiesOf(id, now)};
}

std::vector<Activity> Fleet::ActivitiesOf(const std::string& id, absl::Time now) const {
  std::vector<Activity> activities;
  for (const std::string& lease_id : book_.Of(id)) {
    const Lease& lease = book_.leases().at(lease_id);
    if (lease.phase == LeasePhase::kQueued) continue;
    const TrackedItem& item = book_.ItemOf(lease);
    activities.push_back({.work = item.work,
                          .running = lease.phase == LeasePhase::kRunning,
                          .duration = now - lease.phase_since,
                          .attempt = 1 + item.attempts + item.device_errors});
  }
  std::ranges::stable_sort(activities, std::ranges::greater(), &Activity::duration);
  return activities;
}

bool Fleet::IsCalling(const Worker& worker) const {
  return calls_.IsHeld(worker) || HasCalledAfter(clock_->Now() - worker.last_seen);
}

std::optional<WorkerInfo> Fleet::FindWorker(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  if (registry_.Find(id) == nullptr) return std::nullopt;
  return InfoOf(id);
}

std::vector<WorkerInfo> Fleet::Workers() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerInfo> list;
  for (const auto& [id, worker] : registry_.all()) list.push_back(InfoOf(id));
  registry_.AddBuilders(list);
  return list;
}

std::vector<WorkerInfo> Fleet::KnownWorkers() const {
  absl::MutexLock lock(&mutex_);
  std::set<std::string> ids;
  for (const auto& [id, worker] : registry_.all()) ids.insert(id);
  for (const auto& [id, standing] : standings_.all()) ids.insert(id);
  std::vector<WorkerInfo> list;
  for (const std::string& id : ids) list.push_back(InfoOf(id));
  registry_.AddBuilders(list);
  return list;
}

bool Fleet::Answers(const std::string& id) const {
  const std::optional<WorkerInfo> worker = FindWorker(id);
  return worker.has_value() && worker->connected && worker->silent < options_.silence_limit() / 2;
}

bool Fleet::IsServed(const std::string& target_key) const {
  absl::MutexLock lock(&mutex_);
  bool runs = false, builds = false;
  for (const auto& [id, worker] : registry_.all()) {
    if (!worker.connected || worker.leaving || !standings_.MayWork(id)) continue;
    if (!IsCalling(worker)) continue;
    runs = runs || worker.CanRun(target_key);
    builds = builds || worker.capabilities.BuildsFor(target_key);
    if (runs && builds) return true;
  }
  return false;
}

std::optional<SilentWork> Fleet::FindSilentWork(const std::string& job_id) const {
  absl::MutexLock lock(&mutex_);
  std::string silent;
  int items = 0;
  bool is_all = true;
  for (const int64_t id : book_.queue().ItemsOf(job_id)) {
    const auto lease = book_.leases().find(book_.queue().Find(id)->lease_id);
    const Worker* const worker =
        lease == book_.leases().end() ? nullptr : registry_.Find(lease->second.worker_id);
    if (worker == nullptr || IsCalling(*worker)) {
      is_all = false;
      continue;
    }
    silent = worker->id;
    ++items;
  }
  if (items == 0) return std::nullopt;
  return SilentWork{.worker = InfoOf(silent), .items = items, .is_all = is_all};
}

std::string Fleet::AnotherRunner(const std::string& target_key,
                                 const std::vector<std::string>& besides) const {
  absl::MutexLock lock(&mutex_);
  std::string least;
  size_t least_leases = 0;
  for (const Worker* worker : registry_.OfTarget(target_key)) {
    if (!worker->connected || worker->leaving || !worker->capabilities.can_run) continue;
    if (!standings_.MayWork(worker->id) || standings_.IsOneOf(worker->id, besides)) continue;
    const size_t leases = book_.Of(worker->id).size();
    if (!least.empty() && leases >= least_leases) continue;
    least = worker->id;
    least_leases = leases;
  }
  return least;
}

std::string Fleet::Rebuilder(const std::string& target_key, const BuilderVersion& version,
                             const std::string& built_by,
                             const std::vector<std::string>& besides) const {
  absl::MutexLock lock(&mutex_);
  std::string same, other;
  size_t least_leases = 0;
  for (const auto& [id, worker] : registry_.all()) {
    if (!worker.connected || worker.leaving || !standings_.MayWork(id)) continue;
    if (!worker.capabilities.BuildsFor(target_key)) continue;
    if (fleet::BuilderOf(worker.capabilities.environment) != version) continue;
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

void Fleet::TellCall(const Worker& worker, const WorkerReport& report,
                     const std::string& new_process) {
  if (report.draining) return;  // its last call
  const std::string offer = OfferText(report.capabilities);
  if (worker.epoch.empty()) {
    Tell(worker.id, absl::StrCat("joined: ", offer));
  } else if (!worker.connected) {
    Tell(worker.id,
         absl::StrCat("came back: ", offer, ", ", LastSeenText(clock_->Now() - worker.last_seen)));
  } else if (!new_process.empty()) {
    Tell(worker.id, absl::StrCat("connected again: ", new_process, "; ", offer));
  }
}

void Fleet::TellLost(const Worker& worker, const std::string& why) {
  Tell(worker.id, absl::StrCat(worker.leaving ? "left: " : "was lost: ", why, "; ",
                               OfferText(worker.capabilities), ", ",
                               LastSeenText(clock_->Now() - worker.last_seen)));
}

void Fleet::TellStanding(const std::string& id, const std::string& what) {
  const WorkerInfo worker = InfoOf(id);
  const bool is_known = !worker.capabilities.target_key.empty();
  Tell(id, absl::StrCat(what, is_known ? ": " : "", is_known ? OfferText(worker.capabilities) : "",
                        ", ", LastSeenText(worker.silent)));
}

void Fleet::Tell(const std::string& id, std::string event) {
  if (options_.on_event != nullptr) deferred_.Add(options_.on_event, id, std::move(event));
}

}  // namespace hone::fleet
