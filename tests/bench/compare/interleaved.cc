#include "tests/bench/compare/interleaved.h"

#include <algorithm>
#include <numeric>

#include "absl/time/clock.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"

namespace hone::compare {
namespace {

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace

absl::StatusOr<std::vector<Timing>> TimeInterleaved(
    const std::vector<std::unique_ptr<Contender>>& contenders, const TimingOptions& options) {
  std::vector<Timing> timings(contenders.size());
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < options.rounds; ++round) {
    Rng rng(options.seed, round);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
    for (const size_t c : order) {
      absl::SleepFor(options.pause);
      HONE_RETURN_IF_ERROR(contenders[c]->Run());  // warms caches and wakes threads
      HONE_RETURN_IF_ERROR(contenders[c]->Run());
      int64_t calls = 0;
      const int64_t begin = absl::GetCurrentTimeNanos();
      int64_t now = begin;
      while (now - begin < absl::ToInt64Nanoseconds(options.block) || calls < 3) {
        HONE_RETURN_IF_ERROR(contenders[c]->Run());
        ++calls;
        now = absl::GetCurrentTimeNanos();
      }
      timings[c].block_ns.push_back(static_cast<double>(now - begin) / static_cast<double>(calls));
    }
  }
  for (Timing& timing : timings) {
    timing.latency_ns = Quantile(timing.block_ns, 0.5);
    timing.spread =
        (Quantile(timing.block_ns, 0.75) - Quantile(timing.block_ns, 0.25)) / timing.latency_ns;
  }
  return timings;
}

double MedianRatio(const Timing& a, const Timing& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.block_ns.size(); ++i) ratios.push_back(b.block_ns[i] / a.block_ns[i]);
  return Quantile(ratios, 0.5);
}

double MedianRateRatio(const Timing& a, double flops_a, const Timing& b, double flops_b) {
  return flops_a / flops_b * MedianRatio(a, b);
}

}  // namespace hone::compare
