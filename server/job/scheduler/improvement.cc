#include "server/job/scheduler/improvement.h"

#include <algorithm>
#include <cmath>

namespace hone::job {
namespace {

// The rate without any observation, and the weights of the prior means in units of ln n: after this
// much exposure, the observations count as much as the prior.
constexpr double kFirstRate = 0.1;
constexpr double kFirstWeight = 1;
constexpr double kPriorWeight = 0.5;
// How much faster than the fastest task so far the device is assumed to be.
constexpr double kHeadroom = 1.25;

struct Evidence {
  double improvement = 0;  // in ln latency
  double exposure = 0;     // in ln n
};

double TrialsAt(const TaskProgress& task, int64_t trials) {
  return static_cast<double>(std::max<int64_t>(1, task.earlier_trials + trials));
}

Evidence EvidenceOf(const TaskProgress& task) {
  Evidence evidence;
  const double now = TrialsAt(task, task.trials);
  for (size_t k = 1; k < task.curve.size(); ++k) {
    const ProgressPoint& from = task.curve[k - 1];
    const ProgressPoint& to = task.curve[k];
    const double n = TrialsAt(task, from.trials);
    const double m = TrialsAt(task, to.trials);
    const double weight = std::min(1.0, m / now);
    evidence.exposure += weight * std::log(m / n);
    evidence.improvement += weight * std::max(0.0, std::log(from.latency_ns / to.latency_ns));
  }
  return evidence;
}

}  // namespace

Improvement::Improvement(absl::Span<const TaskProgress> tasks) {
  double improvement = kFirstWeight * kFirstRate;
  double exposure = kFirstWeight;
  for (const TaskProgress& task : tasks) {
    const Evidence evidence = EvidenceOf(task);
    improvement += evidence.improvement;
    exposure += evidence.exposure;
    if (task.latency_ns > 0) peak_ = std::max(peak_, kHeadroom * task.flops / task.latency_ns);
  }
  prior_rate_ = improvement / exposure;
}

double Improvement::Rate(const TaskProgress& task) const {
  const Evidence evidence = EvidenceOf(task);
  return (kPriorWeight * prior_rate_ + evidence.improvement) / (kPriorWeight + evidence.exposure);
}

double Improvement::ExpectedLatency(const TaskProgress& task, int64_t trials) const {
  const double grown = TrialsAt(task, trials) / TrialsAt(task, task.trials);
  const double least = peak_ > 0 ? std::min(task.latency_ns, task.flops / peak_) : 0;
  return least + (task.latency_ns - least) * std::pow(grown, -Rate(task));
}

}  // namespace hone::job
