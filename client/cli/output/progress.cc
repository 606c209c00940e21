#include "client/cli/output/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/output/format.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/phase_text.h"
#include "client/cli/output/terminal.h"
#include "common/base/counted.h"

namespace hone::cli {
namespace {

// With fewer trials, the speed is not representative.
constexpr int64_t kMinTrialsForEstimate = 8;

constexpr absl::Duration kPlainInterval = absl::Seconds(5);

// Whether a line can be overwritten.
bool IsTerminal() {
  const char* const term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || absl::string_view(term) != "dumb");
}

// Whether the speed of the trials says when a job ends. It says nothing about a job that waits or
// ends its search.
bool EndsByTrials(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_RUNNING && RoleOf(job.phase()) == PhaseRole::kSearches &&
         job.request().max_trials() > 0;
}

// The time until the nearest limit; infinite if it is not known yet.
absl::Duration TimeLeft(const v1::Job& job, const Pace& pace) {
  if (!EndsByTrials(job)) return client::TimeLeft(job);
  return std::min(client::TimeLeft(job),
                  pace.TimeFor(std::max<int64_t>(0, job.request().max_trials() - job.trials())));
}

// Explains why the line shows no best; "" if the trials and the phase explain it.
std::string WhyNoBest(const v1::Job& job, int64_t ok) {
  if (job.trials() == 0 || ok > 0 || job.request().revalidate() > 0) return "";
  return client::HasEnded(job.state()) ? "no valid trial" : "no valid trial yet";
}

// How many tasks have a latency, as long as the sum of all is unknown; "" if it is known.
std::string WhyNoSum(const v1::NetworkProgress& network) {
  if (network.latency_ns() > 0 || network.tasks().empty()) return "";
  const auto known = std::count_if(network.tasks().begin(), network.tasks().end(),
                                   [](const auto& task) { return task.latency_ns() > 0; });
  return absl::StrCat(known, " of ", Counted(network.tasks_size(), "task"), " measured");
}

}  // namespace

void Pace::Look(const v1::Job& job) {
  const int64_t passed_ms = job.wall_ms() - std::exchange(last_wall_ms_, job.wall_ms());
  // A server that has restarted counts the trials again, from 0.
  const int64_t all = std::max(most_trials_, job.trials());
  const int64_t made = all - std::exchange(most_trials_, all);
  // The trials of a time that does not count do not count either.
  if (std::exchange(looked_, true) && searching_) {
    time_ += absl::Milliseconds(std::max<int64_t>(0, passed_ms));
    if (made > 0) {
      trials_ += made;
      time_at_last_trial_ = time_;
    }
  }
  searching_ = job.state() == v1::JOB_STATE_RUNNING && job.wait_reason().empty() &&
               RoleOf(job.phase()) != PhaseRole::kPrepares;
}

double Pace::TrialsPerSecond() const {
  if (trials_ == 0 || time_ == absl::ZeroDuration()) return 0;
  return static_cast<double>(trials_) / absl::ToDoubleSeconds(time_);
}

absl::Duration Pace::TimeFor(int64_t trials) const {
  if (trials_ < kMinTrialsForEstimate) return absl::InfiniteDuration();
  const absl::Duration since = time_ - time_at_last_trial_;
  const absl::Duration left = time_at_last_trial_ / trials_ * trials - since;
  return left > absl::ZeroDuration() ? left : absl::InfiniteDuration();
}

