#ifndef HONE_SERVER_TUNER_SEARCH_RUN_IN_THREADS_H_
#define HONE_SERVER_TUNER_SEARCH_RUN_IN_THREADS_H_

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace hone::search {

// Calls work(0), …, work(count - 1), each in its own thread, and returns when all calls have
// returned. The first call runs in the caller's thread. An exception that leaves a thread would
// terminate the process. Exceptions, usually std::bad_alloc, are therefore caught, and rethrown to
// the caller after all calls have ended. If several calls throw, the exception of the first one in
// index order is rethrown.
void RunInThreads(size_t count, absl::FunctionRef<void(size_t)> work);

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_RUN_IN_THREADS_H_
