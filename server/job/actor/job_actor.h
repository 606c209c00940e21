#ifndef HONE_SERVER_JOB_ACTOR_JOB_ACTOR_H_
#define HONE_SERVER_JOB_ACTOR_JOB_ACTOR_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_types.h"

namespace hone::job {

// The state of a job and its actor: messages run one at a time on a strand. The actor stores the
// state, publishes it to readers, and limits the effect of defects: an exception in a message fails
// only the job, and risky steps are stored before they begin (RiskyStep).
//
// Job and NetworkJob derive from it, and the phases of a job use it. Their verbs: to stop is to
// propose no more, to confirm is to stop and to measure the finalists again, to cancel is a user's
// wish for one or the other, to cut is to end a round before all of it is measured, and to end is
// to give the job its last state. After that, the phases are closed: they free what they hold.
class JobActor : public std::enable_shared_from_this<JobActor> {
 public:
  JobActor(const JobServices& services, const JobOptions& options, JobSnapshot snapshot);
  virtual ~JobActor() = default;

  // The following methods may be called from any thread. They return at once, and take effect
  // through messages.

  // Begins, or continues after a restart.
  void Start();
  // Returns whether the first risky step of Start is over, or the job has ended or was suspended.
  bool HasBegun() const { return begun_ || suspended_; }
  // Stops proposing. With `confirm`, work in progress finishes and the finalists are confirmed;
  // otherwise everything stops at once.
  void Cancel(bool confirm);
  // Called a few times a second.
  void Tick();
  // Ignores all further messages and does not change the stored state. The next server continues
  // the job.
  void Suspend();
  // Suspends the job at an orderly shutdown of the server. A risky step in progress is removed from
  // the stored state, because it would look like a crash.
  void SuspendForShutdown();
  std::shared_ptr<const JobSnapshot> snapshot() const;
  // Returns whether the job has ended and its last state is stored. A job whose last state could
  // not be stored stays in memory for readers.
  bool IsOver() const { return over_; }
  // Whether a user has cancelled the job or the server is suspending it. Long work on the strand
  // asks, because the message of that waits until the work is over.
  bool MustStop() const { return cancel_asked_ || suspended_; }
  // Returns why the end could not be stored the last time that this was tried; otherwise OK.
  absl::Status save_error() const;
  // Runs a function on the strand, unless the job is suspended. Keeps the job alive until then.
  void Post(absl::AnyInvocable<void() &&> message);

  const JobServices& services() const { return services_; }
  const JobOptions& options() const { return options_; }
  const std::string& id() const { return id_; }
  const JobSpec& spec() const { return spec_; }

  // The following methods must be called on the strand.

  JobSnapshot& state() { return state_; }
  const JobSnapshot& state() const { return state_; }
  void SetPhase(JobPhase phase);
  // Adds a clause to the note; "" adds nothing.
  void AddNote(const std::string& text);
  // See SilentWork; looked up once a second.
  const JobPhase& silent_work() const { return silent_work_; }
  // Sets the description of the current work, for the message of an exception.
  void SetDoing(const char* doing) { doing_ = doing; }
  // Publishes the state to readers.
  void ShowState();
  // Stores the state.
  void Save() {
    Save([](const absl::Status&) {});
  }
  // Stores an event of the search. `then` runs on the strand once the event is durable.
  void Log(store::JobEvent event) {
    Log(std::move(event), [] {});
  }
  void Log(store::JobEvent event, absl::AnyInvocable<void() &&> then);
  // Called if data that the job needs could not be stored. The job fails, unless this server does
  // not lead any more: then the job is suspended, and the next leader continues it.
  void OnNotStored(const absl::Status& status);
  // Stores that a risky step begins, then runs `then` on the strand unless the job has ended. The
  // job proposes nothing until then.
  void EnterStep(const char* name, absl::AnyInvocable<void() &&> then);
  void LeaveStep();
  // Returns whether a risky step is being stored or the job has not begun.
  bool IsStepPending() const { return step_pending_; }
  // Fails the job because a message threw an exception.
  void OnException(const absl::Status& threw);
  void End(JobState state, absl::Status why = absl::OkStatus());
  // End a job that is done, or has failed. If a user has cancelled it, it is cancelled.
  void Finish() { End(state_.cancelled ? JobState::kCancelled : JobState::kDone); }
  void Fail(absl::Status why) {
    End(state_.cancelled ? JobState::kCancelled : JobState::kFailed, std::move(why));
  }
  bool HasEnded() const { return job::HasEnded(state_.state); }

  // Returns where the records of this job come from.
  store::JobStep Step(int64_t event = -1) const { return {id_, event}; }
  absl::Time Now() const { return services_.clock->Now(); }
  // The time for deadlines and durations, which must not depend on changes of the machine's clock.
  absl::Time Steady() const { return services_.SteadyNow(); }
  // Returns whether the server may have started so recently that its workers have not called it.
  bool WorkersMayCall() const;
  // Returns how long servers have worked on the job, including earlier servers.
  absl::Duration Wall() const { return earlier_wall_ + (Steady() - resumed_); }
  // Returns the time until the job should end; infinite without a time limit.
  absl::Duration TimeLeft() const {
    const absl::Duration until_deadline = deadline_ - Steady();
    if (spec_.max_time == absl::ZeroDuration()) return until_deadline;
    return std::min(spec_.max_time - (Wall() - earlier_after_cancel_), until_deadline);
  }

