#include "worker/agent/uploader.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "worker/agent/call_schedule.h"

namespace hone::agent {
namespace {

// How long an upload is retried while the server has no room for it.
constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr absl::Duration kPause = absl::Milliseconds(50);

}  // namespace

Uploader::Uploader(ServerLink* link, BoundedDir* artifacts)
    : link_(link), artifacts_(artifacts), thread_([this] { Loop(); }) {}

void Uploader::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Uploader::IsStopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

absl::Status Uploader::Upload(const std::string& name, const std::string& bytes) {
  const absl::Time give_up = SteadyNow() + kPatience;
  for (int refusals = 0;; ++refusals) {
    absl::Status sent = link_->Upload(name, bytes);
    const absl::Time again = SteadyNow() + BackoffAfter(refusals);
    if (!absl::IsResourceExhausted(sent) || again > give_up) return sent;
    while (SteadyNow() < again) {
      if (IsStopping()) return sent;
      absl::SleepFor(kPause);
    }
  }
}

absl::Status Uploader::UploadArtifact(const std::string& digest) {
  if (!Digest::FromHex(digest).ok() || !artifacts_->Pin(digest)) {
    return absl::NotFoundError("it is no longer stored on this worker");
  }
  const absl::StatusOr<std::string> bytes = ReadFile(artifacts_->PathOf(digest));
  absl::Status sent = bytes.ok() ? Upload(digest, *bytes) : bytes.status();
  artifacts_->Unpin(digest);
  return sent;
}

void Uploader::Enqueue(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  if (std::find(queue_.begin(), queue_.end(), digest) == queue_.end()) queue_.push_back(digest);
}

void Uploader::Loop() {
  for (;;) {
    std::string digest;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      digest = queue_.front();
    }
    if (const absl::Status sent = UploadArtifact(digest); !sent.ok()) {
      spdlog::warn("artifact {} was not uploaded: {}", digest, std::string(sent.message()));
    }
    absl::MutexLock lock(&mutex_);
    queue_.pop_front();
  }
}

}  // namespace hone::agent
