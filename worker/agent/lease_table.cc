#include "worker/agent/lease_table.h"

#include <algorithm>

namespace hone::agent {
namespace {

constexpr size_t kRememberedDone = 4096;
constexpr int kMaxFinishedPerCall = 512;

}  // namespace

void LeaseTable::Describe(bool draining, v1::SynchronizeRequest& request) const {
  int builds = capacity_.builds;
  int runs = capacity_.runs;
  for (const auto& [id, work] : held_) {
    v1::HeldLease& held = *request.add_held();
    held.set_lease_id(id);
    held.set_phase(work->phase);
    --(work->lease.build() ? builds : runs);
  }
  for (const bool answered : {false, true}) {  // unsent results first
    for (const auto& [id, result] : finished_) {
      if (request.finished_size() == kMaxFinishedPerCall) break;
      if (result.answered != answered || (result.call != 0 && !draining)) continue;
      *request.add_finished() = result.message;
    }
  }
  request.set_free_build_slots(draining ? 0 : std::max(builds, 0));
  request.set_free_run_slots(draining ? 0 : std::max(runs, 0));
  request.set_draining(draining);
}

void LeaseTable::CallBegins(int64_t number, const v1::SynchronizeRequest& request) {
  for (const v1::FinishedLease& finished : request.finished()) {
    finished_.at(finished.lease_id()).call = number;
  }
}

void LeaseTable::CallEnds(int64_t number, bool answered) {
  for (auto& [id, result] : finished_) {
    if (result.call != number) continue;
    result.call = 0;
    result.answered = answered;
  }
}

bool LeaseTable::HasNews() const {
  return std::any_of(finished_.begin(), finished_.end(), [](const auto& entry) {
    return entry.second.call == 0 && !entry.second.answered;
  });
}

std::vector<std::string> LeaseTable::Apply(const v1::SynchronizeResponse& response,
                                           absl::Time now) {
  for (const std::string& id : response.durable()) {
    if (finished_.erase(id) == 0) continue;
    if (done_.insert(id).second) done_order_.push_back(id);
    if (done_order_.size() > kRememberedDone) {
      done_.erase(done_order_.front());
      done_order_.pop_front();
    }
  }
  for (const v1::Lease& lease : response.start()) {
    const std::string& id = lease.lease_id();
    if (held_.contains(id) || finished_.contains(id) || done_.contains(id)) continue;
    auto work = std::make_shared<HeldWork>();
    work->lease = lease;
    work->artifact_digest = lease.artifact_digest();
    work->deadline = lease.deadline_ms() > 0 ? now + absl::Milliseconds(lease.deadline_ms())
                                             : absl::InfiniteFuture();
    held_[id] = work;
    to_prepare_.push_back(work);
    ++preparing_;
    if (lease.run()) {
      WorkloadUse& use = workloads_[ReferenceKeyOf(lease)];
      use.digest = lease.workload_digest();
      use.text = lease.workload();
      use.inputs_digest = lease.inputs_digest();
      ++use.leases;
    }
  }
  std::vector<std::string> released;
  for (const std::string& id : response.cancel()) {
    const auto found = held_.find(id);
    if (found == held_.end()) continue;
    const std::shared_ptr<HeldWork> work = found->second;
    work->cancelled = true;
    if (std::erase(to_prepare_, work) > 0) {
      --preparing_;
      Forget(work);
    } else if (std::erase(to_run_, work) > 0) {
      released.push_back(work->artifact_digest);
      Forget(work);
    }
  }
  return released;
}

std::shared_ptr<HeldWork> LeaseTable::NextToPrepare() {
  if (to_prepare_.empty()) return nullptr;
  std::shared_ptr<HeldWork> work = to_prepare_.front();
  to_prepare_.pop_front();
  work->phase = v1::LEASE_PHASE_BUILDING;
  return work;
}

void LeaseTable::Prepared(const std::shared_ptr<HeldWork>& work, absl::Time now) {
  --preparing_;
  if (work->cancelled) {
    Forget(work);
    return;
  }
  work->ready = now;
  to_run_.push_back(work);
}

std::vector<std::shared_ptr<HeldWork>> LeaseTable::NextToRun(int max) {
  std::vector<std::shared_ptr<HeldWork>> batch;
  if (to_run_.empty()) return batch;
  const std::string key = ReferenceKeyOf(to_run_.front()->lease);
  for (auto it = to_run_.begin(); it != to_run_.end() && static_cast<int>(batch.size()) < max;) {
    if (ReferenceKeyOf((*it)->lease) == key) {
      batch.push_back(*it);
      it = to_run_.erase(it);
    } else {
      ++it;
    }
  }
  return batch;
}

bool LeaseTable::MoreToRunIsPreparing() const {
  if (to_run_.empty()) return false;
  const std::string key = ReferenceKeyOf(to_run_.front()->lease);
  const auto ready = std::count_if(
      to_run_.begin(), to_run_.end(),
      [&](const std::shared_ptr<HeldWork>& work) { return ReferenceKeyOf(work->lease) == key; });
  return workloads_.at(key).leases > ready;
}

absl::Time LeaseTable::oldest_ready() const {
  return to_run_.empty() ? absl::InfiniteFuture() : to_run_.front()->ready;
}

void LeaseTable::Forget(const std::shared_ptr<HeldWork>& work) {
  held_.erase(work->lease.lease_id());
  if (!work->lease.run()) return;
  const auto use = workloads_.find(ReferenceKeyOf(work->lease));
  if (--use->second.leases == 0) workloads_.erase(use);
}

bool LeaseTable::Finish(const std::shared_ptr<HeldWork>& work, v1::FinishedLease finished) {
  // A lease that ends before it is ready ends during preparation.
  if (work->ready == absl::Time()) --preparing_;
  Forget(work);
  if (work->cancelled) return false;
  AddFinished(std::move(finished));
  return true;
}

void LeaseTable::AddFinished(v1::FinishedLease finished) {
  const std::string id = finished.lease_id();
  finished_[id] = {.message = std::move(finished)};
}

}  // namespace hone::agent
