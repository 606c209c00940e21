#include "client/cli/tune/run_job.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/signals.h"
#include "client/cli/output/terminal.h"
#include "client/cli/suggested_command.h"
#include "client/connection/connection.h"
#include "common/base/clock.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// A server that has a worker of the target creates a job faster than this.
constexpr absl::Duration kMoment = absl::Milliseconds(500);

// A job gets at least this much time, however long the worker took to start.
constexpr int64_t kLeastTimeMs = 1000;
// A job may be busy when it is told to end at once. Its end is awaited for this long.
constexpr absl::Duration kEndAtOnce = absl::Milliseconds(500);
// If starting takes at least this fraction of the time limit, the user is told.
constexpr double kMuchOfTheTime = 0.4;
// After this fraction of its time limit, a search has ended or is about to.
constexpr double kMostOfTheTime = 0.7;

// Adds to the error of a private server or worker that has ended how the job continues. Its result
// cannot be used without the command that created it, if it publishes nothing.
absl::Status EndOfPrivate(const absl::Status& ended, const v1::Job& job) {
  if (ended.ok() || job.request().unpublished()) return ended;
  return absl::Status(
      ended.code(), absl::StrCat(ended.message(), "; ", SuggestedCommand("jobs resume " + job.id()),
                                 " continues job ", job.id()));
}

absl::StatusOr<FollowedJob> Follow(Session& session, const v1::Job& created,
                                   OnInterrupt on_interrupt, InterruptCounter& interrupts,
                                   ProgressLine& progress, const JobObserver& observe = nullptr) {
  int heard = 0;
  double best_gflops = 0;
  v1::JobState state = created.state();
  v1::JobPhase::Kind shown_wait = v1::JobPhase::KIND_UNSPECIFIED;
  Pace pace;
  absl::Status problem;
  const SystemClock clock;
  absl::Time leave_at = absl::InfiniteFuture();
  JobWait wait(&clock, /*is_private=*/session.private_server() != nullptr);
  absl::StatusOr<v1::Job> job =
      session.connection().WatchJob(created.id(), [&](const v1::Job& now, client::JobNews news) {
        const v1::Best* const best = client::BestFound(now);
        const double gflops = best != nullptr ? best->gflops() : 0;
        if (observe != nullptr && news == client::JobNews::kChanged) observe(now);
        wait.Look(now, news);
        pace.Look(now);
        if (const std::optional<std::string> message = wait.TakeMessage(); message.has_value()) {
          progress.Clear();
          PrintWrapped(stderr, *message);
        }
        const v1::JobPhase::Kind waits_for = wait.phase().value_or(v1::JobPhase()).kind();
        const bool important = client::HasEnded(now.state()) || now.state() != state ||
                               gflops > best_gflops * 1.02 || waits_for != shown_wait;
        if (important || news == client::JobNews::kChanged) {
          v1::Job shown = now;
          if (wait.phase().has_value()) *shown.mutable_phase() = *wait.phase();
          progress.Show(ProgressText(shown, pace, progress.columns()), important);
        }
        if (important) best_gflops = gflops;
        state = now.state();
        shown_wait = waits_for;
        if (const int count = interrupts.count(); count > heard) {
          heard = count;
          progress.Clear();
          if (on_interrupt != OnInterrupt::kConfirm) {
            problem = LeftError(created.id(), on_interrupt);
            return false;
          }
          // At once, because a busy server may take a while to answer.
          progress.Show(absl::StrCat(count == 1 ? "cancelling job " : "ending job ", created.id()),
                        /*important=*/true);
          const absl::Status cancelled =
              session.connection().CancelJob(created.id(), count == 1).status();
          progress.Clear();
          if (!cancelled.ok()) {
            problem = NotCancelledError(created.id(), cancelled);
            return false;
          }
          PrintWrapped(stderr, StoppingText(count, now));
          if (count > 1) leave_at = clock.Now() + kEndAtOnce;
        }
        if (!client::HasEnded(now.state()) && clock.Now() >= leave_at) {
          problem = EndingError(created.id());
          return false;
        }
        if (!client::HasEnded(now.state())) {
          problem = EndOfPrivate(session.CheckPrivate(), now);
          if (!problem.ok()) return false;
        }
        return true;
      });
  progress.Clear();
  HONE_RETURN_IF_ERROR(problem);
  const bool gave_up = absl::IsUnavailable(job.status()) || absl::IsDeadlineExceeded(job.status());
  if (gave_up && session.private_server() == nullptr) {
    const bool ends = on_interrupt == OnInterrupt::kLeaveCancelled;
    return absl::Status(
        job.status().code(),
        WithClause(job.status().message(),
                   absl::StrCat("job ", created.id(), ends ? " ends" : " continues",
                                " when the server is back: ",
                                SuggestedCommand("jobs watch " + created.id()), " follows it")));
  }
  HONE_RETURN_IF_ERROR(job.status());
  return FollowedJob{*std::move(job), /*interrupted=*/heard > 0, pace.TrialsPerSecond()};
}

