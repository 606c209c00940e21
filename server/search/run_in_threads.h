#ifndef HONE_SERVER_SEARCH_RUN_IN_THREADS_H_
#define HONE_SERVER_SEARCH_RUN_IN_THREADS_H_

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace hone::search {

// Calls work(0), …, work(count - 1), each in a thread of its own, the first one in the caller's,
// and returns when all have returned. An exception that leaves a thread ends the whole process, so
// what a call throws – std::bad_alloc, mostly – is thrown by this function once the others have
// returned; of several, that of the first call.
void RunInThreads(size_t count, absl::FunctionRef<void(size_t)> work);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_RUN_IN_THREADS_H_
