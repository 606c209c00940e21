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
                         .drained = row.drained,
                         .refused = row.refused,
                         .removed = row.removed});
  }
  return standings;
}

store::StandingChange ToStore(const fleet::UnstoredStanding& news, absl::Time now) {
  store::StandingChange change{.worker_id = news.standing.worker_id,
                               .since_unix_ms = absl::ToUnixMillis(now)};
  if (news.drained) change.drained = news.standing.drained;
  if (news.refused) {
    change.refused = news.standing.refused;
    change.removed = news.standing.removed;
  }
  return change;
}

absl::Duration WaitAfter(int failures) {
  const absl::Duration wait = StandingKeeper::kFirstRetry * (1 << std::min(failures - 1, 16));
  return std::min(wait, StandingKeeper::kLongestRetry);
}

}  // namespace

absl::Status StandingKeeper::Restore() {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::WorkerStanding> rows, deps_.store->Standings());
  deps_.fleet->Adopt(ToFleet(rows));
  return absl::OkStatus();
}

void StandingKeeper::Keep(const std::string& worker_id, store::Store::Done done) {
  absl::MutexLock lock(&order_);
  std::optional<fleet::UnstoredStanding> news = deps_.fleet->standings().Unstored(worker_id);
  if (!news.has_value()) return std::move(done)(absl::OkStatus());  // another call has stored it
  store::StandingChange change = ToStore(*news, deps_.clock->Now());
  deps_.store->ChangeStanding(
      std::move(change),
      [this, news = *std::move(news), done = std::move(done)](const absl::Status& status) mutable {
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
  bool look = false;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = deps_.steady_clock->Now();
    for (auto& [worker_id, retry] : retries_) {
      if (retry.under_way || retry.when > now) continue;
      retry.under_way = true;
      due.push_back(worker_id);
    }
    look = deps_.store->IsShared() && !looking_ && next_look_ <= now;
    if (look) {
      looking_ = true;
      next_look_ = now + kLookInterval;
    }
  }
  for (const std::string& worker_id : due) {
    Keep(worker_id, [this, worker_id](const absl::Status& status) {
      if (!status.ok()) return;  // it will be read again
      absl::MutexLock lock(&mutex_);
      retries_.erase(worker_id);
    });
  }
  if (look) deps_.executor->Schedule([this] { Look(); });
}

void StandingKeeper::Look() {
  deps_.fleet->standings().BeginAdopt();
  const absl::StatusOr<std::vector<store::WorkerStanding>> rows = deps_.store->Standings();
  if (rows.ok()) {
    deps_.fleet->Adopt(ToFleet(*rows));
  } else {
    deps_.fleet->standings().EndAdopt();
  }
  absl::MutexLock lock(&mutex_);
  looking_ = false;
  if (!rows.ok() && !blind_) {
    spdlog::warn("the standings of workers could not be read: {}",
                 std::string(rows.status().message()));
  }
  blind_ = !rows.ok();
}

int64_t StandingKeeper::unstored() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(retries_.size());
}

}  // namespace hone::service
