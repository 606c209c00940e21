#ifndef HONE_SERVER_TASK_PLAUSIBLE_LATENCY_H_
#define HONE_SERVER_TASK_PLAUSIBLE_LATENCY_H_

namespace hone::task {

// Whether a kernel can have taken that long: a number from a nanosecond to an hour. Labels of a
// model are relative to the best latency of a task, so a single absurd one would spoil all of them;
// such results are kept out of training.
inline bool IsPlausibleLatency(double nanoseconds) {
  return nanoseconds >= 1 && nanoseconds <= 3.6e12;  // false for what is no number
}

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_PLAUSIBLE_LATENCY_H_
