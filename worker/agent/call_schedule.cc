#include "worker/agent/call_schedule.h"

#include <algorithm>
#include <random>

namespace hone::agent {
namespace {

constexpr absl::Duration kNewsInterval = absl::Milliseconds(5);  // results wait for others
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLastBackoff = absl::Seconds(5);
// A refused worker waits this many times longer, up to a minute.
constexpr int kRefusedFactor = 8;
constexpr size_t kMaxCalls = 2;
// The server answers a call with results when they are durable, within milliseconds. Results that
// finish meanwhile wait this long for the answer, so a busy server gets fewer calls with more in
// each.
constexpr absl::Duration kAnswerPatience = absl::Seconds(1);
constexpr absl::Duration kFirstLogInterval = absl::Seconds(10);
constexpr absl::Duration kLastLogInterval = absl::Hours(1);

}  // namespace

absl::Duration BackoffAfter(int failures) {
  std::random_device device;
  const double jitter = 0.5 + static_cast<double>(device() % 1024) / 1024;
  return std::min(kFirstBackoff * (1 << std::min(failures, 10)), kLastBackoff) * jitter;
}

absl::Time CallSchedule::Next(bool results, bool stocked) const {
  if (calls_.size() >= kMaxCalls) return absl::InfiniteFuture();
  const bool news = news_ || results;
  absl::Time next = next_call_;
  if (stocked) next = std::max(next, gather_until_);
  if (calls_.empty()) return news ? next : std::max(next_call_, next_idle_call_);
  if (!news) return absl::InfiniteFuture();
  for (const auto& [number, call] : calls_) {
    if (call.results) next = std::max(next, call.begun + kAnswerPatience);
  }
  return next;
}

int64_t CallSchedule::Begin(bool carries_results, absl::Time now) {
  news_ = false;
  next_call_ = now + kNewsInterval;
  calls_[++last_call_] = {.begun = now, .results = carries_results};
  return last_call_;
}

void CallSchedule::Fail(int64_t call, bool refused, absl::Time now) {
  calls_.erase(call);
  news_ = true;  // the call's contents may be lost, so they are sent again
  answers_ = false;
  const absl::Duration delay = (refused ? kRefusedFactor : 1) * BackoffAfter(failures_++);
  next_call_ = std::max(next_call_, now + delay);
}

bool CallSchedule::Answer(int64_t call, const v1::SynchronizeResponse& response, absl::Time now) {
  // An overtaken call does not set the time of the next one.
  if (call == last_call_) {
    next_idle_call_ = now + absl::Milliseconds(response.next_call_ms());
    gather_until_ = calls_.at(call).begun + absl::Milliseconds(response.gather_ms());
  }
  calls_.erase(call);
  if (response.heartbeat_ms() > 0) heartbeat_ = absl::Milliseconds(response.heartbeat_ms());
  answers_ = true;
  return std::exchange(failures_, 0) > 0;
}

bool FailureLog::IsToBeLogged(const absl::Status& failure, absl::Time now) {
  if (failure.code() != last_.code()) {
    interval_ = kFirstLogInterval;
  } else {
    if (now - logged_at_ < (failure == last_ ? kLastLogInterval : interval_)) return false;
    interval_ = std::min(2 * interval_, kLastLogInterval);
  }
  last_ = failure;
  logged_at_ = now;
  return true;
}

}  // namespace hone::agent
