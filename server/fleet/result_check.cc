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

bool BeatsPeak(const WorkItem& work, double latency_ns, const Capabilities& device) {
  return work.least_operations > 0 && device.peak_gflops > 0 &&
         latency_ns * kPeakMargin * device.peak_gflops < work.least_operations;
}

}  // namespace

double MostGflops(const std::string& target_text) {
  const absl::StatusOr<target::Target> target = target::Target::FromText(target_text);
  if (!target.ok()) return std::numeric_limits<double>::infinity();
  return kMostGigahertz * kOperationsPerLane * target->cores * target->VectorLanesF32();
}

void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result) {
  if (result->outcome != record::Outcome::kOk || !(result->reference_drift > 1)) return;
  if (BeatsPeak(work, result->latency_ns, device) ||
      !BeatsPeak(work, record::SteadyLatencyNs(*result), device)) {
    return;
  }
  result->detail = absl::StrFormat(
      "its reference was %.2f times as slow as at first, by which it would have beaten "
      "the peak: not reckoned in",
      result->reference_drift);
  result->reference_drift = 1;
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
  const double most = device.most_gflops;
  const bool beyond_target =
      work.least_operations > 0 && result.latency_ns * most < work.least_operations;
  const bool beyond_peak = BeatsPeak(work, record::SteadyLatencyNs(result), device);
  if (!beyond_target && !beyond_peak) return "";
  return absl::StrFormat(
      "%.0f ns for what takes at least %.3g operations, where %s at most %.4g per ns",
      result.latency_ns, work.least_operations,
      beyond_target ? "its target does" : "it did, measured,",
      beyond_target ? most : device.peak_gflops);
}

}  // namespace hone::fleet
