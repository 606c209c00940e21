#ifndef HONE_SERVER_JOB_SCHEDULER_IMPROVEMENT_H_
#define HONE_SERVER_JOB_SCHEDULER_IMPROVEMENT_H_

#include "absl/types/span.h"
#include "server/job/scheduler/objective.h"

namespace hone::job {

// A model of how the best latency of a task falls with its trials. Random search finds a new best
// with a probability that falls as 1 / trials, so improvements are a process in the logarithm of
// the number of trials n, with a rate s per unit of ln n:
//   E[ln latency(n) − ln latency(m)] = s · ln(m / n).
// The posterior mean of s, given a prior mean s₀ with the weight k and the observed improvements
// Δ ln latency over Δ ln n, is
//   s = (k·s₀ + Σ v·Δ ln latency) / (k + Σ v·Δ ln n).
// An observation that ended at trial m has the weight v = m / n, because the estimate must soon
// reflect that a search slows down. The prior mean s₀ is the same estimate over all tasks.
//
// Only the part of a latency above a lower bound can fall: the time of the task's operations at
// 1.25 times the highest speed of all tasks.
class Improvement {
 public:
  explicit Improvement(absl::Span<const TaskProgress> tasks);

  // Returns the rate s of a task.
  double Rate(const TaskProgress& task) const;
  // Returns the expected latency when the task has had this many trials in this job, which is not
  // below the number measured. REQUIRES: the task has a latency.
  double ExpectedLatency(const TaskProgress& task, int64_t trials) const;

 private:
  double prior_rate_;
  double peak_ = 0;  // operations per ns
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SCHEDULER_IMPROVEMENT_H_