std::string ProgressText(const v1::Job& job, const Pace& pace, int columns) {
  // If the line is too long, parts are removed in steps, until it fits.
  constexpr int kLastStep = 11;
  constexpr int kNever = kLastStep + 1;
  struct Part {
    std::string text;
    int from;  // the first step that shows it
    int goes;  // the step that removes it
  };
  std::vector<Part> parts;
  const auto add = [&](int goes, const auto&... text) {
    parts.push_back({.text = absl::StrCat(text...), .from = 0, .goes = goes});
  };
  const bool tuning = job.state() == v1::JOB_STATE_RUNNING;
  const bool revalidates = job.request().revalidate() > 0;
  const std::string state = !tuning       ? client::JobStateName(job.state())
                            : revalidates ? "revalidating"
                                          : "tuning";
  // What a job waits for is more important than its numbers.
  const PhaseTexts phase = TextsOf(job.phase());
  const bool is_away = job.phase().kind() == v1::JobPhase::KIND_NO_SERVER;
  const bool waits = RoleOf(job.phase()) == PhaseRole::kWaits;
  // The phase implies the state.
  const bool ended = client::HasEnded(job.state());
  const bool implied = !ended && !phase.full.empty();
  const int state_goes = ended || job.state() == v1::JOB_STATE_CONFIRMING ? kNever : 7;
  // What a search does at its end matters less than that it is a search, and than its trials.
  const bool searches = tuning && implied && !waits;
  add(implied && !searches ? 5 : state_goes, state);
  if (implied && !waits && !searches) {
    parts.push_back({.text = state, .from = 6, .goes = state_goes});
  }
  // Before and after a search without trials, their number says nothing. A network whose tasks are
  // all known may have nothing to tune.
  const bool all_known =
      job.has_network() && !job.network().tasks().empty() && AllConfirmed(job.network());
  if (job.trials() > 0 || revalidates || (tuning && !all_known)) {
    add(waits ? 10 : kNever, "  ", job.trials(),
        job.request().max_trials() > 0 ? absl::StrCat("/", job.request().max_trials()) : "");
    const int64_t counted = std::max(job.trials(), job.request().max_trials());
    add(searches ? 6 : 4, revalidates ? " confirmed" : counted == 1 ? " trial" : " trials");
  }
  int64_t outcomes = 0;
  int64_t ok = 0;
  for (const auto& [name, count] : job.outcomes()) {
    outcomes += count;
    if (name == "ok") ok += count;
  }
  const v1::Best* const best = client::BestFound(job);
  if (best != nullptr && (best->gflops() > 0 || best->latency_ns() > 0)) {
    const bool is_own = best->record().job_id() == job.id();
    // Some operators only move data.
    const std::string figure = best->gflops() > 0
                                   ? absl::StrCat(FormatGflops(best->gflops()), " GFLOP/s")
                                   : FormatLatency(best->latency_ns());
    // Otherwise the line would contradict lists, which show the best that is known.
    const bool is_behind =
        is_own && client::HasEnded(job.state()) && client::BestIsOfAnotherJob(job);
    add(8,
        is_behind ? "  best of this run "
        : is_own  ? "  best "
                  : "  best known ",
        MarkUnconfirmed(figure, client::LatencyIsConfirmed(*best)),
        is_own ? "" : absl::StrCat(" (job ", best->record().job_id(), ")"));
    if (best->gflops() > 0 && best->peak_gflops() > 0) {
      add(1, " (", FormatShare(best->gflops(), best->peak_gflops()), " of peak)");
    }
  } else {
    const std::string why = job.has_network() ? WhyNoSum(job.network()) : WhyNoBest(job, ok);
    if (!why.empty()) add(8, "  ", why);
  }
  if (job.has_network() && job.network().latency_ns() > 0) {
    add(8, "  sum ", SumText(job.network()));
    if (job.network().default_latency_ns() > 0) {
      add(1, " (speed-up ",
          FormatSpeedUp(job.network().default_latency_ns(), job.network().latency_ns()), ")");
    }
  }
  if (outcomes > 0) {
    add(3, "  invalid ",
        FormatShare(static_cast<double>(outcomes - ok), static_cast<double>(outcomes)));
  }
  if (pace.TrialsPerSecond() > 0 && !revalidates) {
    add(2, absl::StrFormat("  %.1f trials/s", pace.TrialsPerSecond()));
  }
  if (job.disturbed() > 0) add(waits ? 6 : 4, "  ", job.disturbed(), " disturbed");
  const absl::Duration left = TimeLeft(job, pace);
  const std::string left_text =
      left < absl::InfiniteDuration() ? absl::StrCat(FormatClock(left), " left") : "";
  if (!left_text.empty()) add(9, "  ", left_text);
  if (searches) {
    add(4, "  (", phase.full, ")");
    const std::string first_word = phase.full.substr(0, phase.full.find(' '));
    parts.push_back({absl::StrCat("  (", first_word, " …)"), 4, 5});
  } else if (!waits) {
    if (implied) add(6, "  (", phase.full, ")");
  } else {
    const bool joins = !left_text.empty() && !is_away;
    add(2, "  (", phase.full, ")");
    parts.push_back({absl::StrCat("  (", phase.brief, ")"), 2, joins ? 9 : kNever});
    if (joins) {
      parts.push_back({absl::StrCat("  ", phase.brief, " ", left_text), 9, kLastStep});
      parts.push_back({absl::StrCat("  (", phase.brief, ")"), kLastStep, kNever});
    }
  }

  std::string text;
  for (int step = 0; step <= kLastStep; ++step) {
    text.clear();
    for (const Part& part : parts) {
      if (part.from <= step && step < part.goes) text += part.text;
    }
    absl::StripLeadingAsciiWhitespace(&text);
    if (ColumnsOf(text) <= columns) break;
  }
  return text;
}

