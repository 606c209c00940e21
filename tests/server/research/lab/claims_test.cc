#include "server/research/lab/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/operator/operator.h"
#include "server/tuner/search/site_values.h"
#include "server/tuner/space/maker.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Claim& Preset(absl::string_view name) {
  return *absl::c_find_if(Claims(), [&](const Claim& claim) { return claim.name == name; });
}

// Runs of two ways to search on three tasks, with noise of `noise`. The method needs `factor` times
// the latency and the trials of the baseline.
std::vector<ClaimRun> Runs(double factor, double noise) {
  std::vector<ClaimRun> runs;
  Rng rng(4);
  for (const char* task : {"a", "b", "c"}) {
    for (int seed = 1; seed <= 5; ++seed) {
      for (const bool method : {true, false}) {
        ClaimRun run{.claim = "zheng-tuners",
                     .device = "simulated",
                     .variant = method ? "annealing" : "random",
                     .task = task,
                     .seed = seed,
                     .trials = 10,
                     .device_seconds = 1};
        const double scale = (method ? factor : 1) * std::exp(noise * (rng.Uniform() - 0.5));
        for (int i = 0; i < 10; ++i) {
          run.latency_ns.push_back(1000 * scale * (i == 0 ? 0 : 1 + 1.0 / i));
          run.seconds.push_back(0.5 * (i + 1));
        }
        runs.push_back(std::move(run));
      }
    }
  }
  return runs;
}

constexpr Contrast::Measure kMeasures[] = {Contrast::Measure::kLatency, Contrast::Measure::kTrials,
                                           Contrast::Measure::kSeconds, Contrast::Measure::kMean};

Contrast ContrastBy(Contrast::Measure measure, double share = 1) {
  return {.method = "annealing", .baseline = "random", .measure = measure, .share = share};
}

TEST(VerdictTest, ComparesLatencies) {
  const Finding finding = Judge(ContrastBy(Contrast::Measure::kLatency), Runs(0.8, 0.05));
  EXPECT_EQ(finding.verdict, Verdict::kReproduced);
  EXPECT_NEAR(finding.ratio.value, 0.8, 0.02);
  EXPECT_LT(finding.ratio.low, 0.8);
  EXPECT_GT(finding.ratio.high, 0.79);
  EXPECT_EQ(finding.tasks, 3);
  EXPECT_EQ(finding.seeds, 5);
  EXPECT_EQ(finding.device_seconds, 30);
  // The first trial of each run failed, so there is nothing to compare yet.
  EXPECT_EQ(Judge(ContrastBy(Contrast::Measure::kLatency, 0.1), Runs(0.8, 0)).verdict,
            Verdict::kNotRun);
}

TEST(VerdictTest, CountsTrialsAndSecondsToTheBaseline) {
  // Without noise, the baseline ends at 1111 ns with its tenth trial. The method is at 1067 ns
  // after its fourth one.
  const auto runs = Runs(0.8, 0);
  EXPECT_NEAR(Judge(ContrastBy(Contrast::Measure::kTrials), runs).ratio.value, 0.4, 1e-9);
  EXPECT_NEAR(Judge(ContrastBy(Contrast::Measure::kSeconds), runs).ratio.value, 0.4, 1e-9);
}

TEST(VerdictTest, ComparesTheMeanOverTime) {
  // 8 until the result at 1 s, 2 from there to 4 s, against 8 all the time: (8·2³)^¼ / 8. The
  // longer run only counts for 4 s.
  const std::vector<ClaimRun> runs = {
      {.variant = "annealing", .task = "a", .latency_ns = {8, 2, 4}, .seconds = {0.5, 1, 4}},
      {.variant = "random", .task = "a", .latency_ns = {0, 8, 1}, .seconds = {1, 2, 9}}};
  EXPECT_NEAR(Judge(ContrastBy(Contrast::Measure::kMean), runs).ratio.value, std::pow(0.25, 0.75),
              1e-9);
}