// Returns a hint to append to the message that a job was cancelled: how to continue. "" if the job
// publishes nothing: it would continue without the command that uses its result.
std::string ResumeHint(const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_CANCELLED || job.request().unpublished()) return "";
  const std::vector<std::string> parts = absl::StrSplit(job.id(), '.');
  if (parts.size() > 1) {  // a task of a network, which may be done
    return absl::StrCat("; ", SuggestedCommand("jobs show " + parts[0]), " shows its network");
  }
  std::string command = "jobs resume " + job.id();
  // A search that has hardly any time left ends at once when it is resumed.
  const int64_t counted_ms = job.wall_ms() - job.after_cancel_ms();
  if (job.request().max_time_ms() > 0 &&
      counted_ms >= kMostOfTheTime * job.request().max_time_ms()) {
    const int64_t longest_ms = std::max(counted_ms, job.request().max_time_ms());
    absl::StrAppend(&command, " --time ", 2 * ((longest_ms + 999) / 1000), "s");
  }
  return absl::StrCat("; ", SuggestedCommand(command), " continues it");
}

// Starts the worker of a private server, creates a job with the time that is left without `kept`,
// and follows it.
absl::StatusOr<FollowedJob> CreateAndFollow(Session& session, const v1::CreateJobRequest& spec,
                                            absl::Duration kept) {
  InterruptCounter interrupts;
  ProgressLine progress;
  HONE_RETURN_IF_ERROR(session.StartWorker());
  HONE_RETURN_IF_ERROR(session.WaitForWorker([&] {
    progress.Show("waiting for the worker", true);
    return interrupts.count() == 0;
  }));
  v1::CreateJobRequest remaining = spec;
  if (spec.max_time_ms() > 0) {
    const int64_t spent_ms = absl::ToInt64Milliseconds(session.TakeStartTime());
    remaining.set_max_time_ms(
        std::max(kLeastTimeMs, spec.max_time_ms() - spent_ms - absl::ToInt64Milliseconds(kept)));
    if (const std::string text = TimeToStartText(spec.max_time_ms(), spent_ms); !text.empty()) {
      progress.Clear();
      PrintWrapped(stderr, text);
    }
  }
  client::KeepWaiting explain;
  if (session.private_server() == nullptr)
    explain = ExplainCreation(session.connection(), spec.target());
  const absl::StatusOr<v1::Job> created = session.connection().CreateJob(remaining, [&] {
    if (explain != nullptr) explain();
    return interrupts.count() == 0;
  });
  if (absl::IsCancelled(created.status()) && interrupts.count() > 0) {
    return InterruptedError("interrupted before the server had created the job; there is no job");
  }
  HONE_RETURN_IF_ERROR(created.status());
  return Follow(session, *created, OnInterrupt::kConfirm, interrupts, progress);
}

}  // namespace

void JobWait::Explain(v1::JobPhase::Kind kind, const std::string& detail, std::string message) {
  phase_.emplace();
  phase_->set_kind(kind);
  phase_->set_detail(detail);
  if (message == reason_) return;
  reason_ = std::move(message);
  if (!reason_.empty()) message_ = reason_;
}

