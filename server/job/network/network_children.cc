#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/job/actor/job_actor.h"
#include "server/job/job_book.h"
#include "server/job/network/network_job.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// A task is closed after this many batches without a valid result.
constexpr int64_t kMostFruitlessBatches = 4;

// The limit of confirming a first choice, which takes a few tenths of a second.
constexpr absl::Duration kBriefLimit = absl::Seconds(10);

}  // namespace

absl::Status NetworkChildren::Find() {
  children_.assign(network().tasks.size(), {});
  for (size_t i = 0; i < children_.size(); ++i) {
    const absl::StatusOr<JobStarter::Child> found = jobs().GetChild(Id(i));
    NetworkTaskState& task = network().tasks[i];
    if (absl::IsNotFound(found.status())) {
      task.granted = 0;  // an earlier server may have granted trials and not stored the child
      continue;
    }
    if (absl::IsDataLoss(found.status()) && job_.services().store->CheckWritable().ok()) {
      // Only the row of this child is broken. The other tasks continue, and get its trials.
      spdlog::error("job {}: {}", Id(i), std::string(found.status().message()));
      task.granted = 0;
      task.closed = true;
      task.state = std::string(JobStateName(JobState::kFailed));
      task.error = std::string(found.status().message());
      continue;
    }
    HONE_RETURN_IF_ERROR(found.status());
    Child& child = children_[i];
    child.exists = true;
    child.last = found->snapshot;
    child.ended = HasEnded(child.last->state);
    child.restoring = !child.ended;
    child.allowance = child.last->allowance;
    // The child ended, and the earlier server did not store its results with the job.
    if (child.ended && task.state != JobStateName(child.last->state)) {
      UpdateTask(*child.last, /*in_flight=*/0, batch_, task);
      // It may have confirmed its first choice only. One that has nothing left ends at once.
      task.closed = !HasFirstPass(job_.spec()) || !SearchesAfter(*child.last);
    }
    // The job was cancelled, or failed for the same reason as the child, and is resumed.
    const bool continues = child.last->state == JobState::kCancelled || child.last->is_resumable;
    if (child.ended && continues && !task.closed) {
      child.restoring = true;
      child.used = child.last->trials;
      Reopen(i);
    }
  }
  counted_ = job_.Steady();
  return absl::OkStatus();
}

void NetworkChildren::Refresh() {
  for (size_t i = 0; i < children_.size(); ++i) RefreshChild(i);
  JobSnapshot& all = job_.state();
  all.trials = all.dropped = all.disturbed = all.queued = 0;
  all.outcomes.clear();
  for (const Child& child : children_) {
    if (child.last == nullptr) continue;
    all.trials += child.last->trials;
    all.dropped += child.last->dropped;
    all.queued += child.last->queued;
    all.disturbed += child.last->disturbed;
    if (!child.last->disturbance.empty()) all.disturbance = child.last->disturbance;
    for (const auto& [outcome, count] : child.last->outcomes) all.outcomes[outcome] += count;
  }
}

void NetworkChildren::RefreshChild(size_t i) {
  Child& child = children_[i];
  if (!child.exists || child.ended || child.creating) return;
  const absl::StatusOr<JobStarter::Child> found = jobs().GetChild(Id(i));
  if (!found.ok()) {
    spdlog::warn("job {}: {}", Id(i), found.status().ToString());
    return;
  }
  const bool was_begun = std::exchange(child.begun, found->begun);
  child.ended = HasEnded(found->snapshot->state);
  if (!child.begun && !child.ended) {
    // It has not begun yet.
    child.restoring = child.restoring || was_begun;
    child.confirming = false;
    return;
  }
  child.last = found->snapshot;
  if (child.ended && child.due) {
    lateness_ = std::max(absl::ZeroDuration(), (lateness_ + job_.Steady() - *child.due) / 2);
  }
  if (std::exchange(child.restoring, false)) child.allowance = child.last->allowance;
  // Repeated because the message is lost if the child is not in memory yet.
  if (child.allowance > child.last->allowance) jobs().AllowChild(Id(i), child.allowance);
  NetworkTaskState& task = network().tasks[i];
  UpdateTask(*child.last, InFlight(i), batch_, task);
  const bool fruitless = task.latency_ns == 0 && task.trials >= kMostFruitlessBatches * batch_;
  if (child.ended && std::exchange(child.brief, false)) {
    child.confirming = false;
    if (SearchesAfter(*child.last)) return;  // Grant starts it again
  }
  if (child.ended || (fruitless && InFlight(i) == 0)) task.closed = true;
}

