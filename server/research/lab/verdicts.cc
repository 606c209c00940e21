#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/median.h"
#include "common/base/rng.h"
#include "server/research/lab/claims.h"

namespace hone::lab {
namespace {

constexpr int kVerdictResamplings = 2000;
constexpr double kVerdictTail = 0.025;
constexpr size_t kLeastSeeds = 2;      // fewer do not tell how much seeds differ
constexpr size_t kResampledTasks = 3;  // fewer tasks are kept as they are

// The best latency after the first `trials` trials; 0: none ran.
double BestAfter(const ClaimRun& run, size_t trials) {
  double best = 0;
  for (size_t i = 0; i < std::min(trials, run.latency_ns.size()); ++i) {
    if (run.latency_ns[i] > 0 && (best == 0 || run.latency_ns[i] < best)) best = run.latency_ns[i];
  }
  return best;
}

// The trials or seconds until a run is as fast as the reference. One that never is counts with all
// of them: its value is a lower bound.
double UntilReference(const ClaimRun& run, double reference_ns, bool seconds) {
  for (size_t i = 0; i < run.latency_ns.size(); ++i) {
    if (run.latency_ns[i] > 0 && run.latency_ns[i] <= reference_ns)
      return seconds ? run.seconds[i] : static_cast<double>(i + 1);
  }
  return seconds ? run.seconds.back() : static_cast<double>(run.latency_ns.size());
}

// The geometric mean of the best latency so far over the seconds up to `end`. Before the first
// result, that counts, also if it comes after `end`.
double MeanUntil(const ClaimRun& run, double end) {
  double sum = 0, before = 0, best = 0;
  for (size_t i = 0; i < run.latency_ns.size() && before < end; ++i) {
    const double now = std::min(run.seconds[i], end), latency_ns = run.latency_ns[i];
    if (best > 0) sum += (now - before) * std::log(best);
    if (latency_ns > 0 && best == 0) sum += now * std::log(latency_ns);
    if (latency_ns > 0 && (best == 0 || latency_ns < best)) best = latency_ns;
    before = now;
  }
  if (best > 0) return std::exp(sum / before);
  for (const double latency_ns : run.latency_ns) {
    if (latency_ns > 0) return latency_ns;
  }
  return 0;
}

// The logarithms of the measure of one task, by seed.
struct TaskValues {
  std::vector<double> method, baseline;
};

double MeanOfValues(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Which seeds a resampling draws, as fractions. They are the same for all tasks, because one model
// may have been trained per seed for all of them.
struct DrawnSeeds {
  std::vector<double> method, baseline;
};

DrawnSeeds DrawSeeds(size_t most, Rng& rng) {
  constexpr uint64_t kSteps = uint64_t{1} << 32;
  DrawnSeeds drawn;
  for (auto* list : {&drawn.method, &drawn.baseline}) {
    for (size_t i = 0; i < most; ++i)
      list->push_back(static_cast<double>(rng.Below(kSteps)) / static_cast<double>(kSteps));
  }
  return drawn;
}

double ResampledMean(const std::vector<double>& values, const std::vector<double>& drawn) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum += values[static_cast<size_t>(drawn[i] * static_cast<double>(values.size()))];
  return sum / static_cast<double>(values.size());
}

size_t MostSeeds(const std::vector<TaskValues>& tasks) {
  size_t most = 0;
  for (const TaskValues& task : tasks)
    most = std::max({most, task.method.size(), task.baseline.size()});
  return most;
}

double Difference(const TaskValues& task) {
  return MeanOfValues(task.method) - MeanOfValues(task.baseline);
}

double ResampledDifference(const TaskValues& task, const DrawnSeeds& drawn) {
  return ResampledMean(task.method, drawn.method) - ResampledMean(task.baseline, drawn.baseline);
}

// By how much a bootstrap over n values is too narrow: it takes the values' own variance, and the
// quantile of a normal distribution instead of Student's with n - 1 degrees of freedom.
double Widening(size_t n) {
  constexpr double kNormal = 1.960;
  constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  if (n < 2) return 1;  // the interval has no width
  const double count = static_cast<double>(n);
  const double quantile =
      n - 2 < std::size(kStudent) ? kStudent[n - 2] : kNormal + 2.4 / (count - 1);
  return quantile / kNormal * std::sqrt(count / (count - 1));
}

// `n`: the number of values that decide the interval.
Interval RatioOf(double difference, const std::vector<double>& resampled, size_t n) {
  const auto end = [&](double share) {
    return std::exp(difference + (Quantile(resampled, share) - difference) * Widening(n));
  };
  return {std::exp(difference), end(kVerdictTail), end(1 - kVerdictTail)};
}

Interval RatioOfTask(const TaskValues& task) {
  const size_t most = MostSeeds({task});
  std::vector<double> resampled;
  for (int i = 0; i < kVerdictResamplings; ++i) {
    Rng rng(/*seed=*/2, static_cast<uint64_t>(i));
    resampled.push_back(ResampledDifference(task, DrawSeeds(most, rng)));
  }
  return RatioOf(Difference(task), resampled, std::min(task.method.size(), task.baseline.size()));
}

TaskValues ValuesOf(const Contrast& contrast, const std::vector<const ClaimRun*>& method,
                    const std::vector<const ClaimRun*>& baseline) {
  std::vector<double> finals;
  for (const ClaimRun* run : baseline) finals.push_back(BestAfter(*run, run->latency_ns.size()));
  const double reference_ns = Median(finals);
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto* runs : {&method, &baseline}) {
    for (const ClaimRun* run : *runs) shortest = std::min(shortest, run->seconds.back());
  }
  const auto value_of = [&](const ClaimRun& run) {
    if (contrast.measure == Contrast::Measure::kLatency) {
      const double trials = std::ceil(contrast.share * run.trials - 1e-9);
      return BestAfter(run, std::max<size_t>(1, static_cast<size_t>(trials)));
    }
    if (contrast.measure == Contrast::Measure::kMean) return MeanUntil(run, shortest);
    return UntilReference(run, reference_ns, contrast.measure == Contrast::Measure::kSeconds);
  };
  TaskValues values;
  for (const ClaimRun* run : method) values.method.push_back(std::log(value_of(*run)));
  for (const ClaimRun* run : baseline) values.baseline.push_back(std::log(value_of(*run)));
  return values;
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "reproduced";
    case Verdict::kRefuted:
      return "refuted";
    case Verdict::kNotSignificant:
      return "not significant";
    case Verdict::kNotRun:
      return "not run";
  }
  return "";
}

