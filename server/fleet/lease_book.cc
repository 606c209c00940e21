#include "server/fleet/lease_book.h"

#include <algorithm>
#include <memory>
#include <random>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hone::fleet {
namespace {

// With more names than this, the entries at positions up to `now`, which have no effect, are
// removed.
constexpr size_t kManyNames = 256;

double Cost(int priority) {
  return priority >= kHighPriority ? 1.0 / 16 : priority <= kLowPriority ? 1.0 : 1.0 / 4;
}

// Ended leases are removed from the queue of deadlines when it has more entries than twice the
// number of leases plus this number.
constexpr size_t kEndedLeases = 1024;

std::string RandomInstance() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

}  // namespace

double FairShare::Line::Of(const std::string& name) const {
  auto found = behind.find(name);
  return found == behind.end() ? now : std::max(now, found->second);
}

void FairShare::Line::Move(const std::string& name, double by) {
  now = Of(name);
  behind[name] = now + by;
  if (behind.size() > kManyNames) {
    absl::erase_if(behind, [this](const auto& entry) { return entry.second <= now; });
  }
}

FairShare::Turn FairShare::TurnOf(const std::string& owner, const std::string& job) const {
  auto line = jobs_.find(owner);
  return {owners_.Of(owner), line == jobs_.end() ? 0 : line->second.Of(job)};
}

void FairShare::Charge(const std::string& owner, const std::string& job, int priority) {
  owners_.Move(owner, Cost(priority));
  jobs_[owner].Move(job, Cost(priority));
  if (jobs_.size() > kManyNames) {
    absl::erase_if(jobs_,
                   [this](const auto& line) { return !owners_.behind.contains(line.first); });
  }
}

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

LeaseBook::LeaseBook(const FleetOptions* options)
    : options_(*options),
      instance_(options->instance.empty() ? RandomInstance() : options->instance) {}

absl::Status LeaseBook::CheckRoom(const std::string& owner) const {
  if (const int64_t own = queue_.items(owner); own >= options_.max_items_per_owner) {
    return absl::ResourceExhaustedError(absl::StrCat(
        own, " candidates of ", owner.empty() ? "this user" : absl::StrCat("'", owner, "'"),
        " are waiting or being measured, which is the limit for one user"));
  }
  if (queue_.items() < options_.max_items) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(queue_.items(),
                   " candidates are waiting or being measured, which is the limit of this server"));
}

TrackedItem LeaseBook::Remove(int64_t id) {
  if (const std::string lease_id = queue_.Find(id)->lease_id; !lease_id.empty()) Erase(lease_id);
  return queue_.Remove(id);
}

Lease* LeaseBook::Grant(const std::string& worker_id, absl::Time now,
                        absl::FunctionRef<bool(const Lane&)> open,
                        absl::FunctionRef<bool(const TrackedItem&)> fits,
                        absl::FunctionRef<bool(const Lane&)> runs) {
  TrackedItem* item = queue_.Take(open, fits);
  if (item == nullptr) return nullptr;
  Lane to_run = item->lane();
  const bool build = std::exchange(to_run.build, false);
  item->lease_id = absl::StrCat(instance_, "-", next_lease_++);
  Lease& lease = leases_[item->lease_id];
  lease = {.id = item->lease_id,
           .item = item->id,
           .worker_id = worker_id,
           .build = build,
           .run = !build || (!item->work->only_digest && runs(to_run)),
           .alone = item->suspect,
           .granted = now,
           .deadline = now + options_.lease_limit,
           .phase_since = now};
  by_worker_[worker_id].insert(lease.id);
  deadlines_.emplace_back(lease.deadline, lease.id);
  ++counts_.granted;
  return &lease;
}

Lease* LeaseBook::Find(const std::string& lease_id) {
  auto found = leases_.find(lease_id);
  return found == leases_.end() ? nullptr : &found->second;
}

const std::set<std::string>& LeaseBook::Of(const std::string& worker_id) const {
  static const auto& none = *new std::set<std::string>();
  auto found = by_worker_.find(worker_id);
  return found == by_worker_.end() ? none : found->second;
}

Lease LeaseBook::Erase(const std::string& lease_id) {
  auto found = leases_.find(lease_id);
  Lease lease = std::move(found->second);
  leases_.erase(found);
  auto own = by_worker_.find(lease.worker_id);
  own->second.erase(lease.id);
  if (own->second.empty()) by_worker_.erase(own);
  return lease;
}

std::vector<std::string> LeaseBook::Overdue(absl::Time now) {
  std::vector<std::string> overdue;
  while (!deadlines_.empty() && deadlines_.front().first <= now) {
    if (leases_.contains(deadlines_.front().second)) {
      overdue.push_back(std::move(deadlines_.front().second));
    }
    deadlines_.pop_front();
  }
  if (deadlines_.size() > 2 * leases_.size() + kEndedLeases) {
    std::erase_if(deadlines_,
                  [this](const auto& entry) { return !leases_.contains(entry.second); });
  }
  return overdue;
}

std::optional<LeaseBook::GivenUp> LeaseBook::End(const std::string& lease_id, LeaseEnd end) {
  const Lease lease = Erase(lease_id);
  TrackedItem& item = *queue_.Find(lease.item);
  ++counts_.requeued;
  if (end.counts) {
    ++item.attempts;
    item.last_failure = std::move(end.why);
  }
  if (end.killed) item.killed.push_back(lease.worker_id);
  std::string why;
  if (static_cast<int>(item.killed.size()) >= options_.max_killed_workers) {
    why = absl::StrCat("these workers were lost while running it: ",
                       absl::StrJoin(item.killed, ", "));
    ++counts_.poisoned;
  } else if (item.attempts >= options_.max_attempts) {
    why = absl::StrCat(item.attempts,
                       " leases ended without an answer; the last one: ", item.last_failure);
  } else {
    // A suspect is retried alone, so that another loss shows that it is to blame.
    item.suspect = item.suspect || end.killed || end.suspect;
    queue_.Requeue(item);
    return std::nullopt;
  }
  return GivenUp{queue_.Remove(lease.item), lease.worker_id, std::move(why)};
}

std::vector<LeaseBook::GivenUp> LeaseBook::EndAllOf(const std::string& worker_id,
                                                    const std::string& why) {
  const std::set<std::string> ids = Of(worker_id);
  const auto ran = [this](const std::string& id) {
    return leases_.at(id).phase == LeasePhase::kRunning;
  };
  const auto running = std::count_if(ids.begin(), ids.end(), ran);
  std::vector<GivenUp> given_up;
  for (const std::string& id : ids) {
    // If several ran at once, the culprit is unknown. An item that was lost twice may have begun to
    // run after the worker's last call.
    LeaseEnd end{.killed = ran(id) && running == 1,
                 .suspect = ran(id) || ItemOf(leases_.at(id)).attempts >= 1,
                 .why = why};
    if (auto item = End(id, std::move(end)); item.has_value()) {
      given_up.push_back(*std::move(item));
    }
  }
  return given_up;
}

void LeaseBook::EndBuild(const Lease& lease, const record::MeasureResult& result,
                         BuilderVersion builder) {
  TrackedItem& item = ItemOf(lease);
  item.artifact_digest = result.artifact_digest;
  item.facts = result.facts;
  item.builder = std::move(builder);
  item.builder_id = lease.worker_id;
  Erase(lease.id);
  queue_.Requeue(item);
}

WorkQueue LeaseBook::Clear() {
  leases_.clear();
  by_worker_.clear();
  deadlines_.clear();
  return std::exchange(queue_, WorkQueue());
}

}  // namespace hone::fleet