void JobWait::Look(const v1::Job& job, client::JobNews news) {
  if (news == client::JobNews::kNoServer) {
    away_since_ = std::min(away_since_, clock_.Now());
    const std::string since = FormatTime(absl::ToUnixMillis(away_since_));
    return Explain(v1::JobPhase::KIND_NO_SERVER, since,
                   is_private_
                       ? ""
                       : absl::StrCat("the server has not answered since ", since,
                                      job.wait_reason().empty() ? "" : ": ", job.wait_reason(),
                                      "; job ", job.id(), " continues when it is back"));
  }
  away_since_ = absl::InfiniteFuture();
  if (job.phase().kind() == v1::JobPhase::KIND_WAITING_FOR_SPACE) {
    return Explain(job.phase().kind(), job.phase().detail(),
                   absl::StrCat("the disk of the server's store is full, and job ", job.id(),
                                " continues when there is space again: ", job.phase().detail()));
  }
  if (job.wait_reason().empty() || is_private_) {
    phase_.reset();
    reason_.clear();
    return;
  }
  Explain(v1::JobPhase::KIND_WAITING_FOR_WORKER, "",
          absl::StrCat("job ", job.id(), " waits: ", WithRepeatedOptions(job.wait_reason())));
}

std::optional<std::string> CreationWait::TakeMessage(bool connected) {
  const absl::Time now = clock_.Now();
  if (!connected) {
    connected_since_ = absl::InfiniteFuture();
    if (told_of_connection_ || now - began_ < kMoment) return std::nullopt;
    told_of_connection_ = true;
    return absl::StrCat("connecting to ", server_);
  }
  connected_since_ = std::min(connected_since_, now);
  if (told_of_server_ || now - connected_since_ < kMoment) return std::nullopt;
  told_of_server_ = true;
  return absl::StrCat("creating the job; if no worker ",
                      target_ == "native" ? "" : absl::StrCat("of target ", target_, " "),
                      "is registered, the server waits for one, at most ",
                      absl::ToInt64Seconds(client::kTargetWait), " s");
}

std::string TimeToStartText(int64_t max_time_ms, int64_t spent_ms) {
  if (static_cast<double>(spent_ms) < kMuchOfTheTime * static_cast<double>(max_time_ms)) return "";
  const auto seconds = [](int64_t ms) {
    return absl::StrFormat("%.1f s", 1e-3 * static_cast<double>(ms));
  };
  const int64_t left_ms = max_time_ms - spent_ms;
  return absl::StrCat(
      "the server and the worker took ", seconds(spent_ms), " to start; ",
      left_ms >= kLeastTimeMs
          ? absl::StrCat(seconds(left_ms), " are left for the job")
          : absl::StrCat("--time ", seconds(max_time_ms), " is exceeded, because the job gets ",
                         seconds(kLeastTimeMs), " nevertheless"),
      ". More time gives better schedules, as does a server that is already running (--server)");
}

absl::Status CheckNotCancelled(const FollowedJob& followed) {
  const v1::Job& job = followed.job;
  const std::string end = absl::StrCat("after ", Counted(job.trials(), "trial"), ResumeHint(job));
  if (followed.interrupted) {
    return InterruptedError(absl::StrCat("interrupted: job ", job.id(), " ended ", end));
  }
  if (job.state() != v1::JOB_STATE_CANCELLED) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("job ", job.id(), " was cancelled ", end));
}

absl::Status NotCancelledError(const std::string& job, const absl::Status& why) {
  return InterruptedError(absl::StrCat("interrupted, but job ", job, " could not be cancelled (",
                                       why.message(), "); ", SuggestedCommand("jobs watch " + job),
                                       " follows it, and ", SuggestedCommand("jobs cancel " + job),
                                       " ends it"));
}

absl::Status EndingError(const std::string& job) {
  return InterruptedError(absl::StrCat("interrupted: job ", job, " ends when its server has time; ",
                                       SuggestedCommand("jobs show " + job), " shows its state"));
}

absl::Status LeftError(const std::string& job, OnInterrupt on_interrupt) {
  const std::string watch = absl::StrCat(SuggestedCommand("jobs watch " + job), " follows it");
  if (on_interrupt == OnInterrupt::kLeaveCancelled) {
    return InterruptedError(absl::StrCat(
        "interrupted; job ", job, " is being cancelled on the server: ", watch, ", and ",
        SuggestedCommand(absl::StrCat("jobs cancel ", job, " --now")), " ends it at once"));
  }
  return InterruptedError(absl::StrCat("interrupted; job ", job, " continues: ", watch, ", and ",
                                       SuggestedCommand("jobs cancel " + job), " ends it"));
}

