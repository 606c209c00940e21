#ifndef HONE_COMMON_BASE_THREAD_PRIORITY_H_
#define HONE_COMMON_BASE_THREAD_PRIORITY_H_

namespace hone {

// The calling thread, and threads that it starts, give way to the others of the machine by so many
// steps of nice(2), for good: what it computes can wait for those who answer somebody.
void LowerThreadPriority(int steps);

}  // namespace hone

#endif  // HONE_COMMON_BASE_THREAD_PRIORITY_H_
