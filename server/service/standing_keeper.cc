#include "server/service/standing_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone::service {
namespace {

std::vector<fleet::Standing> ToFleet(const std::vector<store::WorkerStanding>& rows) {
  std::vector<fleet::Standing> standings;
  for (const store::WorkerStanding& row : rows) {
    standings.push_back({.worker_id = row.worker_id,
                         .identity = row.identity,
                         .drained = row.drained,
                         .refused = row.refused,
                         .removed = row.removed});
  }
  return standings;
}

store::WorkerStanding ToStore(const fleet::Standing& standing, absl::Time now) {
  return {.worker_id = standing.worker_id,
          .identity = standing.identity,
          .drained = standing.drained,
          .refused = standing.refused,
          .removed = standing.removed,
          .since_unix_ms = absl::ToUnixMillis(now)};
}

absl::Duration WaitAfter(int failures) {
  const absl::Duration wait = StandingKeeper::kFirstRetry * (1 << std::min(failures - 1, 16));
  return std::min(wait, StandingKeeper::kLongestRetry);
}

// Returns whether the worker has not called for so long that it is forgotten.
bool IsOver(const store::KnownWorker& worker, absl::Time now) {
  return worker.seen_unix_ms <= absl::ToUnixMillis(now) - store::Store::kWorkerMemoryMs;
}

}  // namespace

absl::Status StandingKeeper::Restore() {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::WorkerStanding> rows, deps_.store->Standings());
  deps_.fleet->standings().Adopt(ToFleet(rows));
  return absl::OkStatus();
}

void StandingKeeper::Keep(const std::string& worker_id, store::Store::Done done) {
  absl::MutexLock lock(&order_);
  std::optional<fleet::UnstoredStanding> news = deps_.fleet->standings().Unstored(worker_id);
  if (!news.has_value()) return std::move(done)(absl::OkStatus());  // another call has stored it
  store::WorkerStanding row = ToStore(news->standing, deps_.clock->Now());
  deps_.store->PutStanding(std::move(row), [this, news = *std::move(news), done = std::move(done)](
                                               const absl::Status& status) mutable {
    Stored(news, status);
    std::move(done)(status);
  });
}

void StandingKeeper::Stored(const fleet::UnstoredStanding& news, const absl::Status& status) {
  const std::string& worker_id = news.standing.worker_id;
  if (status.ok()) deps_.fleet->standings().MarkStored(news);
  absl::MutexLock lock(&mutex_);
  if (status.ok()) {
    if (retries_.erase(worker_id) > 0) {
      spdlog::info("the standing of worker {} is stored now", worker_id);
    }
    return;
  }
  Retry& retry = retries_[worker_id];
  retry.under_way = false;
  const absl::Duration wait = WaitAfter(++retry.failures);
  retry.when = deps_.steady_clock->Now() + wait;
  spdlog::error(
      "the standing of worker {} could not be stored, and a restart would lose it; the next "
      "attempt is in {}: {}",
      worker_id, SecondsText(wait), std::string(status.message()));
}

void StandingKeeper::Keep(const std::string& worker_id) {
  spdlog::warn("worker {} is flagged and gets no leases: {}", worker_id,
               deps_.fleet->standings().Of(worker_id).refused);
  Keep(worker_id, [](const absl::Status&) {});  // errors are logged, and the write is repeated
}

void StandingKeeper::Tick() {
  std::vector<std::string> due;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = deps_.steady_clock->Now();
    for (auto& [worker_id, retry] : retries_) {
      if (retry.under_way || retry.when > now) continue;
      retry.under_way = true;
      due.push_back(worker_id);
    }
  }
  for (const std::string& worker_id : due) {
    Keep(worker_id, [this, worker_id](const absl::Status& status) {
      if (!status.ok()) return;  // it will be repeated again
      absl::MutexLock lock(&mutex_);
      retries_.erase(worker_id);
    });
  }
}

int64_t StandingKeeper::unstored() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(retries_.size());
}

