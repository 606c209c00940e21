#include "server/fleet/result_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "common/target/target.h"

namespace hone::fleet {
namespace {

constexpr double kPeakMargin = 1.25;
constexpr double kOperationsPerLane = 4;  // two multiply-add units
constexpr double kLongestNs = 3.6e12;     // an hour

}  // namespace

double MostGflops(const std::string& target_text) {
  const absl::StatusOr<target::Target> target = target::Target::FromText(target_text);
  if (!target.ok()) return std::numeric_limits<double>::infinity();
  return kMostGigahertz * kOperationsPerLane * target->cores * target->VectorLanesF32();
}

std::string WhyImpossible(const WorkItem& work, const record::MeasureResult& result,
                          const Capabilities& device) {
  if (result.outcome != record::Outcome::kOk) return "";
  if (!std::isfinite(result.latency_ns) || !(result.latency_ns > 0) ||
      result.latency_ns > kLongestNs) {
    return absl::StrFormat("a latency of %g ns", result.latency_ns);
  }
  for (const double sample : result.samples_ns) {
    if (!std::isfinite(sample) || sample < 0) return absl::StrFormat("a sample of %g ns", sample);
  }
  const auto faster = [&](double latency_ns, double gflops) {
    return work.least_operations > 0 && latency_ns * gflops < work.least_operations;
  };
  const double most = device.most_gflops;
  const bool beyond_target = faster(result.latency_ns, most);
  const bool beyond_peak = device.peak_gflops > 0 && faster(record::SteadyLatencyNs(result),
                                                            kPeakMargin * device.peak_gflops);
  if (!beyond_target && !beyond_peak) return "";
  return absl::StrFormat(
      "%.0f ns for what takes at least %.3g operations, where %s at most %.4g per ns",
      result.latency_ns, work.least_operations,
      beyond_target ? "its target does" : "it did, measured,",
      beyond_target ? most : device.peak_gflops);
}

}  // namespace hone::fleet
