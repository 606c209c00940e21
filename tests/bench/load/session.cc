#include "tests/bench/load/session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/sha256.h"
#include "common/rpc/channel.h"
#include "tests/bench/load/simulated.h"

namespace hone::load {
namespace {

constexpr absl::Duration kNewsInterval = absl::Milliseconds(5);
constexpr absl::Duration kAnswerPatience = absl::Seconds(1);
constexpr absl::Duration kBackoff = absl::Milliseconds(500);
constexpr absl::Duration kCallMargin = absl::Seconds(10);
constexpr size_t kMaxCalls = 2;
constexpr size_t kKeptArtifacts = 4096;

}  // namespace

Session::Session(SessionOptions options, const std::shared_ptr<grpc::Channel>& channel,
                 const Rooms& rooms)
    : options_(std::move(options)), rooms_(rooms), stub_(v1::WorkerService::NewStub(channel)) {}

void Session::Start() { Step(); }

void Session::Step() {
  std::shared_ptr<Call> call;
  int64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time next = NextCall();
    if (absl::Now() < next) {
      if (next >= waking_) return;
      waking_ = next;
      return rooms_.timers->At(next, [this, next] {
        {
          absl::MutexLock lock(&mutex_);
          if (waking_ == next) waking_ = absl::InfiniteFuture();
        }
        Step();
      });
    }
    call = MakeCall(&number);
  }
  ++rooms_.counts->calls;
  // Without the mutex, because the callback may run inside.
  Call* const raw = call.get();
  stub_->async()->Synchronize(&raw->context, &raw->request, &raw->response,
                              [this, call, number](const grpc::Status& status) {
                                Answered(number, call->response, status);
                              });
}

absl::Time Session::NextCall() const {
  if (calls_.size() >= kMaxCalls) return absl::InfiniteFuture();
  absl::Time next = next_call_;
  if (2 * static_cast<int>(held_.size()) >= options_.slots) next = std::max(next, gather_until_);
  if (calls_.empty()) return news_ ? next : std::max(next_call_, next_idle_call_);
  if (!news_) return absl::InfiniteFuture();
  for (const auto& [number, call] : calls_) {
    if (call->request.finished_size() > 0) next = std::max(next, call->begun + kAnswerPatience);
  }
  return next;
}

std::shared_ptr<Session::Call> Session::MakeCall(int64_t* number) {
  auto call = std::make_shared<Call>();
  v1::SynchronizeRequest& request = call->request;
  request.set_worker_id(options_.worker_id);
  request.set_epoch("1");
  *request.mutable_capabilities() = *rooms_.device;
  int builds = options_.slots, runs = options_.slots;
  for (const auto& [id, held] : held_) {
    v1::HeldLease& lease = *request.add_held();
    lease.set_lease_id(id);
    lease.set_phase(held.phase);
    --(held.lease.build() ? builds : runs);
  }
  for (auto& [id, finished] : finished_) {
    if (finished.call != 0) continue;
    *request.add_finished() = finished.message;
    finished.call = last_call_ + 1;
  }
  request.set_free_build_slots(std::max(builds, 0));
  request.set_free_run_slots(std::max(runs, 0));
  request.set_max_wait_ms(absl::ToInt64Milliseconds(heartbeat_));
  rpc::SetDeadline(call->context, heartbeat_ + kCallMargin);
  news_ = false;
  call->begun = absl::Now();
  next_call_ = call->begun + kNewsInterval;
  *number = ++last_call_;
  calls_[*number] = call;
  return call;
}

void Session::Answered(int64_t number, const v1::SynchronizeResponse& response,
                       const grpc::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = absl::Now();
    const absl::Time begun = calls_.at(number)->begun;
    calls_.erase(number);
    for (auto& [id, finished] : finished_) {
      if (finished.call == number) finished.call = 0;
    }
    if (status.ok()) {
      Apply(response, now);
      if (number == last_call_) {
        next_idle_call_ = now + absl::Milliseconds(response.next_call_ms());
        gather_until_ = begun + absl::Milliseconds(response.gather_ms());
      }
    } else {
      if (rooms_.counts->failed_calls++ == 0) {
        std::fprintf(stderr, "a call failed: %s\n", status.error_message().c_str());
      }
      news_ = true;
      next_call_ = now + kBackoff;
    }
  }
  Step();
}

