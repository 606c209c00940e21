#include "server/fleet/work_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hone::fleet {

int64_t WorkQueue::Add(WorkItem work, WorkDone done) {
  const int64_t id = next_id_++;
  JobQueue& job = jobs_[work.job_id];
  if (job.order == 0) job.order = id;
  job.priority = work.priority;
  job.waiting.push_back(id);
  TrackedItem& item = items_[id];
  item.id = id;
  item.artifact_digest = work.artifact_digest;
  item.work = std::move(work);
  item.done = std::move(done);
  return id;
}

TrackedItem* WorkQueue::Take(const std::function<bool(const TrackedItem&)>& fits) {
  std::vector<JobQueue*> order;
  for (auto& [id, job] : jobs_) {
    if (!job.waiting.empty()) order.push_back(&job);
  }
  std::sort(order.begin(), order.end(), [](const JobQueue* a, const JobQueue* b) {
    return std::tuple(-a->priority, a->leased, a->order) <
           std::tuple(-b->priority, b->leased, b->order);
  });
  for (JobQueue* job : order) {
    for (auto it = job->waiting.begin(); it != job->waiting.end(); ++it) {
      TrackedItem& item = items_.at(*it);
      if (!fits(item)) continue;
      job->waiting.erase(it);
      ++job->leased;
      return &item;
    }
  }
  return nullptr;
}

void WorkQueue::Requeue(TrackedItem& item) {
  JobQueue& job = jobs_.at(item.work.job_id);
  --job.leased;
  item.lease_id.clear();
  job.waiting.push_front(item.id);
}

TrackedItem* WorkQueue::Find(int64_t id) {
  auto found = items_.find(id);
  return found == items_.end() ? nullptr : &found->second;
}

TrackedItem WorkQueue::Remove(int64_t id) {
  auto found = items_.find(id);
  auto job = jobs_.find(found->second.work.job_id);
  auto& waiting = job->second.waiting;
  if (auto it = std::find(waiting.begin(), waiting.end(), id); it != waiting.end()) {
    waiting.erase(it);
  } else {
    --job->second.leased;
  }
  TrackedItem item = std::move(found->second);
  items_.erase(found);
  if (waiting.empty() && job->second.leased == 0) jobs_.erase(job);
  return item;
}

std::vector<int64_t> WorkQueue::ItemsOf(const std::string& job_id) const {
  std::vector<int64_t> ids;
  for (const auto& [id, item] : items_) {
    if (item.work.job_id == job_id) ids.push_back(id);
  }
  return ids;
}

std::vector<int64_t> WorkQueue::WaitingItems() const {
  std::vector<int64_t> ids;
  for (const auto& [name, job] : jobs_) {
    ids.insert(ids.end(), job.waiting.begin(), job.waiting.end());
  }
  return ids;
}

}  // namespace hone::fleet
