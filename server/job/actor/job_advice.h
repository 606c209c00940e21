#ifndef HONE_SERVER_JOB_ACTOR_JOB_ADVICE_H_
#define HONE_SERVER_JOB_ACTOR_JOB_ADVICE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_types.h"

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

#endif  // HONE_SERVER_JOB_ACTOR_JOB_ADVICE_H_