std::string MeasureName(const Contrast& contrast) {
  const std::string of = contrast.task.empty() ? "" : absl::StrCat(" (", contrast.task, ")");
  switch (contrast.measure) {
    case Contrast::Measure::kTrials:
      return "trials" + of;
    case Contrast::Measure::kSeconds:
      return "seconds" + of;
    case Contrast::Measure::kMean:
      return "mean over the seconds" + of;
    case Contrast::Measure::kLatency:
      break;
  }
  const std::string latency = contrast.task.empty() ? "latency" : contrast.task;
  return contrast.share == 1 ? latency
                             : absl::StrFormat("%s at %.3g of the trials", latency, contrast.share);
}

std::string ComparedText(const Contrast& contrast) {
  return absl::StrCat(contrast.method, " : ", contrast.baseline, ", ", MeasureName(contrast));
}

std::string PublishedText(const Contrast& contrast) {
  if (contrast.published.empty()) return "–";
  if (contrast.published_ratio == 0) return contrast.published;
  return absl::StrFormat("%s (%.2f)", contrast.published, contrast.published_ratio);
}

// With more digits if it is near to 1.
std::string RatioText(double ratio) {
  return std::abs(ratio - 1) < 0.005 ? absl::StrFormat("%.4f", ratio)
                                     : absl::StrFormat("%.2f", ratio);
}

std::string IntervalText(const Interval& ratio) {
  return absl::StrCat(RatioText(ratio.low), "–", RatioText(ratio.high));
}

// The verdict, and what the runs say about the published number.
std::string VerdictCell(const Contrast& contrast, const Finding& finding) {
  std::string text = VerdictName(finding.verdict);
  if (finding.verdict == Verdict::kNotRun || contrast.published_ratio == 0) return text;
  const Interval& ratio = contrast.best_case ? finding.best : finding.ratio;
  if (contrast.best_case) {
    absl::StrAppendFormat(&text, "; at best %.2f (%s), for %s", ratio.value, IntervalText(ratio),
                          finding.best_task);
  }
  absl::StrAppendFormat(&text, "; %.2f is %s", contrast.published_ratio,
                        ratio.low > contrast.published_ratio ? "not reached" : "possible");
  return text;
}

