#ifndef HONE_COMMON_BASE_THREAD_PRIORITY_H_
#define HONE_COMMON_BASE_THREAD_PRIORITY_H_

namespace hone {

// Raises the nice value of the calling thread, and of threads that it starts later, by `steps`.
// This cannot be undone. For work that may wait, such as training.
void LowerThreadPriority(int steps);

}  // namespace hone

#endif  // HONE_COMMON_BASE_THREAD_PRIORITY_H_
