// WhyOutOfPolicy (job_task.h): the limits of a measurement.

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/median.h"
#include "server/job/actor/job_task.h"

namespace hone::job {
namespace {

struct Limits {
  double drift;
  double steal;
  double dispersion;
  double over_fastest;  // the median over the fastest sample
  double over_earlier;  // the latency over that of an earlier process
};
constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// Screening takes few samples, and the candidates that it selects are measured again.
constexpr Limits kScreen = {.drift = 4,
                            .steal = 0.5,
                            .dispersion = kUnlimited,
                            .over_fastest = kUnlimited,
                            .over_earlier = kUnlimited};
// Latencies are corrected for the drift of the probe's kernel, but other kernels may be slowed down
// more or less than the probe. A published latency must not depend on a large correction.
// On a very busy machine, nearly all samples may be slow, and about equally so: then only the
// fastest shows that the kernel is not.
constexpr Limits kConfirm = {
    .drift = 1.5, .steal = 0.3, .dispersion = 0.5, .over_fastest = 2, .over_earlier = 5};
// Two processes that agree within this factor were not disturbed, even if the machine is slow: on a
// virtual machine it may stay so, for example because its cores are threads of cores that others
// use, too. What takes away time hits some processes more than others.
constexpr double kAgreement = 1.15;
constexpr double kAgreeingDrift = 2.5;
constexpr double kHottestC = 98;  // processors throttle at 95 to 105

double OverFastest(const std::vector<double>& samples_ns) {
  if (samples_ns.empty()) return 1;
  return Median(samples_ns) / *std::min_element(samples_ns.begin(), samples_ns.end());
}

}  // namespace

std::string WhyOutOfPolicy(const record::Record& record, double earlier_ns) {
  const record::MeasureResult& result = record.result;
  if (result.outcome != record::Outcome::kOk) return "";
  Limits limits = record.policy.name == "confirm" ? kConfirm : kScreen;
  const double over_earlier = earlier_ns > 0 ? record::SteadyLatencyNs(result) / earlier_ns : 1;
  if (earlier_ns > 0 && over_earlier < kAgreement && over_earlier > 1 / kAgreement) {
    limits.drift = std::max(limits.drift, kAgreeingDrift);
    limits.steal = std::max(limits.steal, kScreen.steal);
  }
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
  if (const double times = OverFastest(result.samples_ns); times > limits.over_fastest) {
    return absl::StrFormat(
        "half of the runs took at least %.1f times as long as the fastest (%g times are "
        "tolerated)",
        times, limits.over_fastest);
  }
  if (over_earlier > limits.over_earlier) {
    return absl::StrFormat(
        "the kernel took %.2g times as long as when it was measured first (%g times are tolerated)",
        over_earlier, limits.over_earlier);
  }
  if (result.machine.temperature_c > kHottestC) {
    return absl::StrFormat("the processor was at %.0f °C (%.0f °C are tolerated)",
                           result.machine.temperature_c, kHottestC);
  }
  return "";
}

}  // namespace hone::job
