#include "server/research/lab/summary.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/median.h"
#include "server/research/lab/statistics.h"

namespace hone::lab {
namespace {

constexpr double kShares[] = {0.90, 0.95, 0.99};

SeedValues PerRun(const Results& results, size_t variant,
                  const std::function<double(const RunResult& run, size_t set)>& value) {
  SeedValues values;
  for (size_t s = 0; s < results.runs[variant].size(); ++s) {
    values.emplace_back();
    for (const RunResult& run : results.runs[variant][s]) values.back().push_back(value(run, s));
  }
  return values;
}

double Total(const Results& results, size_t variant,
             const std::function<double(const RunResult& run)>& value) {
  double total = 0;
  for (const auto& set : results.runs[variant]) {
    for (const RunResult& run : set) total += value(run);
  }
  return total;
}

double Sum(const RunResult& run, double RunTrial::* field) {
  double total = 0;
  for (const RunTrial& trial : run.trials) total += trial.*field;
  return total;
}
double BuildMs(const RunResult& run) { return Sum(run, &RunTrial::build_ms); }
double RunMs(const RunResult& run) { return Sum(run, &RunTrial::run_ms); }

// A run that never reached a share counts with all of its trials (or seconds), so medians that
// include such runs are lower bounds.
SeedValues TrialsToShare(const Results& results, size_t variant, double share) {
  return PerRun(results, variant, [&](const RunResult& run, size_t set) {
    const int64_t trials = TrialsTo(run, results.best_latency_ns[set], share);
    return static_cast<double>(trials > 0 ? trials : std::max<size_t>(run.trials.size(), 1));
  });
}

SeedValues SecondsToShare(const Results& results, size_t variant, double share, bool brain) {
  return PerRun(results, variant, [&](const RunResult& run, size_t set) {
    const double seconds =
        SecondsTo(run, results.best_latency_ns[set], results.builders[set], share, brain);
    if (seconds >= 0) return seconds;
    const std::vector<double> clock = Clock(run, results.builders[set], brain);
    return clock.empty() ? 1e-3 : clock.back();
  });
}

SeedValues Areas(const Results& results, size_t variant) {
  return PerRun(results, variant, [&](const RunResult& run, size_t set) {
    return std::max(1e-6, Area(run, results.best_latency_ns[set], results.experiment.trials));
  });
}

// Returns the fraction of runs that reached the share.
double ReachedShare(const Results& results, size_t variant, double share) {
  double reached = 0, count = 0;
  for (size_t s = 0; s < results.runs[variant].size(); ++s) {
    for (const RunResult& run : results.runs[variant][s]) {
      reached += TrialsTo(run, results.best_latency_ns[s], share) > 0;
      ++count;
    }
  }
  return reached / count;
}

std::string Text(const Interval& interval) {
  return absl::StrFormat("%.2f [%.2f, %.2f]", interval.value, interval.low, interval.high);
}

Interval RatioToBaseline(const SeedValues& values, const SeedValues& baseline) {
  if (values == baseline) return {1, 1, 1};
  return Bootstrap({values, baseline}, [](const std::vector<SeedValues>& drawn) {
    return MedianRatio(drawn[0], drawn[1]);
  });
}

// Returns a CSV file with one or more lines per run. `append` gets the run's first columns and
// appends whole lines.
std::string RunLines(
    const Results& results, absl::string_view columns,
    const std::function<void(const RunResult& run, size_t set, const std::string& first,
                             std::string& csv)>& append) {
  std::string csv = absl::StrCat("variant,set,seed,", columns, "\n");
  for (size_t v = 0; v < results.runs.size(); ++v) {
    for (size_t s = 0; s < results.runs[v].size(); ++s) {
      for (size_t k = 0; k < results.runs[v][s].size(); ++k) {
        append(results.runs[v][s][k], s,
               absl::StrCat(results.experiment.variants[v].label, ",", results.experiment.sets[s],
                            ",", k + 1),
               csv);
      }
    }
  }
  return csv;
}

// Returns Markdown with a line per set and a column per variant.
std::string SetTable(const Experiment& experiment,
                     const std::function<std::string(size_t variant, size_t set)>& cell) {
  std::string text = "| set |", rule = "\n|---|";
  for (const Variant& variant : experiment.variants) {
    absl::StrAppend(&text, " ", variant.label, " |");
    absl::StrAppend(&rule, "---|");
  }
  text += rule;
  for (size_t s = 0; s < experiment.sets.size(); ++s) {
    absl::StrAppend(&text, "\n| ", experiment.sets[s], " |");
    for (size_t v = 0; v < experiment.variants.size(); ++v)
      absl::StrAppend(&text, " ", cell(v, s), " |");
  }
  return text + "\n";
}

}  // namespace

SeedValues Shares(const Results& results, size_t variant, int64_t trials) {
  return PerRun(results, variant, [&](const RunResult& run, size_t set) {
    return std::max(1e-6, ShareAt(run, results.best_latency_ns[set], trials));
  });
}

std::string SummaryText(const Results& results) {
  const Experiment& experiment = results.experiment;
  const size_t base = results.baseline();
  std::string text = absl::StrFormat(
      "# %s\n\n%s\n\n%d sets, %d seeds, at most %d trials; ratios to `%s`. Medians over seeds, "
      "geometric means over sets, 95 %% bootstrap intervals. A run that never reached a share "
      "counts "
      "with all its trials.\n\n",
      experiment.name, experiment.question, experiment.sets.size(), experiment.seeds,
      experiment.trials, experiment.baseline);
  absl::StrAppend(
      &text,
      "| variant | best at 16 | at 64 | at the end | area | trials to 95 % | to 99 % | "
      "ratio of trials to 99 % | ratio of device seconds to 99 % | reached 99 % | "
      "duplicates | outside | failed |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (size_t v = 0; v < experiment.variants.size(); ++v) {
    absl::StrAppendFormat(
        &text,
        "| %s | %.1f %% | %.1f %% | %.1f %% | %.3f | %.0f | %.0f | %s | %s | %.0f %% | %.0f | %.0f "
        "| %.0f |\n",
        experiment.variants[v].label, 100 * MedianMean(Shares(results, v, 16)),
        100 * MedianMean(Shares(results, v, 64)),
        100 * MedianMean(Shares(results, v, experiment.trials)), MedianMean(Areas(results, v)),
        MedianMean(TrialsToShare(results, v, 0.95)), MedianMean(TrialsToShare(results, v, 0.99)),
        Text(RatioToBaseline(TrialsToShare(results, v, 0.99), TrialsToShare(results, base, 0.99))),
        Text(RatioToBaseline(SecondsToShare(results, v, 0.99, false),
                             SecondsToShare(results, base, 0.99, false))),
        100 * ReachedShare(results, v, 0.99),
        Total(results, v, [](const RunResult& run) { return static_cast<double>(run.duplicates); }),
        Total(results, v, [](const RunResult& run) { return static_cast<double>(run.outside); }),
        Total(results, v, [](const RunResult& run) { return static_cast<double>(run.failures); }));
  }
  absl::StrAppend(
      &text,
      "\nMedian trials to 99 % of the best known, per set (`>`: most seeds never reached it):\n\n",
      SetTable(experiment, [&](size_t v, size_t s) {
        size_t reached = 0;
        for (const RunResult& run : results.runs[v][s])
          reached += TrialsTo(run, results.best_latency_ns[s], 0.99) > 0;
        return absl::StrFormat("%s%.0f", 2 * reached <= results.runs[v][s].size() ? ">" : "",
                               Median(TrialsToShare(results, v, 0.99)[s]));
      }));
  // The published latency of a live run was timed again in new processes. It is not the minimum of
  // many screenings.
  const auto confirmed = [](const RunResult& run) { return run.confirmed_ns; };
  if (Total(results, 0, confirmed) == 0) return text;
  absl::StrAppend(&text, "\nConfirmed latency of the best in µs, median over seeds:\n\n",
                  SetTable(experiment, [&](size_t v, size_t s) {
                    std::vector<double> seeds;
                    for (const RunResult& run : results.runs[v][s])
                      seeds.push_back(run.confirmed_ns / 1e3);
                    return absl::StrFormat("%.1f", Median(std::move(seeds)));
                  }));
  return text;
}

std::string TimeText(const Results& results) {
  std::string text =
      "Seconds per run, summed over sets and divided by runs: building on all builders and running "
      "as recorded, proposing and training in CPU time of one core of this machine; the ratio is "
      "of "
      "all of them until 99 %.\n\n"
      "| variant | build | run | propose | train | ratio of seconds to 99 % "
      "|\n|---|---|---|---|---|---|\n";
  const size_t base = results.baseline();
  for (size_t v = 0; v < results.runs.size(); ++v) {
    const double runs = Total(results, v, [](const RunResult&) { return 1.0; });
    double build = 0;
    for (size_t s = 0; s < results.runs[v].size(); ++s) {
      for (const RunResult& run : results.runs[v][s]) build += BuildMs(run) / results.builders[s];
    }
    absl::StrAppendFormat(
        &text, "| %s | %.2f | %.2f | %.2f | %.2f | %s |\n", results.experiment.variants[v].label,
        build / runs / 1e3, Total(results, v, RunMs) / runs / 1e3,
        Total(results, v, [](const RunResult& run) { return run.propose_ms; }) / runs / 1e3,
        Total(results, v, [](const RunResult& run) { return run.train_ms; }) / runs / 1e3,
        Text(RatioToBaseline(SecondsToShare(results, v, 0.99, true),
                             SecondsToShare(results, base, 0.99, true))));
  }
  return text;
}

std::string RunsCsv(const Results& results) {
  return RunLines(
      results,
      "trials,best_ns,best_known_ns,share_16,share_64,share_end,area,trials_90,trials_95,trials_99,"
      "device_s_90,device_s_95,device_s_99,build_s,run_s,duplicates,outside,failures,exhausted",
      [&](const RunResult& run, size_t set, const std::string& first, std::string& csv) {
        const double known = results.best_latency_ns[set];
        const int64_t trials = results.experiment.trials;
        const double end = run.trials.empty() ? 0 : ShareAt(run, known, trials);
        absl::StrAppendFormat(&csv, "%s,%d,%.1f,%.1f,%.4f,%.4f,%.4f,%.4f", first, run.trials.size(),
                              end > 0 ? known / end : 0, known, ShareAt(run, known, 16),
                              ShareAt(run, known, 64), end, Area(run, known, trials));
        for (const double share : kShares)
          absl::StrAppendFormat(&csv, ",%d", TrialsTo(run, known, share));
        for (const double share : kShares) {
          absl::StrAppendFormat(&csv, ",%.3f",
                                SecondsTo(run, known, results.builders[set], share, false));
        }
        absl::StrAppendFormat(&csv, ",%.3f,%.3f,%d,%d,%d,%d\n", BuildMs(run) / 1e3,
                              RunMs(run) / 1e3, run.duplicates, run.outside, run.failures,
                              run.exhausted);
      });
}

std::string CurvesCsv(const Results& results) {
  return RunLines(
      results, "trial,device_s,best_ns,share",
      [&](const RunResult& run, size_t set, const std::string& first, std::string& csv) {
        const double known = results.best_latency_ns[set];
        const std::vector<double> shares = ShareCurve(run, known);
        const std::vector<double> clock = Clock(run, results.builders[set], /*brain=*/false);
        for (size_t i = 0; i < shares.size(); ++i) {
          if (i > 0 && i + 1 < shares.size() && shares[i] == shares[i - 1]) continue;
          absl::StrAppendFormat(&csv, "%s,%d,%.3f,%.1f,%.4f\n", first, i + 1, clock[i],
                                shares[i] > 0 ? known / shares[i] : 0, shares[i]);
        }
      });
}

std::string ComparisonCsv(const Results& results) {
  std::string csv = "variant,baseline,figure,ratio,low,high\n";
  const size_t base = results.baseline();
  const auto line = [&](size_t v, const std::string& figure, const SeedValues& a,
                        const SeedValues& b) {
    const Interval ratio = RatioToBaseline(a, b);
    absl::StrAppendFormat(&csv, "%s,%s,%s,%.4f,%.4f,%.4f\n", results.experiment.variants[v].label,
                          results.experiment.baseline, figure, ratio.value, ratio.low, ratio.high);
  };
  for (size_t v = 0; v < results.runs.size(); ++v) {
    for (const double share : kShares) {
      const std::string percent = absl::StrFormat("%.0f", 100 * share);
      line(v, "trials_" + percent, TrialsToShare(results, v, share),
           TrialsToShare(results, base, share));
      line(v, "device_s_" + percent, SecondsToShare(results, v, share, false),
           SecondsToShare(results, base, share, false));
    }
    line(v, "area", Areas(results, v), Areas(results, base));
    for (const int64_t trials : {int64_t{16}, int64_t{64}, results.experiment.trials}) {
      line(v, absl::StrCat("share_", trials), Shares(results, v, trials),
           Shares(results, base, trials));
    }
  }
  return csv;
}

std::string TimeCsv(const Results& results) {
  return RunLines(
      results, "propose_s,train_s,build_s,run_s,s_90,s_95,s_99",
      [&](const RunResult& run, size_t set, const std::string& first, std::string& csv) {
        absl::StrAppendFormat(&csv, "%s,%.4f,%.4f,%.3f,%.3f", first, run.propose_ms / 1e3,
                              run.train_ms / 1e3, BuildMs(run) / 1e3, RunMs(run) / 1e3);
        for (const double share : kShares) {
          absl::StrAppendFormat(
              &csv, ",%.3f",
              SecondsTo(run, results.best_latency_ns[set], results.builders[set], share, true));
        }
        csv += "\n";
      });
}

}  // namespace hone::lab
