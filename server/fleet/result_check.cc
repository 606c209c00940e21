#include "server/fleet/result_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace hone::fleet {
namespace {

constexpr double kPeakMargin = 1.25;
constexpr double kLongestNs = 3.6e12;  // an hour

// The peak of an accelerator is what a single kernel reached on it, and others may be faster.
bool BeatsPeak(const WorkItem& work, double latency_ns, const Capabilities& device) {
  return device.accelerator.empty() && work.fixed_flops > 0 && device.peak_gflops > 0 &&
         latency_ns * kPeakMargin * device.peak_gflops < work.fixed_flops;
}

}  // namespace

void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result) {
  if (result->outcome != record::Outcome::kOk || !(result->reference_drift > 1)) return;
  if (BeatsPeak(work, result->latency_ns, device) ||
      !BeatsPeak(work, record::SteadyLatencyNs(*result), device)) {
    return;
  }
  result->detail = absl::StrFormat(
      "the reference drift of %.2f is ignored, because the corrected latency would be faster than "
      "the device's peak",
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
  if (!BeatsPeak(work, record::SteadyLatencyNs(result), device)) return "";
  return absl::StrFormat(
      "%.0f ns for %.3g operations, on a device that was measured at %.4g operations per ns",
      result.latency_ns, work.fixed_flops, device.peak_gflops);
}

}  // namespace hone::fleet