absl::Status WorkerMemory::Restore() {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::KnownWorker> rows, deps_.store->Workers());
  absl::MutexLock lock(&mutex_);
  for (const store::KnownWorker& row : rows) known_[row.worker_id] = row;
  return absl::OkStatus();
}

void WorkerMemory::Tick() {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = deps_.steady_clock->Now();
    if (now < next_look_) return;
    next_look_ = now + kLookInterval;
  }
  Save(/*all=*/false);
}

void WorkerMemory::Keep() { Save(/*all=*/true); }

void WorkerMemory::Keep(const std::string& worker_id) {
  const std::optional<fleet::WorkerInfo> worker = deps_.fleet->FindWorker(worker_id);
  if (!worker.has_value()) return;
  absl::MutexLock lock(&mutex_);
  Note(*worker, /*refresh=*/absl::ZeroDuration(), deps_.clock->Now());
}

void WorkerMemory::Save(bool all) {
  const absl::Time now = deps_.clock->Now();
  const std::vector<fleet::WorkerInfo> workers = deps_.fleet->Workers();
  absl::MutexLock lock(&mutex_);
  std::erase_if(known_, [&](const auto& known) { return IsOver(known.second, now); });
  const absl::Duration refresh = all ? absl::ZeroDuration() : RefreshInterval(workers.size());
  for (const fleet::WorkerInfo& worker : workers) Note(worker, refresh, now);
}

void WorkerMemory::Note(const fleet::WorkerInfo& worker, absl::Duration refresh, absl::Time now) {
  store::KnownWorker seen{.worker_id = worker.id,
                          .identity = worker.identity,
                          .host = worker.capabilities.host,
                          .target = worker.capabilities.target_key,
                          .can_build = worker.capabilities.can_build,
                          .can_run = worker.capabilities.can_run,
                          .seen_unix_ms = absl::ToUnixMillis(now - worker.silent)};
  if (IsOver(seen, now)) return;
  store::KnownWorker& known = known_[worker.id];
  store::KnownWorker same = seen;
  same.seen_unix_ms = known.seen_unix_ms;
  const absl::Duration later = absl::Milliseconds(seen.seen_unix_ms - known.seen_unix_ms);
  // The stored time is too late if the wall clock was set back. Less is a difference of the
  // clocks that `seen` is computed from.
  const bool set_back = later < -kLookInterval;
  // A silent worker may be lost; its last call is stored while it is still known.
  if (!worker.connected || !worker.HasCalled()) refresh = absl::ZeroDuration();
  const bool fresh = !set_back && (later <= absl::ZeroDuration() || later < refresh);
  if (same == known && fresh) return;
  known = seen;
  deps_.store->PutWorker(std::move(seen), [id = worker.id](const absl::Status& status) {
    if (status.ok()) return;
    spdlog::warn("the last call of worker {} could not be stored: {}", id,
                 std::string(status.message()));
  });
}

std::vector<fleet::WorkerInfo> WorkerMemory::WithAbsent(
    std::vector<fleet::WorkerInfo> workers) const {
  std::map<std::string, fleet::WorkerInfo> by_name;
  for (fleet::WorkerInfo& worker : workers) by_name[worker.id] = std::move(worker);
  const absl::Time now = deps_.clock->Now();
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, known] : known_) {
    const auto [entry, is_absent] = by_name.try_emplace(id);
    fleet::WorkerInfo& worker = entry->second;
    if (!is_absent && worker.silent != absl::InfiniteDuration()) continue;
    worker.id = id;
    worker.identity = known.identity;
    worker.capabilities.host = known.host;
    worker.capabilities.target_key = known.target;
    worker.capabilities.can_build = known.can_build;
    worker.capabilities.can_run = known.can_run;
    worker.silent = now - absl::FromUnixMillis(known.seen_unix_ms);
  }
  workers.clear();
  for (auto& [id, worker] : by_name) workers.push_back(std::move(worker));
  return workers;
}

std::optional<std::string> WorkerMemory::IdentityOf(const std::string& worker_id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = known_.find(worker_id);
  if (found == known_.end()) return std::nullopt;
  return found->second.identity;
}

}  // namespace hone::service