JobProgress ProgressOf(const v1::Job& job) {
  JobProgress progress{.left = client::TimeLeft(job)};
  const auto add = [&](int64_t part, int64_t whole) {
    if (whole <= 0) return;
    const double share = static_cast<double>(part) / static_cast<double>(whole);
    progress.share = std::min(1.0, std::max(share, progress.share.value_or(0)));
  };
  const int64_t trials =
      job.request().revalidate() > 0 ? job.request().revalidate() : job.request().max_trials();
  add(job.trials(), trials);
  add(job.wall_ms() - job.after_cancel_ms(), job.request().max_time_ms());
  if (job.state() == v1::JOB_STATE_DONE) progress.share = 1;
  if (client::HasEnded(job.state())) progress.left = absl::ZeroDuration();
  if (EndsByTrials(job) && job.trials() > 0) {
    const absl::Duration each = absl::Milliseconds(job.wall_ms()) / job.trials();
    progress.left = std::min(
        progress.left, each * std::max<int64_t>(0, job.request().max_trials() - job.trials()));
  }
  return progress;
}

std::string TrialsText(const v1::Job& job) {
  if (client::HasEnded(job.state())) return Counted(job.trials(), "trial");
  const JobProgress progress = ProgressOf(job);
  const bool of_trials = job.request().max_trials() > 0;
  std::string text =
      of_trials ? absl::StrCat(job.trials(), " of ", Counted(job.request().max_trials(), "trial"))
                : Counted(job.trials(), "trial");
  if (progress.share.has_value()) {
    absl::StrAppend(&text, absl::StrFormat(" (%.0f %%", 100 * *progress.share),
                    of_trials ? ")" : " of its time)");
  }
  if (progress.left < absl::InfiniteDuration()) {
    absl::StrAppend(&text, ", about ", FormatClock(progress.left), " left");
  }
  return text;
}

ProgressLine::ProgressLine() : terminal_(IsTerminal()) {}

ProgressLine::~ProgressLine() { Clear(); }

int ProgressLine::columns() const {
  return terminal_ ? std::max(0, TerminalColumns(STDERR_FILENO) - 1)
                   : std::numeric_limits<int>::max();
}

void ProgressLine::Show(const std::string& text, bool important) {
  if (text == shown_) return;
  const absl::Time now = absl::Now();
  if (terminal_) {
    absl::FPrintF(stderr, "\r%s\033[K", Shortened(text, columns()));
  } else {
    if (!important && now - shown_at_ < kPlainInterval) return;
    absl::FPrintF(stderr, "%s\n", text);
  }
  std::fflush(stderr);
  shown_ = text;
  shown_at_ = now;
}

void ProgressLine::Clear() {
  if (terminal_ && !shown_.empty()) {
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }
  shown_.clear();
}

}  // namespace hone::cli