 protected:
  // Handle the messages of Start, Cancel and Tick. OnTick is called only between start and end.
  virtual void Initialize() = 0;
  virtual void OnCancel(bool confirm) = 0;
  virtual void OnTick() = 0;
  // BeforeSave is called before each save, and OnEnd after the end.
  virtual void BeforeSave() = 0;
  virtual void OnEnd() = 0;
  // Called on the strand as the last message, after the job was suspended.
  virtual void OnSuspended() {}

  // Returns whether Start was called. After a crash, jobs start one after the other.
  bool HasStarted() const { return started_; }
  // Return whether the interval since the last save or publication is over.
  bool SaveIsDue() const { return Steady() >= saved_ + options_.save_interval; }
  bool ShowIsDue() const { return Steady() >= shown_at_ + options_.show_interval; }
  // Aborted: the job must be given up, because servers crashed too often in its risky steps.
  absl::Status CheckCrashes() const;
  // Called when the first risky step is over and the job may propose.
  void SetBegun() { begun_ = true; }
  // Notes that a user cancelled the job.
  void SetCancelled();
  // Updates the times of the state.
  void UpdateWall();
  // Sets a time by which the job should end, in addition to the limit of its request. An earlier
  // deadline stays.
  void SetDeadline(absl::Time deadline) { deadline_ = std::min(deadline_, deadline); }

 private:
  void SetSuspended() ABSL_EXCLUSIVE_LOCKS_REQUIRED(save_mutex_);
  // Notes whether a worker takes the job's work, once a second. Ends a job that has waited too
  // long.
  void CheckWorkers();
  // Returns whether the job stands still because the disk of the store is full. That time does not
  // count.
  bool WaitsForSpace();
  // `done` runs in any thread with the result. It is not called if the job is suspended.
  void Save(absl::AnyInvocable<void(const absl::Status&) &&> done);

  const JobServices services_;
  const JobOptions options_;
  const std::string id_;
  const JobSpec spec_;
  Strand strand_;
  std::atomic<bool> suspended_{false};  // set under save_mutex_
  std::atomic<bool> over_{false};
  std::atomic<bool> begun_{false};
  std::atomic<bool> tick_posted_{false};
  std::atomic<bool> must_end_{false};  // Cancel was called without confirmation
  std::atomic<bool> cancel_asked_{false};

  mutable absl::Mutex mutex_;
  std::shared_ptr<const JobSnapshot> shown_ ABSL_GUARDED_BY(mutex_);
  absl::Status save_error_ ABSL_GUARDED_BY(mutex_);

  // Held while a state is passed to the store, so no state follows the one from SuspendForShutdown.
  absl::Mutex save_mutex_;
  // The state that an orderly shutdown stores; nullopt if the stored state needs no change.
  std::optional<JobSnapshot> at_shutdown_ ABSL_GUARDED_BY(save_mutex_);

  // The following members are used only on the strand.
  bool started_ = false;  // Tick may be called earlier
  const char* doing_ = "";
  std::string crashed_while_;  // the risky step in which an earlier server crashed
  bool step_pending_ = true;
  JobSnapshot state_;
  absl::Time deadline_ = absl::InfiniteFuture();
  absl::Time resumed_;                   // when this server began to work on the job
  absl::Duration earlier_wall_;          // under earlier servers
  absl::Duration earlier_after_cancel_;  // JobSnapshot::after_cancel, in the same way
  // Wall() when the job was cancelled, or when this server began to work on a cancelled job.
  std::optional<absl::Duration> wall_at_cancel_;
  absl::Time next_worker_check_;
  // While no worker takes the job's work: when the job fails, and a clause that names the limit
  // that applies.
  struct Wait {
    absl::Time end;
    std::string end_text;
  };
  std::optional<Wait> wait_;
  JobPhase silent_work_;
  std::optional<absl::Time> full_at_;  // the last tick, if the disk was full then
  std::string why_full_;
  absl::Time saved_ = absl::InfinitePast();
  absl::Time shown_at_ = absl::InfinitePast();
};

// Returns whether a worker that runs the job's target takes work, or may yet call a server that has
// just started.
bool WorkerAnswers(const JobActor& job);

// Returns why no worker builds kernels, or none runs them on the job's target, and what to do:
// names the workers that could, and says when each was last seen. "" if workers for both take work.
std::string WhyNoWorker(const JobActor& job);

// If one worker has all work of a job and does not answer, describes this worker. Otherwise returns
// "".
std::string WhyWorkIsSilent(const JobActor& job);
// Returns a time as text for users, with its time zone, because they may be in another one.
std::string TimeText(absl::Time time);

// Returns the phase of a job of which a worker that does not answer holds candidates, while other
// workers go on: kMeasuringWithout, or kNone.
JobPhase SilentWork(const JobActor& job);

// Returns why a job ended before anything was measured, and what to do: names the workers of its
// target and says when each was last seen, or that the first candidate was not ready in time.
std::string WhyUnmeasured(const JobActor& job);

// Whether the cause of a failure lies outside of the job and may go away. This holds for
// FailedPrecondition (such as no worker), Unavailable and ResourceExhausted.
bool IsOfTheSurroundings(const absl::Status& why);

// Returns a clause that tells how to continue a job that fails with the message `why`, to be
// appended to that message. Returns "" in these cases:
// - The job is not resumable (JobSnapshot::is_resumable).
// - The message names the command already.
// - The job publishes nothing. The command that uses its result has ended.
// - The job tunes a task of a network. The job of the network decides whether it can go on.
// REQUIRES: `job.wall` is up to date.
std::string ResumeAdvice(const JobSnapshot& job, absl::string_view why);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JOB_ACTOR_H_
