#include "server/fleet/work_queue.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

namespace hone::fleet {

int64_t WorkQueue::Add(WorkItem work, WorkDone done) {
  const int64_t id = next_id_++;
  JobItems& job = jobs_[work.job_id];
  if (job.order == 0) job.order = id;
  job.owner = work.owner;
  job.items.insert(id);
  ++owners_[work.owner];
  auto item = std::make_unique<TrackedItem>();
  item->id = id;
  item->artifact_digest = work.artifact_digest;
  item->builder = work.builder;
  if (!work.artifact_digest.empty()) item->builder_id = work.worker_id;
  item->work = std::make_shared<const WorkItem>(std::move(work));
  item->done = std::move(done);
  Wait(*item, /*first=*/false);
  items_[id] = std::move(item);
  return id;
}

void WorkQueue::Wait(const TrackedItem& item, bool first) {
  const Lane lane = item.lane();
  fresh_.insert(lane);
  std::deque<int64_t>& queue = waiting_[lane][item.work->job_id];
  first ? queue.push_front(item.id) : queue.push_back(item.id);
  ++waiting_count_;
  suspects_ += item.suspect ? 1 : 0;
}

void WorkQueue::Unwait(const TrackedItem& item) {
  auto lane = waiting_.find(item.lane());
  auto job = lane->second.find(item.work->job_id);
  job->second.erase(std::find(job->second.begin(), job->second.end(), item.id));
  --waiting_count_;
  suspects_ -= item.suspect ? 1 : 0;
  if (!job->second.empty()) return;
  lane->second.erase(job);
  if (lane->second.empty()) waiting_.erase(lane);
}

TrackedItem* WorkQueue::Take(absl::FunctionRef<bool(const Lane&)> open,
                             absl::FunctionRef<bool(const TrackedItem&)> fits) {
  using Order = std::tuple<FairShare::Turn, int, int64_t>;
  TrackedItem* taken = nullptr;
  Order best;
  for (const auto& [lane, jobs] : waiting_) {
    if (!open(lane)) continue;
    for (const auto& [job_id, queue] : jobs) {
      const JobItems& job = jobs_.at(job_id);
      const FairShare::Turn turn = shares_.TurnOf(job.owner, job_id);
      if (taken != nullptr && turn > std::get<0>(best)) continue;
      for (const int64_t id : queue) {
        TrackedItem& item = *items_.at(id);
        if (!fits(item)) continue;
        const Order order(turn, -item.work->priority, job.order);
        if (taken == nullptr || order < best) {
          taken = &item;
          best = order;
        }
        break;
      }
    }
  }
  if (taken == nullptr) return nullptr;
  Unwait(*taken);
  shares_.Charge(taken->work->owner, taken->work->job_id, taken->work->priority);
  return taken;
}

void WorkQueue::Requeue(TrackedItem& item) {
  item.lease_id.clear();
  Wait(item, /*first=*/true);
}

void WorkQueue::Rebuild(TrackedItem& item) {
  Unwait(item);
  item.artifact_digest.clear();
  Wait(item, /*first=*/true);
}

TrackedItem* WorkQueue::Find(int64_t id) const {
  auto found = items_.find(id);
  return found == items_.end() ? nullptr : found->second.get();
}

TrackedItem WorkQueue::Remove(int64_t id) {
  auto found = items_.find(id);
  TrackedItem item = std::move(*found->second);
  items_.erase(found);
  if (item.lease_id.empty()) Unwait(item);
  auto job = jobs_.find(item.work->job_id);
  job->second.items.erase(id);
  if (job->second.items.empty()) jobs_.erase(job);
  auto owner = owners_.find(item.work->owner);
  if (--owner->second == 0) owners_.erase(owner);
  return item;
}

std::vector<int64_t> WorkQueue::ItemsOf(const std::string& job_id) const {
  auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return {};
  return {job->second.items.begin(), job->second.items.end()};
}

void WorkQueue::RefreshAll() {
  for (const auto& [lane, jobs] : waiting_) fresh_.insert(lane);
}

std::vector<Lane> WorkQueue::Lanes() const {
  std::vector<Lane> lanes;
  for (const auto& [lane, jobs] : waiting_) lanes.push_back(lane);
  return lanes;
}

std::vector<int64_t> WorkQueue::WaitingIn(const Lane& lane) const {
  std::vector<int64_t> ids;
  auto found = waiting_.find(lane);
  if (found == waiting_.end()) return ids;
  for (const auto& [job, queue] : found->second) ids.insert(ids.end(), queue.begin(), queue.end());
  return ids;
}

int64_t WorkQueue::items(const std::string& owner) const {
  auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : found->second;
}

}  // namespace hone::fleet
