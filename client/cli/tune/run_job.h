#ifndef HONE_CLIENT_CLI_TUNE_RUN_JOB_H_
#define HONE_CLIENT_CLI_TUNE_RUN_JOB_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/session.h"
#include "client/connection/api.h"
#include "client/connection/connection.h"
#include "common/base/clock.h"

namespace hone::cli {

// Explains why a job that is followed makes no progress: no worker takes its work, or the server
// cannot be reached. Used by one thread.
class JobWait {
 public:
  // With `is_private`, this process has started the server and the worker, and reports their end
  // itself; waits for them are not explained.
  JobWait(const Clock* clock, bool is_private) : clock_(*clock), is_private_(is_private) {}

  // Must be called with each report of the job.
  void Look(const v1::Job& job, client::JobNews news);
  // Returns the phase to show instead of the job's own while no worker takes its work or the server
  // is away; nullopt if it makes progress.
  const std::optional<v1::JobPhase>& phase() const { return phase_; }
  // Returns a line that explains a new wait, once; otherwise nullopt.
  std::optional<std::string> TakeMessage() { return std::exchange(message_, std::nullopt); }

 private:
  void Explain(v1::JobPhase::Kind kind, const std::string& detail, std::string message);

  const Clock& clock_;
  const bool is_private_;
  absl::Time away_since_ = absl::InfiniteFuture();
  std::optional<v1::JobPhase> phase_;
  std::string reason_;  // the last message
  std::optional<std::string> message_;
};

// Explains why creating a job takes a while: there is no connection to the server yet, or the
// server waits for a worker of the target.
// Used by one thread.
class CreationWait {
 public:
  // `server`: its address. `target`: as in v1::CreateJobRequest. The wait begins now.
  CreationWait(const Clock* clock, std::string server, std::string target)
      : clock_(*clock),
        began_(clock->Now()),
        server_(std::move(server)),
        target_(std::move(target)) {}

  // Returns a line that explains the wait for the connection or for the server, each once, when it
  // has taken a moment; otherwise nullopt. `connected`: whether there is a connection now.
  std::optional<std::string> TakeMessage(bool connected);

 private:
  const Clock& clock_;
  const absl::Time began_;
  absl::Time connected_since_ = began_;
  const std::string server_;
  const std::string target_;
  bool told_of_connection_ = false;
  bool told_of_server_ = false;
};

// A job that was followed to its end.
struct FollowedJob {
  v1::Job job;
  bool interrupted = false;  // with Ctrl-C, which cancelled the job
  // The speed of its search, as the progress line shows it (Pace); 0: unknown.
  double trials_per_second = 0;
};

// The effect of Ctrl-C on a followed job.
enum class OnInterrupt {
  kConfirm,         // the job confirms its finalists and ends; twice: it ends immediately
  kLeave,           // the job continues, and FollowJob returns
  kLeaveCancelled,  // the same for a job that is being cancelled
};

// Ok unless the job was cancelled. InterruptedError: with Ctrl-C. Aborted: by another
// command, of this user or of another one. The message says how a job that was cancelled
// continues.
absl::Status CheckNotCancelled(const FollowedJob& followed);

// InterruptedError: after Ctrl-C, the job could not be cancelled for the reason `why`, such as a
// server that cannot be reached.
absl::Status NotCancelledError(const std::string& job, const absl::Status& why);

// InterruptedError: after a second Ctrl-C, the job was told to end at once, but has not ended yet.
absl::Status EndingError(const std::string& job);

// InterruptedError: after Ctrl-C, a job is no longer followed. Says what becomes of the job.
// REQUIRES: on_interrupt is not kConfirm.
absl::Status LeftError(const std::string& job, OnInterrupt on_interrupt);

// What is printed when Ctrl-C has cancelled a job, in this state, for the `count`-th time.
std::string StoppingText(int count, const v1::Job& job);
// What is printed when a command waits for the end of a job that it has cancelled, and that
// confirms its finalists. "" if there is nothing to confirm.
std::string CancellingText(const v1::Job& job);

// Returns what a call that creates a job does while it waits: it says once on standard error that
// it connects to the server, and once that the server may wait for a worker of `target`. Never ends
// the call. For a server that was given. `connection` must outlive the result.
client::KeepWaiting ExplainCreation(client::Connection& connection, const std::string& target);

// Creates a job and follows it to its end, with its progress on standard error. After the first
// Ctrl-C the job confirms the finalists and ends; after the second it ends immediately. Ctrl-C
// before the server has created the job, which may wait for a worker, ends the call. With a
// private server, first checks the job, then starts a worker and waits for it. The time since the
// command began counts toward the limit of its first job. Returns the last state of the job, even
// if it failed. InterruptedError: interrupted before there was a job. Other errors are those
// of the connection and of the private server.
absl::StatusOr<FollowedJob> RunJob(Session& session, const v1::CreateJobRequest& spec);
// The same for a job of networks. It is not checked
// before the worker starts. `kept`: the part of the time limit that the command needs afterwards.
absl::StatusOr<FollowedJob> RunNetworkJob(Session& session, const v1::CreateJobRequest& request,
                                          absl::Duration kept);

// Returns a line that says that starting the server and the worker took a large part of the time
// limit; "" if it did not.
std::string TimeToStartText(int64_t max_time_ms, int64_t spent_ms);

// Resumes a job of a private server with client::Connection::ResumeJob, starts a worker for it, and
// follows it to its end as RunJob does. Ctrl-C cancels the job even before the worker is ready.
absl::StatusOr<FollowedJob> ResumeAndFollow(Session& session, const std::string& id,
                                            int64_t max_trials, int64_t max_time_ms);

// Follows a job to its end, with its progress on standard error. Returns its last state. `observe`
// gets each state that the server sends, at most a few per second; it may be null.
// InterruptedError: interrupted with kLeave or kLeaveCancelled.
using JobObserver = std::function<void(const v1::Job& now)>;
absl::StatusOr<FollowedJob> FollowJob(Session& session, const v1::Job& job,
                                      OnInterrupt on_interrupt,
                                      const JobObserver& observe = nullptr);

// "3 ok, 1 wrong_output".
std::string OutcomesText(const v1::Job& job);
// "other work disturbed 3 measurements; the last: …"; "" if it disturbed none.
std::string DisturbedText(const v1::Job& job);
// Returns a hint to append to an error message: the command that shows why candidates failed. "" if
// none failed.
std::string FailuresHint(const v1::Job& job);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_RUN_JOB_H_
