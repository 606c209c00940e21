#include "server/job/network/network_job.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "server/confirm/confirm_phase.h"
#include "server/job/actor/job_actor.h"
#include "server/job/job_book.h"
#include "server/job/search/task_search.h"

namespace hone::job {
namespace {

// A child prepares its design spaces before it proposes. At most this many do so at the same time.
constexpr int kMostPreparing = 2;
// In the first pass, a task whose trials fail gets this many, one at a time, before the others get
// their second batches.
constexpr int64_t kFirstTries = 4;
// So many tasks are measured or confirmed at a time in the first pass: enough to keep the workers
// busy, although each task goes through a dozen steps that wait for processes, ticks and the disk;
// and so few that the heaviest tasks are confirmed before the others are measured.
constexpr int64_t kFewestInFirstPass = 4;
constexpr int64_t kMostInFirstPass = 10;
// What is in flight takes about this long.
constexpr absl::Duration kInFlight = absl::Seconds(5);
// The speed of a device that has not said how fast it is, in 10⁹ operations and bytes per second.
constexpr double kSomeGflops = 100;
constexpr double kSomeGbps = 20;
// The most time that is reserved for confirming one task, within the limit of the request.
constexpr absl::Duration kConfirmationOfATask = absl::Seconds(8);
// The time that is reserved for confirming one task suffices for this many measurements of the
// search. On a busy machine, the usual reserve may suffice for some of the tasks only.
constexpr int kStepsOfATask = 4;
// A cancelled job ends when its time is over. Its last task stops measuring this much earlier, so
// that it can publish its best.
constexpr absl::Duration kPublishing = absl::Seconds(2);

}  // namespace

NetworkJob::NetworkJob(const JobServices& services, const JobOptions& options, JobSnapshot snapshot)
    : JobActor(services, options, std::move(snapshot)),
      batch_(TrialsAtATime(spec(), options)),
      children_(*this, batch_) {}

void NetworkJob::Initialize() {
  if (HasEnded()) return;  // cancelled while it waited for its turn
  SetDoing("looking up its tasks");
  if (const absl::Status opened = Open(); !opened.ok()) return End(JobState::kFailed, opened);
  if (state().state == JobState::kConfirming) {
    LimitConfirmation();
  } else {
    state().state = JobState::kRunning;
  }
  Refresh();
  SetBegun();
  Save();
  ShowState();
}

absl::Status NetworkJob::Open() {
  const NetworkSpec& network_spec = *spec().network;
  HONE_ASSIGN_OR_RETURN(scheduler_, CreateTaskScheduler(network_spec.scheduler,
                                                        {.objective = ObjectiveOf(network_spec),
                                                         .batch = batch_,
                                                         .seed = spec().seed}));
  if (!state().network.has_value()) {
    HONE_ASSIGN_OR_RETURN(state().network, NewNetworkState(spec(), services()));
  }
  const std::optional<fleet::Capabilities> device = services().fleet->DeviceOf(spec().target_key);
  const double gflops = device && device->peak_gflops > 0 ? device->peak_gflops : kSomeGflops;
  const double gbps = device && device->read_gbps > 0 ? device->read_gbps : kSomeGbps;
  expected_ns_.clear();
  for (const NetworkTaskSpec& task : network_spec.tasks) {
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo workload,
                          services().environment->Describe(task.workload));
    expected_ns_.push_back(std::max(workload.flops / gflops, workload.bytes / gbps));
  }
  return children_.Find();
}

void NetworkJob::OnTick() {
  SetDoing("scheduling its tasks");
  UpdateWall();
  children_.CountTime();
  Refresh();
  if (state().state == JobState::kRunning) {
    if (const std::optional<std::string> why = WhyDone()) {
      AddNote(*why);
      BeginConfirming();
    } else {
      ConfirmFirstChoices();
      Grant();
    }
  } else {
    ContinueConfirming();
  }
  if (HasEnded()) return;
  if (SaveIsDue()) Save();
  if (ShowIsDue()) ShowState();
}

