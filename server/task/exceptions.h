#ifndef HONE_SERVER_TASK_EXCEPTIONS_H_
#define HONE_SERVER_TASK_EXCEPTIONS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace hone::task {

// Runs `work` and catches what it throws. Hone throws nothing, but the standard library and the
// libraries that it uses do: std::bad_alloc where a size is nonsense or memory is short.
// Internal: an exception was thrown; the message is its type and what it says.
absl::Status CatchExceptions(absl::FunctionRef<void()> work);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_EXCEPTIONS_H_