void Session::Apply(const v1::SynchronizeResponse& response, absl::Time now) {
  if (response.heartbeat_ms() > 0) heartbeat_ = absl::Milliseconds(response.heartbeat_ms());
  if (!response.refused().empty()) ++rooms_.counts->refusals;
  for (const std::string& lease_id : response.durable()) {
    auto finished = finished_.find(lease_id);
    if (finished == finished_.end()) continue;
    ++rooms_.counts->acknowledged;
    rooms_.counts->acknowledge.Add(now - finished->second.since);
    finished_.erase(finished);
  }
  for (const std::string& lease_id : response.cancel()) {
    if (held_.erase(lease_id) == 0) continue;
    ++rooms_.counts->cancelled;
    std::erase(ready_, lease_id);
  }
  for (const v1::Lease& lease : response.start()) Take(lease);
  for (const std::string& digest : response.keep_artifacts()) {
    auto built = built_.find(digest);
    if (built != built_.end()) rooms_.transfers->Upload(digest, ArtifactBytes(built->second));
  }
}

void Session::Take(const v1::Lease& lease) {
  const std::string& id = lease.lease_id();
  if (held_.contains(id) || finished_.contains(id)) return;
  Held& held = held_[id];
  held.lease = lease;
  held.phase = v1::LEASE_PHASE_BUILDING;
  if (lease.build()) {
    Build(held);
    return Ready(id);
  }
  held.artifact_digest = lease.artifact_digest();
  if (built_.contains(held.artifact_digest) || fetched_.contains(held.artifact_digest)) {
    return Ready(id);
  }
  rooms_.transfers->Download(held.artifact_digest, [this, id](bool came) {
    {
      absl::MutexLock lock(&mutex_);
      auto waiting = held_.find(id);
      if (waiting == held_.end()) return;
      if (came) {
        fetched_.insert(waiting->second.artifact_digest);
        return Ready(id);
      }
      v1::MeasureResult result;
      result.set_outcome(v1::OUTCOME_DEVICE_LOST);
      result.set_detail("the artifact did not come");
      Finish(id, std::move(result));
    }
    Step();
  });
}

void Session::Build(Held& held) {
  std::string name = ArtifactName(held.lease);
  held.artifact_digest = Sha256Of(ArtifactBytes(name));
  if (!built_.emplace(held.artifact_digest, std::move(name)).second) return;
  built_order_.push_back(held.artifact_digest);
  if (built_order_.size() <= kKeptArtifacts) return;
  built_.erase(built_order_.front());
  built_order_.pop_front();
}

void Session::Ready(const std::string& lease_id) {
  ready_.push_back(lease_id);
  if (!running_) RunNext();
}

void Session::RunNext() {
  running_ = !ready_.empty();
  if (!running_) return;
  const std::string id = std::move(ready_.front());
  ready_.pop_front();
  held_.at(id).phase = v1::LEASE_PHASE_RUNNING;
  Rng rng(DigestOf(id).low);
  const absl::Duration takes = options_.run_time * (0.8 + 0.4 * rng.Uniform());
  rooms_.timers->At(absl::Now() + takes, [this, id] { Ran(id); });
}

void Session::Ran(const std::string& lease_id) {
  {
    absl::MutexLock lock(&mutex_);
    if (auto held = held_.find(lease_id); held != held_.end()) {  // otherwise it was cancelled
      Finish(lease_id, SimulatedResult(held->second.lease, held->second.artifact_digest,
                                       DigestOf(options_.worker_id).low + ++runs_));
    }
    RunNext();
  }
  Step();
}

void Session::Finish(const std::string& lease_id, v1::MeasureResult result) {
  Finished& finished = finished_[lease_id];
  finished.since = absl::Now();
  finished.message.set_lease_id(lease_id);
  *finished.message.mutable_result() = std::move(result);
  held_.erase(lease_id);
  ++rooms_.counts->finished;
  news_ = true;
}

}  // namespace hone::load