void NetworkJob::OnCancel(bool confirm) {
  if (HasEnded()) return;
  const bool confirming = HasBegun() && state().state == JobState::kConfirming;
  if (!confirm && !confirming) return End(JobState::kCancelled);
  SetCancelled();
  if (!confirm) {
    ends_now_ = true;
    Save();
    return EndLate();
  }
  if (confirming) {
    LimitConfirmation();
    for (size_t i = 0; i < Tasks(); ++i) {  // those that confirm now have less time, too
      if (children_[i].confirming && !children_[i].ended) ConfirmTask(i);
    }
  }
  Save();
  ShowState();
}

void NetworkJob::BeforeSave() {
  if (!HasEnded()) return;
  // A job that has not begun may have no tasks yet.
  if (state().network.has_value()) ShowStoredBests(spec(), services(), network());
  for (size_t i = 0; i < Tasks(); ++i) {
    if (!children_[i].exists || children_[i].ended) continue;
    network().tasks[i].state = std::string(JobStateName(JobState::kCancelled));
  }
}

void NetworkJob::OnEnd() {
  SetBegun();
  // A job that has not begun does not know which children exist.
  for (size_t i = 0; i < spec().network->tasks.size(); ++i) {
    services().children->CancelChild(TaskJobId(id(), i));
  }
}

void NetworkJob::Refresh() {
  children_.Refresh();
  AddEstimate({.wall_ms = absl::ToInt64Milliseconds(Wall()),
               .trials = state().trials,
               .latency_ns = NetworkLatency(*spec().network, network())},
              batch_, network());
}

std::optional<std::string> NetworkJob::WhyDone() const {
  if (state().cancelled || TimeLeft() <= ConfirmationTime()) return "";
  if (children_.IsAnyRestoring()) return std::nullopt;
  if (HasLostPatience(network(), spec().network->patience)) {
    return absl::StrCat("the last ", spec().network->patience, " trials brought no improvement");
  }
  if (children_.IsAnyInFlight() || IsInFirstPass()) return std::nullopt;
  if (spec().max_trials > 0 && state().trials >= spec().max_trials) return "";
  if (NextTask().has_value()) return std::nullopt;
  const bool none_missing =
      spec().network->only_missing &&
      std::all_of(network().tasks.begin(), network().tasks.end(),
                  [](const NetworkTaskState& task) { return task.known_latency_ns > 0; });
  return none_missing ? "every task already has a known best"
                      : "no task can improve the networks further";
}

std::optional<int> NetworkJob::NextTask() const {
  std::vector<TaskProgress> tasks = ProgressOf(*spec().network, network());
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i].expected_ns = expected_ns_[i];
  return scheduler_->Next(tasks);
}

bool NetworkJob::AwaitsFirstConfirmation(size_t i) const {
  const Child& child = children_[i];
  const NetworkTaskState& task = network().tasks[i];
  return HasFirstPass(spec()) && child.exists && child.begun && !child.creating && !child.ended &&
         !child.restoring && !child.tried_brief && children_.InFlight(i) == 0 &&
         task.latency_ns > 0 && task.known_latency_ns == 0 && !task.confirmed &&
         task.trials <= kFirstTries;
}

void NetworkJob::ConfirmFirstChoices() {
  for (size_t i = 0; i < Tasks(); ++i) {
    if (AwaitsFirstConfirmation(i)) children_.ConfirmFirst(i);
  }
}

bool NetworkJob::IsInFirstPass() const {
  if (!HasFirstPass(spec())) return false;
  for (size_t i = 0; i < Tasks(); ++i) {
    const NetworkTaskState& task = network().tasks[i];
    const bool is_unknown = !task.closed && task.latency_ns == 0 && task.granted < kFirstTries;
    if (is_unknown || children_[i].brief || AwaitsFirstConfirmation(i)) return true;
  }
  return false;
}

