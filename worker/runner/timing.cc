#include "worker/runner/timing.h"

#include <algorithm>
#include <cmath>

namespace hone::runner {
namespace {

constexpr double kBlockNs = 1e6;        // a block of runs takes at least this long
constexpr double kDisturbed = 1.15;     // the probe's own noise is a few percent
constexpr double kHopeless = 2;         // times the best; not worth a block
constexpr double kClearlySlower = 1.5;  // times the best; one block is enough
constexpr double kShort = 2e6;          // a first run below this says little
// A first run below this, and below this multiple of the hopeless latency, is judged only after a
// warm run: freshly packed weights are in one core's cache, and inputs are in none.
constexpr double kColdMatters = 20e6;
constexpr double kColdFactor = 3;
constexpr double kFirstCounts = 5e6;  // a first run above this is a sample like the others
// A confirmation repeats in fresh processes, which differ more than the blocks of one process, so
// more processes are better than longer ones.
constexpr int kConfirmBlocks = 10;
constexpr int kConfirmLongBlocks = 5;  // for kernels whose first run already counts as a sample
constexpr double kConfirmNs = 30e6;
// Extra blocks that replace disturbed ones, as a share of the wanted number.
constexpr double kExtraBlocks = 0.5;

int WantedBlocks(double run_ns, const TimingOptions& options) {
  if (options.confirm) {
    const double block_ns = std::max(kBlockNs, run_ns);
    return std::max({run_ns >= kFirstCounts ? kConfirmLongBlocks : kConfirmBlocks,
                     options.min_blocks, static_cast<int>(std::ceil(kConfirmNs / block_ns))});
  }
  if (run_ns >= kFirstCounts) return 2;
  return run_ns >= kBlockNs ? 3 : 4;
}

Timing Summarize(Timing timing) {
  timing.latency_ns = Quantile(timing.samples_ns, 0.5);
  const double spread = Quantile(timing.samples_ns, 0.75) - Quantile(timing.samples_ns, 0.25);
  timing.dispersion = timing.latency_ns > 0 ? spread / timing.latency_ns : 0;
  return timing;
}

}  // namespace

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

Timing TimeKernel(double first_ns, absl::FunctionRef<double(int64_t count)> run, Probe& probe,
                  const TimingOptions& options) {
  Timing timing;
  timing.drift = probe.Drift();
  const double hopeless_ns = !options.confirm && options.best_latency_ns > 0
                                 ? kHopeless * options.best_latency_ns * timing.drift
                                 : INFINITY;
  double run_ns = first_ns;
  for (int i = 0; i < 2; ++i) {
    const bool cold = run_ns < kShort || run_ns < std::min(kColdMatters, kColdFactor * hopeless_ns);
    const bool doubted = run_ns > hopeless_ns && cold;
    if (!doubted && (i > 0 || run_ns >= kShort)) break;
    run_ns = std::min(run_ns, run(1));
  }
  if (run_ns > hopeless_ns) {
    timing.samples_ns = {run_ns};
    timing.stopped_early = true;
    return Summarize(std::move(timing));
  }
  if (run_ns >= kFirstCounts) timing.samples_ns.push_back(first_ns);

  const int wanted = WantedBlocks(run_ns, options);
  std::vector<double> drifts;
  std::vector<double> disturbed;
  double before = probe.Sample();
  int accepted = 0;
  const int most = wanted + static_cast<int>(std::ceil(kExtraBlocks * wanted));
  for (int block = 0; accepted < wanted && block < most; ++block) {
    const double count_wanted = std::ceil(kBlockNs / std::max(run_ns, 1.0));
    const int64_t count =
        std::min(static_cast<int64_t>(std::max(count_wanted, 1.0)), options.max_count);
    const double sample = run(count) / static_cast<double>(count);
    const double after = probe.Sample();
    const double disturbance = std::max(before, after);
    before = after;
    run_ns = std::min(run_ns, sample);
    if (disturbance > kDisturbed) {
      disturbed.push_back(sample);
      continue;
    }
    ++accepted;
    timing.samples_ns.push_back(sample);
    drifts.push_back(probe.Drift());
    if (!options.confirm && options.best_latency_ns > 0 &&
        sample > kClearlySlower * options.best_latency_ns * probe.Drift()) {
      timing.stopped_early = accepted < wanted;
      break;
    }
  }
  if (2 * accepted < wanted && !timing.stopped_early) {
    timing.samples_ns.insert(timing.samples_ns.end(), disturbed.begin(), disturbed.end());
    drifts.push_back(probe.Drift());
  }
  timing.remeasured = static_cast<int>(disturbed.size());
  timing.drift = Quantile(drifts, 0.5);
  return Summarize(std::move(timing));
}

}  // namespace hone::runner
