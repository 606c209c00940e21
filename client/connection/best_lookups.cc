#include "client/connection/best_lookups.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "grpcpp/grpcpp.h"

namespace hone::client {
namespace {

constexpr size_t kMaxInFlight = 64;

struct LookupCall {
  grpc::ClientContext context;
  v1::Best answer;
};

}  // namespace

absl::StatusOr<std::vector<std::optional<v1::Best>>> BestLookups::Run() {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.resize(requests_.size());
    std::iota(waiting_.rbegin(), waiting_.rend(), 0);
  }
  absl::Time progress = absl::Now();
  while (true) {
    HONE_ASSIGN_OR_RETURN(const Round round, RunUntilRefused());
    if (round.is_last) break;
    const absl::Time now = absl::Now();
    if (round.answered > 0) progress = now;
    if (now - progress > limit_) return round.refusal;
    absl::SleepFor(std::min(*rpc::RetryAfter(round.refusal), limit_));
  }
  absl::MutexLock lock(&mutex_);
  return std::move(answers_);
}

absl::StatusOr<BestLookups::Round> BestLookups::RunUntilRefused() {
  std::vector<size_t> first;
  {
    absl::MutexLock lock(&mutex_);
    round_ = Round();
    while (!waiting_.empty() && first.size() < kMaxInFlight) {
      first.push_back(waiting_.back());
      waiting_.pop_back();
    }
    in_flight_ = first.size();
  }
  for (const size_t index : first) Start(index);
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(+[](size_t* in_flight) { return *in_flight == 0; }, &in_flight_));
  HONE_RETURN_IF_ERROR(error_);
  round_.is_last = waiting_.empty();
  return round_;
}

void BestLookups::Start(size_t index) {
  auto call = std::make_shared<LookupCall>();
  rpc::SetDeadline(call->context, limit_);
  stub_.async()->LookupBest(&call->context, &requests_[index], &call->answer,
                            [this, index, call](const grpc::Status& status) {
                              OnDone(index, rpc::FromGrpc(status), call->answer);
                            });
}

void BestLookups::OnDone(size_t index, const absl::Status& status, v1::Best& answer) {
  size_t next = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok() || absl::IsNotFound(status)) {
      if (status.ok()) answers_[index] = std::move(answer);
      ++round_.answered;
    } else if (rpc::RetryAfter(status).has_value()) {
      round_.refusal = status;
      waiting_.push_back(index);
    } else {
      error_.Update(status);
    }
    if (!error_.ok() || !round_.refusal.ok() || waiting_.empty()) {
      --in_flight_;
      return;
    }
    next = waiting_.back();
    waiting_.pop_back();
  }
  Start(next);
}

}  // namespace hone::client