bool NetworkChildren::SearchesAfter(const JobSnapshot& child) const {
  if (job_.state().state != JobState::kRunning) return false;
  return child.state == JobState::kDone || child.is_resumable;
}

void NetworkChildren::CountTime() {
  const absl::Time now = job_.Steady();
  const absl::Duration passed = now - std::exchange(counted_, now);
  if (job_.state().state != JobState::kRunning) return;
  std::vector<size_t> busy;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i].begun && InFlight(i) > 0) busy.push_back(i);
  }
  for (const size_t i : busy) {
    network().tasks[i].seconds += absl::ToDoubleSeconds(passed) / static_cast<double>(busy.size());
  }
}

void NetworkChildren::Grant(size_t i, int64_t trials) {
  Child& child = children_[i];
  network().tasks[i].granted += trials;
  if (child.creating) {  // OnGranted passes the new allowance on
    child.allowance += trials;
    return;
  }
  if (child.exists && !child.ended) {
    child.allowance += trials;
    return jobs().AllowChild(Id(i), child.allowance);
  }
  child.used = std::exchange(child.allowance, child.allowance + trials);
  if (child.exists) return Reopen(i);
  child.creating = true;
  jobs().CreateChild(Id(i), SpecOf(i), child.allowance, HasFirstPass(job_.spec()), WhenGranted(i));
}

void NetworkChildren::Reopen(size_t i) {
  children_[i].creating = true;
  jobs().ReopenChild(Id(i), children_[i].allowance, WhenGranted(i));
}

JobStarter::ChildDone NetworkChildren::WhenGranted(size_t i) {
  return [this, job = job_.shared_from_this(), i](const absl::Status& status) {
    job->Post([this, i, status] { OnGranted(i, status); });
  };
}

void NetworkChildren::OnGranted(size_t i, const absl::Status& status) {
  Child& child = children_[i];
  child.creating = false;
  if (job_.HasEnded()) return jobs().CancelChild(Id(i));
  if (!status.ok()) return job_.OnNotStored(status);
  child.exists = true;
  child.ended = child.begun = child.confirming = child.brief = false;
  child.due.reset();
  cancelled_ ? jobs().CancelChild(Id(i)) : jobs().AllowChild(Id(i), child.allowance);
}

JobSpec NetworkChildren::SpecOf(size_t i) const {
  JobSpec child = job_.spec();
  child.request_id.clear();
  child.network.reset();
  child.parent = job_.id();
  child.workload = job_.spec().network->tasks[i].workload;
  child.max_trials = 0;  // its allowance limits it
  child.max_time = absl::ZeroDuration();
  child.seed = Rng(job_.spec().seed, i)();
  return child;
}

void NetworkChildren::Confirm(size_t i, absl::Duration left) {
  Child& next = children_[i];
  const auto sharing = std::count_if(children_.begin(), children_.end(), [&](const Child& child) {
    return child.exists && !child.ended && (!child.confirming || &child == &next);
  });
  next.confirming = true;
  const absl::Duration part = left / static_cast<double>(std::max<int64_t>(1, sharing));
  // Its last measurement and its publication take a while.
  const absl::Duration limit = std::max(part - lateness_, std::min(part, absl::ZeroDuration()));
  if (InFlight(i) == 0) next.due = job_.Steady() + limit;
  jobs().ConfirmChild(Id(i), {.limit = limit, .cancelled = job_.state().cancelled});
}

void NetworkChildren::ConfirmFirst(size_t i) {
  Child& child = children_[i];
  child.confirming = child.brief = child.tried_brief = true;
  jobs().ConfirmChild(Id(i), {.limit = kBriefLimit, .brief = true});
}

void NetworkChildren::Cancel() {
  if (std::exchange(cancelled_, true)) return;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i].exists || children_[i].creating) jobs().CancelChild(Id(i));
  }
}

int64_t NetworkChildren::Unfinished() const {
  return absl::c_count_if(children_, std::mem_fn(&Child::IsUnfinished));
}

int64_t NetworkChildren::InFlight(size_t task) const {
  const Child& child = children_[task];
  if (!child.exists && !child.creating) return 0;
  if (child.ended && !child.creating) return 0;
  if (child.creating || !child.begun) return child.allowance - child.used;
  return child.last->unmeasured + child.allowance - child.last->allowance;
}

bool NetworkChildren::IsAnyInFlight() const {
  for (size_t i = 0; i < children_.size(); ++i) {
    if (InFlight(i) > 0) return true;
  }
  return false;
}

bool NetworkChildren::IsAnyRestoring() const {
  return absl::c_any_of(children_, std::mem_fn(&Child::restoring));
}

}  // namespace hone::job
