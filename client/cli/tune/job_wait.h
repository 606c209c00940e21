#ifndef HONE_CLIENT_CLI_TUNE_JOB_WAIT_H_
#define HONE_CLIENT_CLI_TUNE_JOB_WAIT_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "client/connection/api.h"
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
  // Describes what the job waits for, to be shown instead of its phase; "" if it makes progress.
  const std::string& phase() const { return phase_; }
  // Returns a line that explains a new wait, once; otherwise nullopt.
  std::optional<std::string> TakeMessage() { return std::exchange(message_, std::nullopt); }

 private:
  void Explain(std::string phase, std::string message);

  const Clock& clock_;
  const bool is_private_;
  absl::Time away_since_ = absl::InfiniteFuture();
  std::string phase_;
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

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_JOB_WAIT_H_