void NetworkJob::Grant() {
  if (children_.IsAnyRestoring()) return SetPhase({PhaseKind::kRestoring});
  int preparing = 0;
  int64_t measuring = 0;
  int64_t granted = 0;
  for (size_t i = 0; i < Tasks(); ++i) {
    const int64_t in_flight = children_.InFlight(i);
    granted += network().tasks[i].granted;
    if (children_[i].brief) ++measuring;
    if (in_flight == 0) continue;
    children_[i].begun ? measuring += in_flight : ++preparing;
  }
  SetPhase({});
  const bool first_pass = IsInFirstPass();
  const int64_t most = first_pass ? MostInFirstPass() : batch_;
  while (measuring <= most && preparing < kMostPreparing) {
    const int64_t left = spec().max_trials == 0 ? batch_ : spec().max_trials - granted;
    if (left <= 0) return;
    const std::optional<int> next = NextTask();
    if (!next.has_value()) return;
    if (first_pass && network().tasks[static_cast<size_t>(*next)].latency_ns > 0) return;
    const int64_t trials = std::min(NextGrant(*next), left);
    const bool ready = children_[*next].begun && !children_[*next].ended;
    children_.Grant(static_cast<size_t>(*next), trials);
    granted += trials;
    ready ? measuring += trials : ++preparing;
  }
}

int64_t NetworkJob::MostInFirstPass() const {
  const absl::Duration trial = TimeOfATrial();
  if (trial <= absl::ZeroDuration()) return kFewestInFirstPass;
  return static_cast<int64_t>(std::clamp(absl::FDivDuration(kInFlight, trial),
                                         static_cast<double>(kFewestInFirstPass),
                                         static_cast<double>(kMostInFirstPass)));
}

int64_t NetworkJob::NextGrant(size_t i) const {
  const NetworkTaskState& task = network().tasks[i];
  const bool is_first = HasFirstPass(spec()) && task.latency_ns == 0 && task.granted < kFirstTries;
  return is_first ? 1 : batch_;
}

absl::Duration NetworkJob::TimeOfATrial() const {
  if (state().trials == 0) return absl::ZeroDuration();
  double seconds = 0;
  for (const NetworkTaskState& task : network().tasks) seconds += task.seconds;
  return absl::Seconds(seconds) / static_cast<double>(state().trials);
}

absl::Duration NetworkJob::ConfirmationTime() const {
  const absl::Duration limit = spec().max_time;
  // A child that has ended has confirmed what it found.
  const int64_t tasks = children_.Unfinished();
  const absl::Duration steps = kStepsOfATask * tasks * TimeOfATrial();
  // The tasks in flight confirm their first choices anyway.
  if (IsInFirstPass()) return std::min(limit / 10, std::max(absl::Seconds(1), steps));
  const absl::Duration usual = std::clamp(limit / 4, absl::Seconds(1),
                                          std::max(absl::Seconds(1), kConfirmationOfATask * tasks));
  return std::min(limit / 2, std::max(usual, steps));
}

void NetworkJob::BeginConfirming() {
  state().state = JobState::kConfirming;
  LimitConfirmation();
  for (size_t i = 0; i < Tasks(); ++i) {
    if (children_.InFlight(i) > 0) ConfirmTask(i);
  }
  Save();
  ShowState();
}

void NetworkJob::LimitConfirmation() {
  // Who cancels a job does not wait for the rest of its time.
  if (spec().max_time > absl::ZeroDuration() && !state().cancelled) return;
  const absl::Duration limit = ConfirmationLimit(Wall(), state().cancelled, children_.Unfinished());
  SetDeadline(Steady() + limit);
}

void NetworkJob::ShowConfirming() {
  int64_t confirmed = 0;
  for (size_t i = 0; i < Tasks(); ++i) {
    // A task without trials has nothing to confirm if its best is known.
    const Child& child = children_[i];
    const bool is_done = child.ended && child.last->state == JobState::kDone;
    if (child.exists ? is_done : network().tasks[i].confirmed) ++confirmed;
  }
  const bool waits = absl::c_any_of(children_.list(), [](const Child& child) {
    return child.last != nullptr && !child.ended &&
           child.last->phase.kind == PhaseKind::kWaitingForQuiet;
  });
  SetPhase({.kind = waits ? PhaseKind::kWaitingForQuiet : PhaseKind::kTasksConfirmed,
            .detail = waits ? state().disturbance : "",
            .done = confirmed,
            .whole = static_cast<int64_t>(Tasks())});
}