// The method's first result comes after the other search has ended. It counts, because without it
// only the runs that began well would be compared.
TEST(VerdictTest, ARunWithoutAResultInTimeCountsWithItsFirst) {
  const std::vector<ClaimRun> runs = {
      {.variant = "annealing", .task = "a", .latency_ns = {0, 0, 8}, .seconds = {2, 4, 6}},
      {.variant = "annealing", .task = "a", .seed = 1, .latency_ns = {2, 1}, .seconds = {1, 5}},
      {.variant = "random", .task = "a", .latency_ns = {4, 4}, .seconds = {1, 3}}};
  EXPECT_NEAR(Judge(ContrastBy(Contrast::Measure::kMean), runs).ratio.value, 1, 1e-9);
}

TEST(VerdictTest, RefutesOrSaysNothing) {
  for (const Contrast::Measure measure : kMeasures) {
    EXPECT_EQ(Judge(ContrastBy(measure), Runs(1, 0.3)).verdict, Verdict::kNotSignificant);
  }
  EXPECT_EQ(Judge(ContrastBy(Contrast::Measure::kLatency), Runs(1.3, 0.05)).verdict,
            Verdict::kRefuted);
  EXPECT_EQ(Judge(ContrastBy(Contrast::Measure::kLatency), {}).verdict, Verdict::kNotRun);
}

// Two ways to search that are alike get a verdict in about one of twenty comparisons, also with few
// tasks and seeds, and if all tasks share what differs between seeds.
TEST(VerdictTest, NoDifferenceSeldomGivesAVerdict) {
  constexpr int kComparisons = 100, kMostVerdicts = 10;
  for (const int tasks : {1, 2, 4, 12}) {
    for (const bool shared : {false, true}) {
      int verdicts = 0;
      for (int comparison = 0; comparison < kComparisons; ++comparison) {
        Rng rng(5, static_cast<uint64_t>(comparison));
        const auto noise = [&] { return rng.Uniform() + rng.Uniform() + rng.Uniform() - 1.5; };
        std::vector<ClaimRun> runs;
        for (const char* variant : {"annealing", "random"}) {
          for (int seed = 1; seed <= 5; ++seed) {
            const double common = shared ? 0.2 * noise() : 0;
            for (int task = 0; task < tasks; ++task) {
              runs.push_back({.variant = variant,
                              .task = absl::StrCat("t", task),
                              .seed = seed,
                              .trials = 1,
                              .latency_ns = {1000 * std::exp(common + 0.1 * noise())},
                              .seconds = {1}});
            }
          }
        }
        const Finding finding = Judge(ContrastBy(Contrast::Measure::kLatency), runs);
        verdicts += finding.verdict != Verdict::kNotSignificant;
      }
      EXPECT_LE(verdicts, kMostVerdicts) << tasks << " tasks, shared " << shared;
    }
  }
}

// What "up to" says is compared with the best task.
TEST(VerdictTest, ThePublishedNumberIsPossibleOrNotReached) {
  std::vector<ClaimRun> runs = Runs(0.8, 0.05);
  for (ClaimRun& run : runs) {
    run.claim = "rocke-trials";
    run.variant = run.variant == "annealing" ? "bayesian-index" : "evolutionary";
    if (run.task != "b" || run.variant == "evolutionary") continue;
    for (double& latency_ns : run.latency_ns) latency_ns *= 0.9;
  }
  const Finding finding = Judge(Preset("rocke-trials").contrasts[1], runs);
  EXPECT_EQ(finding.best_task, "b");
  EXPECT_NEAR(finding.best.value, 0.72, 0.02);
  EXPECT_LT(finding.best.low, finding.best.value);
  EXPECT_GT(finding.best.high, finding.best.value);
  const std::string text = VerdictText(runs);
  // Trials: 2 of 10 for the best task, up to 68 % fewer; latencies: up to 10 % lower.
  EXPECT_THAT(text, HasSubstr("| up to 68 % fewer (0.32) | bayesian-index : evolutionary, trials"));
  EXPECT_THAT(text, HasSubstr("for b; 0.32 is possible | simulated"));
  EXPECT_THAT(text, HasSubstr("for b; 0.91 is possible | simulated"));
  for (ClaimRun& run : runs) {
    if (run.variant == "evolutionary") continue;
    for (double& latency_ns : run.latency_ns) latency_ns *= 1.5;
  }
  EXPECT_THAT(VerdictText(runs), HasSubstr("for b; 0.91 is not reached | simulated"));
}

