#ifndef HONE_CLIENT_CLI_TUNE_PACE_H_
#define HONE_CLIENT_CLI_TUNE_PACE_H_

#include <cstdint>

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

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_PACE_H_
