#ifndef HONE_SERVER_JOB_ACTOR_EXCEPTIONS_H_
#define HONE_SERVER_JOB_ACTOR_EXCEPTIONS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace hone::job {

// Runs `work` and catches exceptions. Hone does not throw, but the standard library and other
// libraries do, for example std::bad_alloc. Internal: an exception was thrown; the message contains
// its type and text.
absl::Status CatchExceptions(absl::FunctionRef<void()> work);
// Returns the status of `work`, or, if it throws, that of CatchExceptions, which is also logged.
absl::Status Attempt(absl::FunctionRef<absl::Status()> work);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_EXCEPTIONS_H_
