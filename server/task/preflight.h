#ifndef HONE_SERVER_TASK_PREFLIGHT_H_
#define HONE_SERVER_TASK_PREFLIGHT_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/task/job_types.h"

namespace hone::task {

// Tries the first work of a job (DoFirstWork) where a crash ends no server, before the server does
// it. Thread-safe.
class Preflight {
 public:
  virtual ~Preflight() = default;

  // Calls `done` with the verdict, later and in a thread of its own. Ok: the work came to an end,
  // whatever it answered. Aborted: it crashed, threw an exception, or needed too much memory or
  // time; the message says which of these, and in which step. Cancelled: Stop was called.
  using Done = absl::AnyInvocable<void(const absl::Status&) &&>;
  virtual void Check(const JobSpec& spec, Done done) = 0;

  // Ends the checks that are under way and refuses further ones. All answers have been given when
  // it returns.
  virtual void Stop() = 0;
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_PREFLIGHT_H_