std::string StoppingText(int count, const v1::Job& job) {
  if (count > 1) return "stopping now";
  if (!job.wait_reason().empty())
    return "stopping: the job waits for a worker; Ctrl-C again ends it at once";
  if (job.trials() == 0 && job.request().revalidate() == 0) {
    return "stopping: nothing has been measured yet, so the job finishes the measurements in "
           "progress and confirms their best, for at most 30 s; Ctrl-C again ends it at once";
  }
  return "stopping: confirming the finalists for at most 30 s; Ctrl-C again skips this";
}

std::string CancellingText(const v1::Job& job) {
  if (client::HasEnded(job.state()) || job.trials() == 0 || !job.wait_reason().empty()) return "";
  return absl::StrCat("job ", job.id(),
                      " ends when it has confirmed the finalists, within about 30 s; ",
                      SuggestedCommand(absl::StrCat("jobs cancel ", job.id(), " --now")),
                      " ends it at once, and Ctrl-C ends only this wait");
}

client::KeepWaiting ExplainCreation(client::Connection& connection, const std::string& target) {
  static const auto* const clock = new SystemClock;
  return [&connection, wait = CreationWait(clock, connection.address(), target)]() mutable {
    const std::optional<std::string> message = wait.TakeMessage(connection.IsConnected());
    if (message.has_value()) {
      PrintWrapped(stderr, *message);
    }
    return true;
  };
}

absl::StatusOr<FollowedJob> RunJob(Session& session, const v1::CreateJobRequest& spec) {
  // A worker takes seconds to start: report errors of the job first.
  if (session.private_server() != nullptr) {
    HONE_RETURN_IF_ERROR(session.connection().CheckJob(spec));
  }
  return CreateAndFollow(session, spec, /*kept=*/absl::ZeroDuration());
}

absl::StatusOr<FollowedJob> RunNetworkJob(Session& session, const v1::CreateJobRequest& request,
                                          absl::Duration kept) {
  return CreateAndFollow(session, request, kept);
}

absl::StatusOr<FollowedJob> ResumeAndFollow(Session& session, const std::string& id,
                                            int64_t max_trials, int64_t max_time_ms) {
  InterruptCounter interrupts;
  ProgressLine progress;
  HONE_ASSIGN_OR_RETURN(const v1::Job job,
                        session.connection().ResumeJob(id, max_trials, max_time_ms));
  HONE_RETURN_IF_ERROR(session.UseTarget(job.target()));
  HONE_RETURN_IF_ERROR(session.StartWorker());
  return Follow(session, job, OnInterrupt::kConfirm, interrupts, progress);
}

absl::StatusOr<FollowedJob> FollowJob(Session& session, const v1::Job& job,
                                      OnInterrupt on_interrupt, const JobObserver& observe) {
  InterruptCounter interrupts;
  ProgressLine progress;
  return Follow(session, job, on_interrupt, interrupts, progress, observe);
}

std::string OutcomesText(const v1::Job& job) {
  return absl::StrJoin(client::OutcomesOf(job), ", ", [](std::string* out, const auto& outcome) {
    absl::StrAppend(out, outcome.second, " ", outcome.first);
  });
}

std::string DisturbedText(const v1::Job& job) {
  if (job.disturbed() == 0) return "";
  return absl::StrCat("other work disturbed ", Counted(job.disturbed(), "measurement"),
                      "; the last: ", job.disturbance());
}

std::string FailuresHint(const v1::Job& job) {
  const bool failed =
      std::any_of(job.outcomes().begin(), job.outcomes().end(),
                  [](const auto& outcome) { return outcome.first != "ok" && outcome.second > 0; });
  if (!failed) return "";
  return absl::StrCat("; \"", SuggestedCommand("records query --job " + job.id()),
                      "\" shows why candidates failed");
}

}  // namespace hone::cli