// The line of a contrast without the cells in front of "ours".
std::string LineOfFinding(const Contrast& contrast, const std::string& measured,
                          const Finding& finding) {
  if (finding.verdict == Verdict::kNotRun) {
    return absl::StrFormat(" – | – | %s | – | – |\n", VerdictName(finding.verdict));
  }
  return absl::StrFormat(" %s | %s | %s | %s, %d × %d | %.0f |\n", RatioText(finding.ratio.value),
                         IntervalText(finding.ratio), VerdictCell(contrast, finding), measured,
                         finding.tasks, finding.seeds, finding.device_seconds);
}

// The lines of a page by preset, claim, and what is compared, and then by what they were measured
// on with the number of trials, as LineOfFinding returns them. Those without a verdict are left
// out.
using PageLines = std::map<std::array<std::string, 3>, std::map<std::string, std::string>>;

// Whether runs of a claim can have been measured on this. A claim that was changed keeps no rows of
// its earlier forms.
bool IsOfClaim(const Claim& claim, absl::string_view measured) {
  const absl::string_view own = ClaimDeviceName(claim.device);
  if (claim.on_machine &&
      absl::StartsWith(measured, absl::StrCat(ClaimDeviceName(ClaimDevice::kMachine), " ")))
    return true;
  switch (claim.device) {
    case ClaimDevice::kSimulated:
    case ClaimDevice::kFrozen:
      return absl::StartsWith(measured, absl::StrCat(own, ", "));
    case ClaimDevice::kSample:
      if (absl::StartsWith(measured, absl::StrCat(kPoolsDevice, " "))) return true;
      break;
    case ClaimDevice::kNetworks:
    case ClaimDevice::kMachine:
      break;
  }
  return absl::StartsWith(measured, absl::StrCat(own, " "));  // with a dataset or a target
}

PageLines LinesOfPage(absl::string_view page) {
  constexpr size_t kCells = 10;  // with the empty ones at both ends
  PageLines lines;
  std::string preset;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, "## ")) preset = std::string(line.substr(3));
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() != kCells) continue;
    const std::string rest = absl::StrJoin(cells.begin() + 4, cells.end(), "|");
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    const size_t comma = cells[7].rfind(", ");  // before the tasks and seeds
    if (comma == std::string::npos) continue;
    lines[{preset, cells[1], cells[3]}][cells[7].substr(0, comma)] = absl::StrCat(rest, "\n");
  }
  return lines;
}

// What a way to search consists of.
std::string PartsOf(const ClaimVariant& variant) {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view what, const std::string& name) {
    if (!name.empty()) parts.push_back(absl::StrCat(what, " `", name, "`"));
  };
  add("strategy", variant.strategy);
  add("model", variant.cost_model);
  add("features", variant.feature_set);
  add("spaces", variant.space);
  add("of them", variant.only);
  add("scheduler", variant.scheduler);
  add("objective", variant.objective);
  if (variant.transfers) parts.push_back("with the results of another task or machine");
  if (variant.results > 0) parts.push_back(absl::StrCat(variant.results, " results of each task"));
  return absl::StrJoin(parts, ", ");
}

// The commands that make the runs of a claim.
std::string CommandsOf(const Claim& claim) {
  const bool sample =
      claim.device == ClaimDevice::kSample || claim.device == ClaimDevice::kNetworks;
  std::string command = absl::StrCat("hone-lab claims ", claim.name);
  if (sample) absl::StrAppend(&command, " --sample SAMPLE");
  if (claim.device == ClaimDevice::kSample)
    absl::StrAppend(&command, " --other OTHER [--pools POOLS]");
  std::string text = absl::StrCat("`", command, " --out RUNS` (", ClaimDeviceName(claim.device));
  if (!claim.on_machine) return text + ")";
  return absl::StrCat(text, "), `hone-lab claims ", claim.name, " --machine --out RUNS` (",
                      ClaimDeviceName(ClaimDevice::kMachine), ")");
}

