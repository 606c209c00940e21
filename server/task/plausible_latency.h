#ifndef HONE_SERVER_TASK_PLAUSIBLE_LATENCY_H_
#define HONE_SERVER_TASK_PLAUSIBLE_LATENCY_H_

namespace hone::task {

// Whether a latency is between a nanosecond and an hour. Labels of a model are relative to the best
// latency of a task, so a single absurd one would spoil all of them; such results are not learnt.
inline bool IsPlausibleLatency(double nanoseconds) {
  return nanoseconds >= 1 && nanoseconds <= 3.6e12;  // false for NaN
}

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_PLAUSIBLE_LATENCY_H_
