#include "server/research/lab/curves.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "server/research/lab/statistics.h"
#include "server/research/lab/summary.h"

namespace hone::lab {
namespace {

constexpr int kPoints = 48;        // per line
constexpr int kResamplings = 300;  // per point
constexpr double kNothing = 0.01;  // share shown for a run without a result

// Returns values from `first` to `last` with a constant ratio.
std::vector<double> Grid(double first, double last) {
  std::vector<double> grid;
  for (int i = 0; i < kPoints; ++i) {
    grid.push_back(first * std::pow(last / first, i / (kPoints - 1.0)));
  }
  return grid;
}

Plot Draw(const Results& results, std::string x_label, const std::vector<double>& grid,
          const std::function<SeedValues(size_t variant, double x)>& shares) {
  Plot plot{.title = results.experiment.name,
            .x_label = std::move(x_label),
            .y_label = "share of the best known speed"};
  double lowest = 1;
  for (size_t v = 0; v < results.runs.size(); ++v) {
    PlotSeries series{.label = results.experiment.variants[v].label};
    for (const double x : grid) {
      series.x.push_back(x);
      series.y.push_back(Bootstrap(
          {shares(v, x)}, [](const std::vector<SeedValues>& drawn) { return MedianMean(drawn[0]); },
          kResamplings));
      lowest = std::min(lowest, series.y.back().value);
    }
    plot.series.push_back(std::move(series));
  }
  // Starts at a round number just below the lines, which leaves the most space for them.
  plot.y_min = std::clamp(std::floor(10 * lowest) / 10, 0.0, 0.9);
  return plot;
}

}  // namespace

Plot TrialsPlot(const Results& results) {
  std::vector<double> grid;
  for (const double x : Grid(1, static_cast<double>(results.experiment.trials))) {
    if (grid.empty() || std::round(x) > grid.back()) grid.push_back(std::round(x));
  }
  return Draw(results, "trials", grid, [&](size_t variant, double x) {
    SeedValues shares = Shares(results, variant, static_cast<int64_t>(x));
    for (auto& set : shares) {
      for (double& share : set) share = std::max(share, kNothing);
    }
    return shares;
  });
}

Plot SecondsPlot(const Results& results) {
  const auto clock_of = [&](const RunResult& run, size_t set) {
    return Clock(run, results.builders[set], /*brain=*/false);
  };
  double first = 0, last = 0;
  for (const auto& variant : results.runs) {
    for (size_t s = 0; s < variant.size(); ++s) {
      for (const RunResult& run : variant[s]) {
        const std::vector<double> clock = clock_of(run, s);
        first = std::max(first, clock.empty() ? 1e-3 : clock.front());
        last = std::max(last, clock.empty() ? 1e-3 : clock.back());
      }
    }
  }
  return Draw(
      results, "seconds of the device, building and running", Grid(first, last),
      [&](size_t variant, double x) {
        SeedValues shares(results.runs[variant].size());
        for (size_t s = 0; s < shares.size(); ++s) {
          for (const RunResult& run : results.runs[variant][s]) {
            const std::vector<double> clock = clock_of(run, s);
            const int64_t passed = absl::c_upper_bound(clock, x * (1 + 1e-9)) - clock.begin();
            const double best = results.best_latency_ns[s];
            shares[s].push_back(std::max(kNothing, passed > 0 ? ShareAt(run, best, passed) : 0));
          }
        }
        return shares;
      });
}

}  // namespace hone::lab