TEST(VerdictTest, TableHasALineForEveryContrast) {
  const std::string text = VerdictText(Runs(0.8, 0.05));
  for (const Claim& claim : Claims()) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("## ", claim.name, "\n\n", claim.about)));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("`hone-lab claims ", claim.name, " ")));
    for (const ClaimVariant& variant : claim.variants)
      EXPECT_THAT(text, HasSubstr(absl::StrCat("- *", variant.label, "*: ")));
    for (const Contrast& contrast : claim.contrasts)
      EXPECT_THAT(text, HasSubstr(absl::StrCat("\n| ", contrast.claim, " | ")));
  }
  EXPECT_THAT(text, HasSubstr("| reproduced | simulated, 10 trials, 3 × 5 | 30 |"));
  EXPECT_THAT(text, HasSubstr("| – | – | not run | – | – |"));
  EXPECT_THAT(text, HasSubstr("| f1 : round-robin, trials (latency) |"));
}

// The runs of one machine do not remove what another one has shown.
TEST(VerdictTest, RowsWithoutRunsStay) {
  const std::string page = VerdictText(Runs(0.8, 0.05));
  EXPECT_EQ(VerdictText({}, page), page);
  std::vector<ClaimRun> others = Runs(1.3, 0.05);
  for (ClaimRun& run : others) run.device = "machine x86_64-test-2c";
  const std::string both = VerdictText(others, page);
  EXPECT_THAT(both, HasSubstr("| reproduced | simulated, 10 trials, 3 × 5 | 30 |"));
  EXPECT_THAT(both, HasSubstr("| refuted | machine x86_64-test-2c, 10 trials, 3 × 5 | 30 |"));
  // Runs with the same form replace the row.
  const std::string again = VerdictText(Runs(1.3, 0.05), both);
  EXPECT_THAT(again, HasSubstr("| refuted | simulated, 10 trials, 3 × 5 | 30 |"));
  EXPECT_THAT(again, Not(HasSubstr("| reproduced | simulated, 10 trials")));
  EXPECT_THAT(again, HasSubstr("machine x86_64-test-2c"));
  for (const absl::string_view damaged : {"", "|", "| a | b | c | d | e | f | g | h |", "## \n| |"})
    EXPECT_EQ(VerdictText(Runs(0.8, 0.05), damaged), page);
}

TEST(ClaimsTest, ContrastsNameVariants) {
  std::set<std::string> names;
  for (const Claim& claim : Claims()) {
    EXPECT_TRUE(names.insert(claim.name).second) << claim.name;
    const auto has = [&](const std::string& label) {
      return absl::c_count_if(claim.variants, [&](const auto& v) { return v.label == label; }) == 1;
    };
    for (const Contrast& contrast : claim.contrasts) {
      EXPECT_TRUE(has(contrast.method)) << contrast.method;
      EXPECT_TRUE(has(contrast.baseline)) << contrast.baseline;
    }
  }
}

// Runs of one seed do not tell how much seeds differ.
TEST(VerdictTest, OneSeedGivesNoVerdict) {
  std::vector<ClaimRun> runs = Runs(0.5, 0);
  std::erase_if(runs, [](const ClaimRun& run) { return run.seed > 1; });
  EXPECT_EQ(Judge(ContrastBy(Contrast::Measure::kLatency), runs).verdict, Verdict::kNotRun);
  EXPECT_EQ(VerdictText(runs), VerdictText({}));
}

