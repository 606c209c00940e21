#ifndef HONE_SERVER_JOB_ACTOR_JOB_SERVICES_H_
#define HONE_SERVER_JOB_ACTOR_JOB_SERVICES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/confirm/confirmation.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/job_types.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

namespace hone::job {

class JobStarter;

// The services that jobs use. All of them must outlive the jobs.
struct JobServices {
  const Clock* clock = nullptr;         // the time of day, for stored times
  const Clock* steady_clock = nullptr;  // for deadlines; null: `clock`
  store::Store* store = nullptr;
  fleet::Fleet* fleet = nullptr;
  // Returns the workers of the fleet and those that have not called since the server started, for
  // texts that name them; null: those of the fleet.
  std::function<std::vector<fleet::WorkerInfo>()> known_workers;
  fleet::ArtifactCache* artifacts = nullptr;
  const TaskEnvironment* environment = nullptr;
  Executor* executor = nullptr;
  // Called with the target of every screened result, for what learns from them; may be null.
  std::function<void(const std::string& target_key)> note_result;
  // What a job of networks starts the jobs of its tasks with. JobManager sets it.
  JobStarter* children = nullptr;
  // Identifies this run of this server; "": JobManager names it.
  std::string server;

  absl::Time SteadyNow() const { return (steady_clock != nullptr ? steady_clock : clock)->Now(); }
};

struct JobOptions {
  // Candidates per Propose: an eighth of the trial limit within these bounds.
  int min_batch = 4;
  int max_batch = 32;
  // Maximum number of unfinished jobs of one owner and of all owners.
  int max_jobs_per_owner = 256;
  int max_jobs = 4096;
  ConfirmationOptions confirmation;
  // After the time limit or a cancel, builds and runs that have begun may finish for at most this
  // long, and those of a cancelled job for at most half of its time.
  absl::Duration drain_limit = absl::Seconds(30);
  // How long the winner's artifact may take to arrive.
  absl::Duration artifact_limit = absl::Seconds(30);
  // A job fails if no worker has taken its work for this long, whether those that could are lost,
  // drained or refused, or there are none. A machine can be started again in this time.
  absl::Duration wait_limit = absl::Minutes(10);
  // How long another worker may take to check a new best.
  absl::Duration spot_check_limit = absl::Minutes(2);
  // How often the summary of a running job is stored.
  absl::Duration save_interval = absl::Seconds(2);
  // The maximum age of the state that readers of a long job see. Publishing a state copies it.
  absl::Duration show_interval = absl::Milliseconds(300);
  // Whether proposing and training hold the host's timing lock in shared mode
  // (common/base/host_lock.h), so they do not disturb timings on this machine.
  bool respect_timing_lock = true;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JOB_SERVICES_H_
