#include "server/task/record_policy.h"

#include <limits>

#include "absl/strings/str_format.h"

namespace hone::task {
namespace {

struct Limits {
  double drift;
  double steal;
  double dispersion;
};
// Screening takes few samples, and the candidates that it selects are measured again.
constexpr Limits kScreen = {
    .drift = 4, .steal = 0.5, .dispersion = std::numeric_limits<double>::infinity()};
// Latencies are corrected for the drift of the probe's kernel, but other kernels may be slowed down
// more or less than the probe. A published latency must not depend on a large correction.
constexpr Limits kConfirm = {.drift = 1.5, .steal = 0.3, .dispersion = 0.5};
constexpr double kHottestC = 98;  // processors throttle at 95 to 105

}  // namespace

std::string WhyOutOfPolicy(const record::Record& record) {
  const record::MeasureResult& result = record.result;
  if (result.outcome != record::Outcome::kOk) return "";
  const Limits& limits = record.policy.name == "confirm" ? kConfirm : kScreen;
  if (result.reference_drift > limits.drift) {
    return absl::StrFormat(
        "the machine was %.1f times as slow as when its worker registered (%g times are "
        "tolerated)",
        result.reference_drift, limits.drift);
  }
  if (result.machine.steal > limits.steal) {
    return absl::StrFormat("the host took away %.0f %% of the time (%.0f %% are tolerated)",
                           100 * result.machine.steal, 100 * limits.steal);
  }
  if (!result.stopped_early && result.dispersion > limits.dispersion) {
    return absl::StrFormat(
        "repeated runs differed by %.0f %% of their median (%.0f %% are tolerated)",
        100 * result.dispersion, 100 * limits.dispersion);
  }
  if (result.machine.temperature_c > kHottestC) {
    return absl::StrFormat("the processor was at %.0f °C (%.0f °C are tolerated)",
                           result.machine.temperature_c, kHottestC);
  }
  return "";
}

}  // namespace hone::task