constexpr char kIntroduction[] =
    R"(# What the literature claims about search, and what holds here

Papers on tuning claim that one way to search is better than another. Each section below is such a claim as a preset of
`hone-lab`: the ways to search, the tasks, and how they are compared. `hone-lab verdicts` writes this page from the runs of `hone-lab claims`
(`server/research/lab/README.md`).

**To repeat a row**, run the command of its section, which makes the missing runs as lines of JSON in the folder RUNS, and then
`hone-lab verdicts RUNS --out tests/bench/results/seeds.md`; with `--trials N` if the row names another number of trials than `--list` does. Delete
lines to repeat them. Rows that these runs do not repeat stay as they are. SAMPLE is a dataset of measured candidates, such as
`tests/bench/sample/x86_64-znver3-avx2-2c.h5`, and OTHER one of another machine.

**Ours** is the ratio of the first way to search to the second, a geometric mean over tasks. Below 1, the first one is better. What is
compared is

- *latency*: that of the fastest kernel after all trials, or after the given share of them; a run without a kernel by then is left out;
- *mean over the seconds*: the latency of the fastest kernel so far, a mean over the time in which all runs searched, which counts how early it is good.
  Until its first kernel, a run counts with that one;
- *trials* or *seconds* until a run has the median final latency of the second way. A run that never has it counts with all of its trials. As
  the median is that of the second way, about half of its own runs never have it, so such a ratio is neither an upper nor a lower bound.

The interval of 95 % is from a bootstrap over seeds, and over tasks if there are at least three, widened for few of them (the quantile of
Student's distribution for the smaller of both numbers). The seeds that are drawn are the same for all tasks. It is not corrected for the number of rows: of
forty rows without any difference, two would have a verdict.

| verdict | what it means |
|---|---|
| reproduced | the whole interval is below 1: the first way to search is better, as claimed |
| refuted | the whole interval is above 1: it is worse |
| not significant | the interval contains 1: these runs do not decide it |
| not run | there are no runs yet, or of one seed only |

A verdict says whether the direction of a claim holds. If the published number is a ratio of the same measure, it stands in parentheses, and the verdict also says
whether it is *possible*, or *not reached* because the whole interval is above it. "Up to" is compared with the task that is the best here; its interval is from a bootstrap over
seeds, and too favourable, because the task is chosen afterwards. *Measured on* says where the latencies come from, with the number of
tasks and seeds. Device s are the seconds that building and measuring took, or would take.

What the papers also claim and no row compares: results on GPUs, such as the time until cuDNN is passed; how much runs with different seeds vary; TLP and
MTL-TLP on the other platforms of their tables; and FlexTensor's time compared with AutoTVM, whose published ratio could not be found again.

| measured on | where a latency comes from |
|---|---|
| machine, with its target | `hone tune` on the machine; nothing else decides how fast a kernel is |
| simulated | the draft's estimate with the constants of another machine, and noise: only how a search copes with a draft that is wrong |
| sample, with its dataset and that of the other machine | the candidates of a dataset in the order of a model that was trained on other tasks |
| large pools | the same, for a dataset with over a thousand uniform draws of each task (`--pools`) |
| networks of a sample, with its dataset | the candidates of a dataset: in each task a model chooses 16 in turn, and a scheduler chooses the task |
| frozen model | the score of a model: only the climbing |
)";

}  // namespace