// What no run of the preset as it is now can replace is dropped.
TEST(VerdictTest, RowsOfEarlierFormsOfAPresetAreDropped) {
  const std::string page = VerdictText(Runs(0.8, 0.05));
  const std::string stale =
      absl::StrReplaceAll(page, {{"| simulated, 10 trials", "| measured pool, 10 trials"}});
  EXPECT_EQ(VerdictText({}, stale), VerdictText({}));
}

// Small runs say nothing, so they neither make rows nor replace any.
TEST(VerdictTest, SmallRunsAreLeftOut) {
  const std::string page = VerdictText(Runs(0.8, 0.05));
  std::vector<ClaimRun> small = Runs(1.3, 0.05);
  for (ClaimRun& run : small) run.small = true;
  EXPECT_EQ(VerdictText(small, page), page);
}

// Every way to search of every preset runs. Those that differ only in their design spaces run once.
TEST(ClaimsTest, EveryVariantRuns) {
  std::set<std::string> known;
  for (const Claim& claim : Claims()) {
    if (claim.device != ClaimDevice::kSimulated && claim.device != ClaimDevice::kFrozen) continue;
    for (const ClaimVariant& variant : claim.variants) {
      ASSERT_THAT(CheckVariant(variant), IsOk()) << claim.name << " " << variant.label;
      const bool is_new = known
                              .insert(absl::StrCat(variant.strategy, " ", variant.cost_model, " ",
                                                   variant.feature_set, variant.transfers))
                              .second;
      if (!is_new) continue;
      HONE_ASSERT_OK_AND_ASSIGN(
          const ClaimRun run,
          RunSearch(claim, variant, claim.tasks[0], /*seed=*/1, /*trials=*/3, /*population=*/8));
      EXPECT_EQ(run.latency_ns.size(), 3u) << claim.name << " " << variant.label;
      EXPECT_EQ(run.seconds.size(), 3u);
      EXPECT_TRUE(absl::c_is_sorted(run.seconds));
      EXPECT_GT(*absl::c_max_element(run.latency_ns), 0);
    }
  }
}

// Zheng asks for cooling schedules in spaces of over ten million points.
TEST(ClaimsTest, TheSpaceOfTheFrozenModelIsLarge) {
  const Claim& claim = Preset("zheng-cooling");
  EXPECT_EQ(claim.device, ClaimDevice::kFrozen);
  const target::Target target = *target::TargetByName("x86-avx2");
  std::vector<std::string> words = absl::StrSplit(claim.tasks[0], ' ');
  const std::string name = words[0];
  words.erase(words.begin());
  const auto workload = std::make_shared<const ir::Workload>(*op::BuildWorkload(name, words));
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto spaces,
      space::MakeSpaces({.workload = workload, .target = &target}, claim.variants[0].space));
  for (const auto& space : spaces) {
    if (space->name() != claim.variants[0].only) continue;
    Rng rng(1);
    double points = 1;
    search::SiteValues lists;
    const std::vector<int64_t> decisions = *space->Sample(rng);
    const std::vector<schedule::Site> sites = *space->Sites(decisions);
    for (const schedule::Site& site : sites) points *= static_cast<double>(lists.Count(site));
    EXPECT_GT(points, 1e7);
    return;
  }
  FAIL() << "there is no design space " << claim.variants[0].only;
}

