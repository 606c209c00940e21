#include "client/lib/best_lookups.h"

#include <algorithm>
#include <memory>
#include <utility>

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
  const size_t first = std::min(kMaxInFlight, requests_.size());
  {
    absl::MutexLock lock(&mutex_);
    next_ = in_flight_ = first;
  }
  for (size_t i = 0; i < first; ++i) Start(i);
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(+[](size_t* in_flight) { return *in_flight == 0; }, &in_flight_));
  HONE_RETURN_IF_ERROR(error_);
  return std::move(answers_);
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
    if (status.ok()) {
      answers_[index] = std::move(answer);
    } else if (!absl::IsNotFound(status)) {
      error_.Update(status);
    }
    if (!error_.ok() || next_ == requests_.size()) {
      --in_flight_;
      return;
    }
    next = next_++;
  }
  Start(next);
}

}  // namespace hone::client