Finding Judge(const Contrast& contrast, absl::Span<const ClaimRun> runs) {
  std::map<std::string, std::pair<std::vector<const ClaimRun*>, std::vector<const ClaimRun*>>>
      by_task;
  Finding finding;
  std::set<int> seeds;
  for (const ClaimRun& run : runs) {
    if (!contrast.task.empty() && run.task != contrast.task) continue;
    if (BestAfter(run, 1) == 0 && BestAfter(run, run.latency_ns.size()) == 0) continue;
    if (run.variant == contrast.method) {
      by_task[run.task].first.push_back(&run);
    } else if (run.variant == contrast.baseline) {
      by_task[run.task].second.push_back(&run);
    } else {
      continue;
    }
    seeds.insert(run.seed);
    finding.device_seconds += run.device_seconds;
  }
  std::vector<TaskValues> tasks;
  std::vector<std::string> names;
  for (const auto& [task, both] : by_task) {
    if (both.first.empty() || both.second.empty()) continue;
    TaskValues values = ValuesOf(contrast, both.first, both.second);
    // A run whose trials of the share failed has no latency.
    const auto failed = [](double value) { return !std::isfinite(value); };
    std::erase_if(values.method, failed);
    std::erase_if(values.baseline, failed);
    if (values.method.empty() || values.baseline.empty()) continue;
    tasks.push_back(std::move(values));
    names.push_back(task);
  }
  if (tasks.empty()) return {};
  std::vector<double> all, resampled;
  for (const TaskValues& task : tasks) all.push_back(Difference(task));
  const size_t most = MostSeeds(tasks);
  size_t fewest = most;
  for (const TaskValues& task : tasks)
    fewest = std::min({fewest, task.method.size(), task.baseline.size()});
  const size_t best = std::min_element(all.begin(), all.end()) - all.begin();
  finding.best_task = names[best];
  finding.best = RatioOfTask(tasks[best]);
  for (int i = 0; i < kVerdictResamplings; ++i) {
    Rng rng(/*seed=*/1, static_cast<uint64_t>(i));
    const DrawnSeeds seeds_drawn = DrawSeeds(most, rng);
    std::vector<double> drawn;
    for (size_t t = 0; t < tasks.size(); ++t) {
      const TaskValues& task = tasks[tasks.size() < kResampledTasks ? t : rng.Below(tasks.size())];
      drawn.push_back(ResampledDifference(task, seeds_drawn));
    }
    resampled.push_back(MeanOfValues(drawn));
  }
  const size_t units = tasks.size() < kResampledTasks ? fewest : std::min(fewest, tasks.size());
  finding.ratio = RatioOf(MeanOfValues(all), resampled, units);
  finding.tasks = static_cast<int>(tasks.size());
  finding.seeds = static_cast<int>(seeds.size());
  finding.verdict = fewest < kLeastSeeds     ? Verdict::kNotRun
                    : finding.ratio.high < 1 ? Verdict::kReproduced
                    : finding.ratio.low > 1  ? Verdict::kRefuted
                                             : Verdict::kNotSignificant;
  return finding;
}

std::string VerdictText(absl::Span<const ClaimRun> runs, absl::string_view page) {
  PageLines earlier = LinesOfPage(page);
  std::string text = kIntroduction;
  for (const Claim& claim : Claims()) {
    absl::StrAppend(&text, "\n## ", claim.name, "\n\n", claim.about, " (", claim.source, ")\n\n");
    for (const ClaimVariant& variant : claim.variants)
      absl::StrAppend(&text, "- *", variant.label, "*: ", PartsOf(variant), "\n");
    absl::StrAppend(&text, "\nCommands: ", CommandsOf(claim),
                    "\n\n| what is claimed | published | compared | ours | interval | verdict | "
                    "measured on, tasks × seeds | device s |\n|---|---|---|---|---|---|---|---|\n");
    // Runs with different numbers of trials are not mixed.
    std::map<std::pair<std::string, int>, std::vector<ClaimRun>> by_form;
    for (const ClaimRun& run : runs) {
      if (run.claim == claim.name && !run.small) by_form[{run.device, run.trials}].push_back(run);
    }
    for (const Contrast& contrast : claim.contrasts) {
      std::map<std::string, std::string>& lines =
          earlier[{claim.name, contrast.claim, ComparedText(contrast)}];
      std::erase_if(lines, [&](const auto& line) { return !IsOfClaim(claim, line.first); });
      for (const auto& [form, some] : by_form) {
        const Finding finding = Judge(contrast, some);
        if (finding.verdict == Verdict::kNotRun) continue;
        const std::string measured = absl::StrCat(form.first, ", ", form.second, " trials");
        lines[measured] = LineOfFinding(contrast, measured, finding);
      }
      if (lines.empty()) lines[""] = LineOfFinding(contrast, "", {});
      for (const auto& [measured, line] : lines) {
        absl::StrAppend(&text, "| ", contrast.claim, " | ", PublishedText(contrast), " | ",
                        ComparedText(contrast), " |", line);
      }
    }
  }
  return text;
}

}  // namespace hone::lab
