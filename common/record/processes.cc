#include "common/record/processes.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "common/base/median.h"

namespace hone::record {

MeasureResult MedianOfProcesses(absl::Span<const MeasureResult> results) {
  MeasureResult combined = results.back();
  combined.samples_ns.clear();
  std::vector<double> raw, steady;
  for (const MeasureResult& result : results) {
    combined.samples_ns.insert(combined.samples_ns.end(), result.samples_ns.begin(),
                               result.samples_ns.end());
    raw.push_back(result.latency_ns);
    steady.push_back(SteadyLatencyNs(result));
    combined.max_error = std::max(combined.max_error, result.max_error);
    if (!result.counters.empty()) combined.counters = result.counters;
  }
  combined.latency_ns = Median(raw);
  combined.reference_drift = combined.latency_ns / Median(steady);
  combined.stopped_early = false;
  if (combined.samples_ns.size() >= 4) {
    std::vector<double> sorted = combined.samples_ns;
    absl::c_sort(sorted);
    const size_t n = sorted.size();
    combined.dispersion = (sorted[3 * n / 4] - sorted[n / 4]) / Median(sorted);
  }
  // What all of them say, such as which part of the output was compared, holds for the result, too.
  const bool agree = absl::c_all_of(
      results, [&](const MeasureResult& result) { return result.detail == combined.detail; });
  if (!agree) combined.detail.clear();
  combined.processes = static_cast<int>(results.size());
  return combined;
}

MeasureResult WithFasterHalf(MeasureResult result) {
  std::vector<double>& samples = result.samples_ns;
  if (samples.size() < 2) return result;
  const double all = Median(samples);
  absl::c_sort(samples);
  samples.resize((samples.size() + 1) / 2);
  result.latency_ns *= Median(samples) / all;
  return result;
}

int ProcessesOf(const MeasureResult& result) { return std::max(1, result.processes); }

}  // namespace hone::record
