#include "server/research/lab/statistics.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "common/base/median.h"
#include "common/base/rng.h"

namespace hone::lab {
namespace {

constexpr double kTail = 0.025;  // on each side of a 95 % interval

}  // namespace

double GeometricMean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

Interval Bootstrap(const std::vector<SeedValues>& variants, const Statistic& statistic,
                   int resamplings) {
  const size_t sets = variants.front().size();
  std::vector<double> values;
  std::vector<SeedValues> drawn(variants.size());
  for (int i = 0; i < resamplings; ++i) {
    Rng rng(/*seed=*/1, static_cast<uint64_t>(i));
    for (SeedValues& each : drawn) each.assign(sets, {});
    for (size_t s = 0; s < sets; ++s) {
      const size_t set = rng.Below(sets);
      for (size_t v = 0; v < variants.size(); ++v) {
        const std::vector<double>& from = variants[v][set];
        for (size_t k = 0; k < from.size(); ++k) {
          drawn[v][s].push_back(from[rng.Below(from.size())]);
        }
      }
    }
    values.push_back(statistic(drawn));
  }
  return {statistic(variants), Quantile(values, kTail), Quantile(values, 1 - kTail)};
}

double MedianRatio(const SeedValues& numerator, const SeedValues& denominator) {
  std::vector<double> ratios;
  for (size_t s = 0; s < numerator.size(); ++s) {
    ratios.push_back(Median(numerator[s]) / Median(denominator[s]));
  }
  return GeometricMean(ratios);
}

double MedianMean(const SeedValues& values) {
  std::vector<double> medians;
  for (const std::vector<double>& seeds : values) medians.push_back(Median(seeds));
  return GeometricMean(medians);
}

std::vector<double> ShareCurve(const RunResult& run, double best_latency_ns) {
  std::vector<double> curve;
  double best = 0;
  for (const RunTrial& trial : run.trials) {
    if (trial.outcome == record::Outcome::kOk) {
      best = std::max(best, best_latency_ns / trial.latency_ns);
    }
    curve.push_back(best);
  }
  return curve;
}

double ShareAt(const RunResult& run, double best_latency_ns, int64_t trials) {
  const std::vector<double> curve = ShareCurve(run, best_latency_ns);
  if (curve.empty()) return 0;
  return curve[std::min<size_t>(static_cast<size_t>(trials), curve.size()) - 1];
}

int64_t TrialsTo(const RunResult& run, double best_latency_ns, double share) {
  const std::vector<double> curve = ShareCurve(run, best_latency_ns);
  const auto reached = absl::c_lower_bound(curve, share);
  return reached == curve.end() ? -1 : reached - curve.begin() + 1;
}

double Area(const RunResult& run, double best_latency_ns, int64_t trials) {
  const std::vector<double> curve = ShareCurve(run, best_latency_ns);
  if (curve.empty()) return 0;
  double sum = 0;
  for (int64_t i = 0; i < trials; ++i) {
    sum += curve[std::min<size_t>(static_cast<size_t>(i), curve.size() - 1)];
  }
  return sum / static_cast<double>(trials);
}

std::vector<double> Clock(const RunResult& run, int builders, bool brain) {
  std::vector<double> seconds;
  double now = 0;
  for (const RunTrial& trial : run.trials) {
    now += (trial.build_ms / builders + trial.run_ms + (brain ? trial.brain_ms : 0)) * 1e-3;
    seconds.push_back(trial.elapsed_ms > 0 ? trial.elapsed_ms * 1e-3 : now);
  }
  return seconds;
}

double SecondsTo(const RunResult& run, double best_latency_ns, int builders, double share,
                 bool brain) {
  const int64_t trials = TrialsTo(run, best_latency_ns, share);
  return trials < 0 ? -1 : Clock(run, builders, brain)[static_cast<size_t>(trials) - 1];
}

}  // namespace hone::lab
