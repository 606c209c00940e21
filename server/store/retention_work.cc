#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/counted.h"
#include "server/store/read_limit.h"
#include "server/store/retention.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr absl::Duration kInterval = absl::Hours(24);
constexpr absl::Duration kRetryInterval = absl::Hours(1);

}  // namespace

bool RetentionPolicy::IsNone() const {
  constexpr absl::Duration kForever = absl::ZeroDuration();
  return records == kForever && bests == kForever && events == kForever && jobs == kForever &&
         most_bytes == 0;
}

CompactOptions RetentionPolicy::At(absl::Time now) const {
  const auto before = [&](absl::Duration age) {
    return age == absl::ZeroDuration() ? 0 : absl::ToUnixMillis(now - age);
  };
  CompactOptions options{.before = {.records = before(records),
                                    .bests = before(bests),
                                    .events = before(events),
                                    .jobs = before(jobs)},
                         .most_bytes = most_bytes};
  if (most_bytes > 0) options.spare_since_unix_ms = before(kSpared);
  return options;
}

RetentionWork::RetentionWork(const Clock* clock, const Clock* steady_clock, Store* store,
                             const Options& options)
    : clock_(*clock),
      steady_clock_(*steady_clock),
      store_(*store),
      options_(options),
      next_(steady_clock->Now() + options.first_wait) {
  if (!options_.policy.IsNone()) thread_ = std::thread([this] { RunAll(); });
}

RetentionWork::~RetentionWork() {
  Cancel();
  Join();
}

void RetentionWork::Tick() {
  // Removing rows needs space, too.
  if (!store_.CheckWritable().ok() || !store_.CheckSpace().ok()) return;
  absl::MutexLock lock(&mutex_);
  if (!is_due_ && steady_clock_.Now() >= next_) is_due_ = true;
}

void RetentionWork::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
}

void RetentionWork::Join() {
  if (thread_.joinable()) thread_.join();
}

RetentionWork::Stats RetentionWork::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

bool RetentionWork::IsCancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void RetentionWork::RunAll() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return is_due_ || cancelled_;
      };
      mutex_.Await(absl::Condition(&ready));
      if (cancelled_) return;
    }
    const absl::Time began = steady_clock_.Now();
    const absl::Status status = RunOnce();
    absl::MutexLock lock(&mutex_);
    is_due_ = false;
    next_ = began + (status.ok() ? kInterval : kRetryInterval);
    // The server ends, or has lost the leadership.
    if (absl::IsCancelled(status) || absl::IsAborted(status)) continue;
    stats_.has_failed = !status.ok();
    if (status.ok()) stats_.last_run_unix_s = absl::ToUnixSeconds(clock_.Now());
  }
}

absl::Status RetentionWork::RunOnce() {
  CompactOptions options = options_.policy.At(clock_.Now());
  options.pause = options_.pause;
  options.free_space = false;  // new rows use it
  // Also ends a statement that runs.
  const auto check = [this] {
    return IsCancelled() ? absl::CancelledError("the server ends") : absl::OkStatus();
  };
  const ReadLimit limit(check);
  const absl::StatusOr<CompactReport> report =
      store_.Compact(options, [this] { return IsCancelled(); });
  const absl::Status& status = report.status();
  if (absl::IsCancelled(status) || absl::IsAborted(status)) return status;
  if (!status.ok()) {
    spdlog::warn("old rows could not be removed from the store, which is tried again: {}",
                 std::string(status.message()));
    return status;
  }
  std::vector<std::string> removed;
  for (const auto& [kind, member] : kRemovedKinds) {
    const int64_t rows = ((*report).*member).rows;
    if (rows > 0) removed.push_back(Counted(rows, kind));
  }
  if (!removed.empty()) {
    spdlog::info("removed from the store, by age and size: {}", absl::StrJoin(removed, ", "));
  }
  return absl::OkStatus();
}

}  // namespace hone::store
