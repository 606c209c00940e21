#ifndef HONE_CLIENT_CLI_JOB_WAIT_H_
#define HONE_CLIENT_CLI_JOB_WAIT_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/lib/api.h"
#include "common/base/clock.h"

namespace hone::cli {

// Explains why a job that is followed makes no progress: no worker takes its work, or the server
// cannot be reached. Used by one thread.
class JobWait {
 public:
  using ListWorkers = std::function<absl::StatusOr<std::vector<client::Worker>>()>;
  // `list_workers` is called every few seconds while the job makes no progress, and when it begins
  // to confirm its finalists; null: never.
  JobWait(const Clock* clock, ListWorkers list_workers)
      : clock_(*clock), list_workers_(std::move(list_workers)) {}

  // Must be called with each report of the job.
  void Look(const client::Job& job, client::JobNews news);
  // Describes what the job waits for, to be shown instead of its phase; "" if it makes progress.
  const std::string& phase() const { return phase_; }
  // Whether it waits for a worker.
  bool needs_worker() const { return needs_worker_; }
  // Returns a line that explains a new wait, once; otherwise nullopt.
  std::optional<std::string> TakeMessage() { return std::exchange(message_, std::nullopt); }

 private:
  struct Seen {
    int64_t unix_ms = 0;  // when it last called, at the last look
    bool silent = false;  // it had not called since the look before
  };

  void Explain(std::string phase, std::string message);
  // Explains that no worker takes the job's work, or nothing if one does. `patient`: enough time
  // has passed since the last look for a running worker to call.
  void LookAtWorkers(const client::Job& job, bool patient);

  const Clock& clock_;
  const ListWorkers list_workers_;
  std::string measured_;  // the job's numbers when it last made progress
  std::string doing_;     // its state and phase at the last report
  bool confirms_ = false;
  bool needs_worker_ = false;
  absl::Time next_look_ = absl::InfiniteFuture();
  std::map<std::string, Seen> last_seen_;  // by worker
  absl::Time away_since_ = absl::InfiniteFuture();
  std::string phase_;
  std::string reason_;  // the last message
  std::optional<std::string> message_;
};

// Why no worker takes the work of a target, and what to do: names the workers that could, and says
// when each was last seen. "" if there is a worker that takes it.
std::string WhyNoWorker(const std::vector<client::Worker>& workers, const std::string& target);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_JOB_WAIT_H_