void NetworkJob::ContinueConfirming() {
  if (ends_by_) return EndLate();
  const bool limited = spec().max_time > absl::ZeroDuration();
  const bool unfinished = children_.Unfinished() > 0;
  // A cancelled job with nothing to confirm needs no worker.
  const bool must_end = state().cancelled ? unfinished : limited && IsLate();
  if (must_end && !WorkerAnswers(*this)) return EndWith(WhyNoWorker(*this));
  const absl::Duration grace = state().cancelled ? absl::ZeroDuration() : kFirstResultGrace;
  if ((limited || state().cancelled) && unfinished && TimeLeft() <= -grace) return EndLate();
  ShowConfirming();
  std::optional<size_t> heaviest;
  double most = -1;
  for (size_t i = 0; i < Tasks(); ++i) {
    const Child& child = children_[i];
    if (child.creating) return;
    if (!child.exists || child.ended) continue;
    if (child.confirming) return;
    const std::vector<double>& weights = spec().network->tasks[i].weights;
    const double share =
        network().tasks[i].latency_ns * std::accumulate(weights.begin(), weights.end(), 0.0);
    if (share <= most) continue;
    most = share;
    heaviest = i;
  }
  heaviest.has_value() ? ConfirmTask(*heaviest) : EndWith("");
}

void NetworkJob::EndLate() {
  children_.Cancel();
  if (!ends_by_) ends_by_ = Steady() + kPublishing;
  if (children_.Unfinished() > 0 && Steady() < *ends_by_) return;
  ShowStoredBests(spec(), services(), network());
  int64_t unconfirmed = 0;
  for (size_t i = 0; i < Tasks(); ++i) {
    const Child& child = children_[i];
    if ((child.exists || child.creating) && !network().tasks[i].confirmed) ++unconfirmed;
  }
  if (unconfirmed == 0 || ends_now_) return EndWith("");
  const std::string tasks = Counted(unconfirmed, "task");
  if (!state().cancelled) {
    return EndWith(absl::StrCat("when the time was over, ", tasks,
                                unconfirmed == 1 ? " was" : " were", " not confirmed"));
  }
  EndWith(absl::StrCat("a cancelled job confirms its tasks for at most ",
                       absl::ToInt64Seconds(kConfirmationAfterCancel), " s, so that ", tasks,
                       unconfirmed == 1 ? " is" : " are", " not confirmed"));
}

void NetworkJob::ConfirmTask(size_t i) {
  const absl::Duration left =
      state().cancelled ? std::max(TimeLeft() - kPublishing, absl::ZeroDuration()) : TimeLeft();
  children_.Confirm(i, left);
}

void NetworkJob::EndWith(std::string why) {
  ShowStoredBests(spec(), services(), network());
  int64_t without = 0;
  bool is_resumable = true;
  for (size_t i = 0; i < Tasks(); ++i) {
    const NetworkTaskState& task = network().tasks[i];
    if (task.confirmed) continue;
    ++without;
    if (why.empty() && !task.error.empty() && !ends_now_) {
      why = absl::StrCat("task ", i, ", ", task.op, ": ", task.error);
      is_resumable = children_[i].last != nullptr && children_[i].last->is_resumable;
    }
  }
  if (state().cancelled) {
    AddNote(why);
    return End(JobState::kCancelled);
  }
  if (without == static_cast<int64_t>(Tasks())) {
    if (why.empty()) why = "no task has a confirmed schedule";
    return End(JobState::kFailed,
               is_resumable ? absl::FailedPreconditionError(why) : absl::AbortedError(why));
  }
  if (without > 0) {
    AddNote(absl::StrCat(without, " of ", Tasks(), " tasks have no confirmed kernel",
                         why.empty() ? "" : "; ", why));
  }
  End(JobState::kDone);
}

}  // namespace hone::job