TEST(ClaimsTest, TheSameSeedGivesTheSameLatencies) {
  const Claim& claim = Preset("zheng-transfer");
  const ClaimVariant& variant = claim.variants[0];
  ASSERT_TRUE(variant.transfers);
  const auto run = [&](int seed) {
    return RunSearch(claim, variant, claim.tasks[0], seed, /*trials=*/20, 8)->latency_ns;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

// A sample of one task whose candidates are as slow as the only feature says.
Sample OneTask(int candidates) {
  JudgedTask task{.name = "task", .workload = "text", .held_out = true, .best_ns = 1000};
  cost_model::FeatureMatrix features{.columns = 1};
  for (int i = 0; i < candidates; ++i) {
    const float slowness = static_cast<float>((i * 37) % candidates);
    features.Append({slowness}, 1);
    task.latency_ns.push_back(1000 * (1 + slowness));
  }
  task.features.push_back(std::move(features));
  Sample sample{.feature_sets = {"statement"}};
  sample.tasks.push_back(std::move(task));
  return sample;
}

TEST(RunOnSampleTest, TakesEachCandidateOnceAndLearns) {
  const Claim claim{.name = "pool", .device = ClaimDevice::kNetworks};
  const Sample sample = OneTask(200);
  HONE_ASSERT_OK_AND_ASSIGN(const ClaimRun all,
                            RunOnSample(claim, {.label = "trees", .cost_model = "xgboost"}, sample,
                                        sample.tasks[0], 1, 1000));
  std::vector<double> taken = all.latency_ns, wanted = sample.tasks[0].latency_ns;
  absl::c_sort(taken);
  absl::c_sort(wanted);
  EXPECT_EQ(taken, wanted);
  // After the first 16, which are random, the model knows what is fast.
  const std::vector<double> next(all.latency_ns.begin() + 16, all.latency_ns.begin() + 48);
  const std::vector<double> first(all.latency_ns.begin(), all.latency_ns.begin() + 16);
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  EXPECT_LT(mean(next), 0.6 * mean(first));
}

// The committed samples: the models learn from the first one, and order the second one's
// candidates.
TEST(RunClaimTest, OrdersPoolsOfAnotherDataset) {
  const TemporaryFolder folder;
  const std::string samples = "tests/bench/sample/";
  Claim claim = Preset("tlp-topk");
  std::erase_if(claim.variants, [](const ClaimVariant& each) { return each.label != "trees"; });
  const ClaimOptions options{.small = true,
                             .sample = samples + "x86_64-znver3-avx2-2c.h5",
                             .pools = samples + "x86_64-znver1-avx2-2c.h5",
                             .out = folder.path()};
  ASSERT_THAT(RunClaim(claim, options), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<ClaimRun> runs, ReadClaimRuns(folder.path()));
  HONE_ASSERT_OK_AND_ASSIGN(const auto pools, BestOfSample(options.pools));
  EXPECT_EQ(runs.size(), 2 * pools.size());  // all of its tasks are held out; two seeds
  for (const ClaimRun& run : runs) EXPECT_EQ(run.device, "large pools x86_64-znver1-avx2-2c");
  // Without development tasks, a model would learn nothing, and its order would be random.
  EXPECT_THAT(RunClaim(claim, {.small = true, .sample = options.pools, .out = folder.path()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("only held-out tasks")));
  // Nor would one learn anything from another machine without them.
  ClaimOptions other = options;
  other.other = options.pools;
  EXPECT_THAT(RunClaim(claim, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(options.pools + " has only held-out tasks")));
}

// Two tasks of two networks. Only one of them can become faster, so a scheduler that sees it needs
// fewer trials than equal shares, and the value of each objective is that of the best candidates.
TEST(RunOnNetworksTest, SchedulersContinueTheSearchesOfTasks) {
  Claim claim = Preset("ansor-scheduler");
  Sample sample = OneTask(160);
  sample.tasks.push_back(sample.tasks[0]);
  const std::string workload = op::BuildWorkload("matmul", {"m=64", "n=64", "k=64"})->ToText();
  for (size_t t = 0; t < 2; ++t) {
    JudgedTask& task = sample.tasks[t];
    task.family = claim.networks[t];
    task.workload = workload;
    if (t == 1) task.latency_ns.assign(160, 1000);  // every candidate is the same
  }
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<ClaimRun> runs,
                            RunOnNetworks(claim, sample, /*seed=*/1, /*trials=*/200));
  ASSERT_EQ(runs.size(), claim.variants.size() * claim.tasks.size());
  const auto run_of = [&](absl::string_view variant, absl::string_view task) {
    return *absl::c_find_if(
        runs, [&](const ClaimRun& run) { return run.variant == variant && run.task == task; });
  };
  for (const ClaimRun& run : runs) {
    EXPECT_EQ(run.latency_ns.size(), 200u);
    EXPECT_TRUE(absl::c_is_sorted(run.seconds));
    EXPECT_EQ(run.latency_ns[0], 0) << "the second task has no latency yet";
  }
  EXPECT_DOUBLE_EQ(run_of("round-robin", "latency").latency_ns.back(), 2000);
  EXPECT_DOUBLE_EQ(run_of("f2", "latency-limits").latency_ns.back(), 1250 + 1005);
  EXPECT_NEAR(run_of("f3", "speedup").latency_ns.back(), 1, 1e-9);
  const Contrast contrast{.method = "f1",
                          .baseline = "round-robin",
                          .measure = Contrast::Measure::kTrials,
                          .task = "latency"};
  EXPECT_LT(Judge(contrast, runs).ratio.value, 1);
  sample.tasks.pop_back();
  EXPECT_THAT(RunOnNetworks(claim, sample, 1, 200).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("resnet18 or gpt_small")));
}

// The first network is below its limit with its first results, so a scheduler that knows the limits
// gives the trials to the second one, and one that does not divides them.
TEST(RunOnNetworksTest, LimitsBind) {
  Claim claim = Preset("ansor-scheduler");
  Sample sample = OneTask(128);
  sample.tasks.push_back(sample.tasks[0]);
  for (size_t t = 0; t < 2; ++t) {
    JudgedTask& task = sample.tasks[t];
    task.family = claim.networks[t];
    task.workload = op::BuildWorkload("matmul", {"m=64", "n=64", "k=64"})->ToText();
    // All but a few candidates of the first task are near to the best one.
    for (double& latency_ns : task.latency_ns) {
      latency_ns = t == 0 ? 1000 + latency_ns / 1000 : latency_ns;
    }
  }
  sample.tasks[0].best_ns = 1001;
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<ClaimRun> runs,
                            RunOnNetworks(claim, sample, /*seed=*/1, /*trials=*/64));
  const auto sum_of = [&](absl::string_view variant) {
    for (const ClaimRun& run : runs) {
      if (run.variant == variant && run.task == "latency-limits") return run.latency_ns;
    }
    return std::vector<double>();
  };
  EXPECT_NE(sum_of("f2"), sum_of("round-robin"));
  EXPECT_LE(sum_of("f2").back(), sum_of("round-robin").back());
}

