#ifndef HONE_SERVER_JOB_ACTOR_UNMEASURED_H_
#define HONE_SERVER_JOB_ACTOR_UNMEASURED_H_

#include <string>

#include "absl/time/time.h"
#include "server/job/actor/job_actor.h"

namespace hone::job {

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

// Describes the candidates of a job that workers hold which do not answer, while other workers go
// on. "" if there are none.
std::string SilentWorkText(const JobActor& job);

// Returns why a job ended before anything was measured, and what to do: names the workers of its
// target and says when each was last seen, or that the first candidate was not ready in time.
std::string WhyUnmeasured(const JobActor& job);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_UNMEASURED_H_
