#include "client/connection/job_watch.h"

#include <utility>

#include "common/rpc/channel.h"
#include "common/rpc/status.h"

namespace hone::client {

JobWatch::JobWatch(v1::TuningService::Stub& stub, const std::string& id, absl::Duration limit) {
  request_.set_id(id);
  rpc::SetDeadline(context_, limit);
  stub.async()->WatchJob(&context_, &request_, this);
  StartRead(&incoming_);
  StartCall();
}

JobWatch::~JobWatch() {
  context_.TryCancel();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&done_));
}

std::optional<v1::Job> JobWatch::Next(absl::Duration limit) {
  absl::MutexLock lock(&mutex_);
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return newest_.has_value() || done_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&something), limit);
  return std::exchange(newest_, std::nullopt);
}

bool JobWatch::Ended() {
  absl::MutexLock lock(&mutex_);
  return done_ && !newest_.has_value();
}

absl::Status JobWatch::status() {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void JobWatch::OnReadDone(bool ok) {
  if (!ok) return;
  {
    absl::MutexLock lock(&mutex_);
    newest_ = std::move(incoming_);
  }
  incoming_.Clear();
  StartRead(&incoming_);
}

void JobWatch::OnDone(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  status_ = rpc::FromGrpc(status);
  done_ = true;
}

}  // namespace hone::client
