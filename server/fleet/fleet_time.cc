// What the fleet does when time passes.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/fleet/fleet.h"

namespace hone::fleet {
namespace {

// Ended leases may stand in the queue of deadlines beside as many others; then they are taken out.
constexpr size_t kEndedLeases = 1024;

}  // namespace

void Fleet::Tick() {
  After after;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_->Now();
    bool forgotten = false;
    for (auto it = workers_.begin(); it != workers_.end();) {
      Worker& worker = it->second;
      const bool silent =
          worker.call.token == 0 && worker.last_seen + options_.silence_limit() <= now;
      if (silent && worker.connected) {
        LoseWorker(
            worker,
            absl::StrCat("not heard of for ", absl::FormatDuration(options_.silence_limit())),
            after);
      }
      const bool forget = !worker.connected && worker.last_seen + options_.forget_after <= now;
      forgotten = forgotten || forget;
      it = forget ? workers_.erase(it) : std::next(it);
    }
    if (forgotten) CountRunners();
    while (!lease_deadlines_.empty() && lease_deadlines_.front().first <= now) {
      const std::string lease_id = std::move(lease_deadlines_.front().second);
      lease_deadlines_.pop_front();
      auto lease = leases_.find(lease_id);
      if (lease == leases_.end()) continue;
      const std::string worker_id = lease->second.worker_id;
      Worker& worker = workers_.at(worker_id);
      worker.cancel.push_back(lease_id);
      EndLease(lease_id,
               {.why = absl::StrCat(worker_id, " did not end it within ",
                                    absl::FormatDuration(options_.lease_limit))},
               after);
      Wake(worker_id, worker, after);
    }
    if (lease_deadlines_.size() > 2 * leases_.size() + kEndedLeases) {
      std::erase_if(lease_deadlines_,
                    [this](const auto& entry) { return !leases_.contains(entry.second); });
    }
    ExpireItems(now, after);
    ExpireTargetWaits(now, after);
    Offer(after);
    Steal(now, after);
    AnswerCalls(now, after);
  }
  for (auto& call : after) std::move(call)();
}

void Fleet::AnswerCalls(absl::Time now, After& after) {
  for (auto& [id, worker] : workers_) {
    if (worker.call.token == 0) continue;
    const bool keep_due = std::any_of(worker.keep.begin(), worker.keep.end(),
                                      [now](const auto& entry) { return entry.second <= now; });
    if (keep_due) Wake(id, worker, after);
    if (worker.call.deadline <= now) Answer(id, worker, SynchronizeReply(), after);
  }
}

void Fleet::ExpireItems(absl::Time now, After& after) {
  for (const Lane& lane : queue_.Lanes()) {
    if (lane.build) continue;
    for (int64_t id : queue_.WaitingIn(lane)) {
      TrackedItem& item = *queue_.Find(id);
      if (artifacts_->Has(item.artifact_digest)) continue;
      auto builder = workers_.find(item.builder_id);
      const bool there = builder != workers_.end() && builder->second.connected &&
                         builder->second.capabilities.can_run &&
                         builder->second.capabilities.target_key == lane.target_key;
      if (there) continue;
      if (item.work.artifact_digest.empty()) {
        queue_.Rebuild(item);
        fresh_.insert(item.lane());
        continue;
      }
      const absl::Status gone = absl::NotFoundError(
          absl::StrCat("artifact ", item.artifact_digest, " is neither here nor at a worker"));
      Deliver(queue_.Remove(id), gone, "", after);
    }
  }
  std::map<Lane, absl::Time> unsatisfied;
  for (const Lane& lane : queue_.Lanes()) {
    const std::string why = WhyUnsatisfied(lane);
    if (why.empty()) continue;
    auto known = unsatisfied_.find(lane);
    const absl::Time since = known == unsatisfied_.end() ? now : known->second;
    unsatisfied[lane] = since;
    if (since + options_.unsatisfied_limit > now) continue;
    for (int64_t id : queue_.WaitingIn(lane)) {
      if (queue_.Find(id)->submitted + options_.unsatisfied_limit > now) continue;
      Deliver(queue_.Remove(id), absl::FailedPreconditionError(why), "", after);
    }
  }
  unsatisfied_ = std::move(unsatisfied);
}

void Fleet::ExpireTargetWaits(absl::Time now, After& after) {
  for (auto it = target_waits_.begin(); it != target_waits_.end();) {
    if (it->deadline > now) {
      ++it;
      continue;
    }
    const absl::Status why =
        absl::FailedPreconditionError(ChooseTarget(it->key).status().message());
    after.push_back([done = std::move(it->done), why]() mutable { std::move(done)(why); });
    it = target_waits_.erase(it);
  }
}

}  // namespace hone::fleet