TEST(RunClaimTest, RepeatsNothingAndNamesBadLines) {
  const TemporaryFolder folder;
  Claim claim = Preset("zheng-tuners");
  claim.tasks = {"conv2d n=1 h=7 w=7 ci=32 co=32 k=3 s=1 p=1"};
  const ClaimOptions options{.small = true, .seeds = 2, .trials = 6, .out = folder.path()};
  ASSERT_THAT(RunClaim(claim, options), IsOk());
  const std::string path = absl::StrCat(folder.path(), "/zheng-tuners.jsonl");
  HONE_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(path));
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<ClaimRun> runs, ReadClaimRuns(folder.path()));
  EXPECT_EQ(runs.size(), 4u);
  ASSERT_THAT(RunClaim(claim, options), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const std::string again, ReadFile(path));
  EXPECT_EQ(again, text);
  for (const ClaimRun& run : runs) EXPECT_TRUE(run.small);
  // A small run does not stand for one that is not.
  ClaimOptions whole = options;
  whole.small = false;
  whole.seeds = 1;
  ASSERT_THAT(RunClaim(claim, whole), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<ClaimRun> both, ReadClaimRuns(folder.path()));
  EXPECT_EQ(both.size(), 6u);
  EXPECT_FALSE(both.back().small);
  std::ofstream(path, std::ios::app) << "{\"claim\": 3}\n";
  EXPECT_THAT(ReadClaimRuns(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("zheng-tuners.jsonl:7")));
  EXPECT_THAT(RunClaim(Preset("zheng-cooling"), {.on_machine = true, .out = folder.path()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("frozen model")));
}

}  // namespace
}  // namespace hone::lab
