#ifndef HONE_CLIENT_CLI_OUTPUT_PROGRESS_H_
#define HONE_CLIENT_CLI_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/connection/api.h"

namespace hone::cli {

// The speed of a job that is followed. Only the time of its search counts, not the time in which it
// prepared the search, waited for a worker or for its turn, confirmed its finalists, or was not
// followed. Used by one thread.
class Pace {
 public:
  // Must be called with each report of the job.
  void Look(const v1::Job& job);

  // 0: unknown.
  double TrialsPerSecond() const;
  // The time until this many further trials will have been made; infinite if it is unknown or has
  // passed. Falls until the next trial, but not while the job waits.
  absl::Duration TimeFor(int64_t trials) const;

 private:
  bool looked_ = false;
  int64_t most_trials_ = 0;
  // Of the last report.
  bool searching_ = false;
  int64_t last_wall_ms_ = 0;
  // Since the first report.
  int64_t trials_ = 0;
  absl::Duration time_;
  absl::Duration time_at_last_trial_;
};

// The progress of a job in one line: trials, best, invalid share, speed, time left, phase. The best
// is that of the job's own candidates; if only that of another job is known, the line names it, and
// if none is known, the line says why. If it does not fit into `columns`, parts are left out in
// this order: the share of the peak, the speed, the invalid share, words that are redundant, the
// phase, the state unless it is "confirming", the best, and the time left. What a job waits for
// stays, without its details, and so does its time left, if that fits. `pace`: that of the job.
std::string ProgressText(const v1::Job& job, const Pace& pace,
                         int columns = std::numeric_limits<int>::max());

// How far a job is, for commands that look at it once.
struct JobProgress {
  // Of its trials or of its time, whichever ends it first: 0 to 1. nullopt: it has no limit.
  std::optional<double> share;
  absl::Duration left = absl::InfiniteDuration();  // until it should end; infinite: unknown
};
JobProgress ProgressOf(const v1::Job& job);
// "120 of 500 trials (24 %), about 3:10 left"; of a job that has ended, "120 trials".
std::string TrialsText(const v1::Job& job);

// Shows the progress of a command on standard error. On a terminal, one line is overwritten.
// Elsewhere, or if TERM is "dumb", changes are printed as plain lines, a few seconds apart. Used by
// one thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();

  // The longest text that is shown in full.
  int columns() const;
  // Shows a text. `important` lines are printed without waiting for the interval; a terminal shows
  // every text anyway.
  void Show(const std::string& text, bool important = false);
  // Removes the line, so that other output can follow.
  void Clear();

 private:
  const bool terminal_;
  std::string shown_;
  absl::Time shown_at_ = absl::InfinitePast();
};

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_PROGRESS_H_
