#ifndef HONE_SERVER_JOB_SEARCH_PLAUSIBLE_LATENCY_H_
#define HONE_SERVER_JOB_SEARCH_PLAUSIBLE_LATENCY_H_

namespace hone::job {

// Returns whether a latency is between a nanosecond and an hour. Results outside this range are not
// used for training: labels of a model are relative to the best latency of a task, so one absurd
// latency would spoil all of them.
inline bool IsPlausibleLatency(double nanoseconds) {
  return nanoseconds >= 1 && nanoseconds <= 3.6e12;  // false for NaN
}

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_PLAUSIBLE_LATENCY_H_
