#include "server/research/lab/run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/research/lab/curves.h"
#include "server/research/lab/experiment.h"
#include "server/research/lab/presets.h"
#include "server/research/lab/statistics.h"
#include "server/research/lab/summary.h"
#include "server/tuner/search/search_strategy.h"
#include "tests/server/research/lab/small_set.h"
#include "tests/status.h"

namespace hone::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<Bench> Open(RecordedSet set) {
  auto bench = Bench::Open(std::move(set));
  EXPECT_THAT(bench, IsOk());
  return *std::move(bench);
}

TEST(RunTest, StrategiesStayInTheSetWithoutRepeats) {
  const auto bench = Open(SmallSet());
  for (const std::string& strategy : search::SearchStrategyNames()) {
    const auto run =
        RunSearch(*bench, {.strategy = strategy, .cost_model = "random", .trials = 64});
    ASSERT_THAT(run, IsOk()) << strategy;
    EXPECT_EQ(run->outside, 0) << strategy;
    EXPECT_EQ(run->duplicates, 0) << strategy;
    EXPECT_LE(run->trials.size(), 64u) << strategy;
  }
}

TEST(RunTest, ExhaustiveSearchMeetsEveryProgramOnce) {
  const auto bench = Open(SmallSet());
  HONE_ASSERT_OK_AND_ASSIGN(const auto run, RunSearch(*bench, {.strategy = "grid",
                                                               .cost_model = "random",
                                                               .trials = 1000,
                                                               .stop_at_best = false}));
  EXPECT_EQ(run.trials.size(), bench->set().measurements.size());
  EXPECT_TRUE(run.exhausted);
  EXPECT_EQ(run.failures, 1);
  EXPECT_EQ(TrialsTo(run, bench->best_latency_ns(), 1.0) > 0, true);
}

TEST(RunTest, ProposalsThatAreNotRecordedAreRefusedAndCounted) {
  RecordedSet set = SmallSet();
  const size_t all = set.candidates.size();
  std::erase_if(set.candidates,
                [](const RecordedCandidate& each) { return each.decisions[1] == 8; });
  ASSERT_LT(set.candidates.size(), all);
  const auto bench = Open(std::move(set));
  HONE_ASSERT_OK_AND_ASSIGN(const auto run, RunSearch(*bench, {.strategy = "grid",
                                                               .cost_model = "random",
                                                               .trials = 1000,
                                                               .stop_at_best = false}));
  EXPECT_EQ(run.outside, 48);
  EXPECT_EQ(run.trials.size(), 96u);
}

TEST(RunTest, StopsAtTheBestKnown) {
  const auto bench = Open(SmallSet());
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto run,
      RunSearch(*bench, {.strategy = "droplet", .cost_model = "xgboost", .trials = 144}));
  EXPECT_LT(run.trials.size(), 144u);
  EXPECT_EQ(run.trials.back().latency_ns, bench->best_latency_ns());
}

TEST(RunTest, ResultsOfAnotherSetGuideTheFirstTrials) {
  const auto bench = Open(SmallSet());
  const RunOptions cold = {
      .strategy = "evolutionary", .cost_model = "xgboost", .seed = 3, .trials = 16};
  RunOptions warm = cold;
  warm.related = bench.get();
  HONE_ASSERT_OK_AND_ASSIGN(const auto without, RunSearch(*bench, cold));
  HONE_ASSERT_OK_AND_ASSIGN(const auto with, RunSearch(*bench, warm));
  EXPECT_GT(Area(with, bench->best_latency_ns(), 16), Area(without, bench->best_latency_ns(), 16));
}

TEST(RelatedSetTest, ModelOnlyTransferHasNoSeeds) {
  const auto bench = Open(SmallSet());
  const job::Transfer transfer = TransferFromSet(*bench, bench->spaces(), 1);
  ASSERT_FALSE(transfer.seeds.empty());
  EXPECT_EQ(transfer.workloads, 1);
  EXPECT_EQ(transfer.results, 144);
  RunOptions options = {
      .strategy = "grid", .cost_model = "random", .trials = 8, .related = bench.get()};
  const auto with = RunSearch(*bench, options);
  options.related_seeds = false;
  const auto model = RunSearch(*bench, options);
  options.related = nullptr;
  const auto without = RunSearch(*bench, options);
  // The related set is the set itself, and its best candidate is the first seed.
  EXPECT_EQ(with->trials[0].latency_ns, bench->best_latency_ns());
  ASSERT_EQ(model->trials.size(), without->trials.size());
  for (size_t i = 0; i < model->trials.size(); ++i) {
    EXPECT_EQ(model->trials[i].latency_ns, without->trials[i].latency_ns);
  }
}

TEST(RelatedSetTest, DrawsDependOnTheSeed) {
  const auto all = Open(SmallSet())->Results();
  EXPECT_EQ(DrawResults(all, 10, 1).size(), 10u);
  EXPECT_EQ(DrawResults(all, 1000, 1).size(), all.size());
  EXPECT_EQ(DrawResults(all, 10, 1)[0].candidate, DrawResults(all, 10, 1)[0].candidate);
  EXPECT_NE(DrawResults(all, 10, 1)[0].candidate, DrawResults(all, 10, 2)[0].candidate);
}

TEST(RunTest, UnknownNamesAreListed) {
  const auto bench = Open(SmallSet());
  EXPECT_THAT(RunSearch(*bench, {.strategy = "oracle", .cost_model = "random"}).status().message(),
              AllOf(HasSubstr("oracle"), HasSubstr("evolutionary")));
  EXPECT_THAT(RunSearch(*bench, {.strategy = "random", .cost_model = "oracle"}).status().message(),
              AllOf(HasSubstr("oracle"), HasSubstr("xgboost")));
  EXPECT_FALSE(RunSearch(*bench, {.strategy = "random", .cost_model = "random", .trials = 0}).ok());
}

TEST(BenchTest, SpacesOfSeveralWorkloadsAreRefused) {
  RecordedSet set = SmallSet();
  std::string& text = set.spaces[1];
  for (size_t at = 0; (at = text.find("64", at)) != std::string::npos;) text.replace(at, 2, "32");
  EXPECT_THAT(Bench::Open(set).status().message(), HasSubstr("several workloads"));
  set.spaces[1] = "workload";
  EXPECT_THAT(Bench::Open(set), StatusIs(absl::StatusCode::kInvalidArgument));
}

Experiment SmallExperiment() {
  return {.name = "small",
          .question = "Which?",
          .variants = {{"evolutionary", "evolutionary"}, {"random", "random", "random"}},
          .baseline = "random",
          .sets = {"small"},
          .seeds = 3,
          .trials = 48};
}

TEST(ExperimentTest, IsDeterministicForAnyNumberOfThreads) {
  Benches benches;
  benches["small"] = Open(SmallSet());
  HONE_ASSERT_OK_AND_ASSIGN(const auto first, RunExperiment(SmallExperiment(), benches, 1));
  HONE_ASSERT_OK_AND_ASSIGN(const auto second, RunExperiment(SmallExperiment(), benches, 3));
  EXPECT_EQ(RunsCsv(first), RunsCsv(second));
  EXPECT_EQ(CurvesCsv(first), CurvesCsv(second));
  EXPECT_EQ(ComparisonCsv(first), ComparisonCsv(second));
  EXPECT_EQ(SummaryText(first), SummaryText(second));
  EXPECT_EQ(SvgPlot(TrialsPlot(first)), SvgPlot(TrialsPlot(second)));
  EXPECT_EQ(SvgPlot(SecondsPlot(first)), SvgPlot(SecondsPlot(second)));
  EXPECT_THAT(RunsCsv(first), HasSubstr("\nevolutionary,small,1,"));
  EXPECT_THAT(SummaryText(first), HasSubstr("| random |"));
}

TEST(ExperimentTest, RejectsAnUnknownBaseline) {
  Benches benches;
  benches["small"] = Open(SmallSet());
  Experiment experiment = SmallExperiment();
  experiment.baseline = "grid";
  EXPECT_THAT(RunExperiment(experiment, benches, 1).status().message(), HasSubstr("grid"));
  experiment.baseline = "random";
  experiment.variants[0].label = "random";
  EXPECT_THAT(RunExperiment(experiment, benches, 1).status().message(), HasSubstr("two variants"));
  experiment.variants[0] = {"evolutionary", "oracle"};
  EXPECT_THAT(RunExperiment(experiment, benches, 1).status().message(),
              AllOf(HasSubstr("evolutionary on small"), HasSubstr("oracle")));
}

TEST(ExperimentTest, LimitedSpaceKeepsTheBestKnown) {
  RecordedSet set = SmallSet();
  set.spaces[0] +=
      "b1 = cache_read(b0, \"B\", \"global\")\n"
      "transform_layout(b1, \"a0, a1 -> a1, a0\")\n";
  const RecordedSet limited = WithoutLayoutChanges(set);
  EXPECT_EQ(limited.spaces, std::vector<std::string>{set.spaces[1]});
  EXPECT_EQ(limited.candidates.size(), 72u);
  EXPECT_EQ(BestLatencyNs(limited), BestLatencyNs(set));
  EXPECT_THAT(CheckRecordedSet(limited), IsOk());
  set.spaces[1] = set.spaces[0];
  EXPECT_EQ(WithoutLayoutChanges(set), set);
}

TEST(PresetsTest, NameTheirBaselineAndUniqueLabels) {
  for (const std::string& name : PresetNames()) {
    HONE_ASSERT_OK_AND_ASSIGN(Experiment experiment, FindPreset(name));
    experiment.sets = {"any"};
    EXPECT_THAT(CheckExperiment(experiment), IsOk()) << name;
  }
  EXPECT_THAT(FindPreset("chen").status().message(), AllOf(HasSubstr("chen"), HasSubstr("rocke")));
}

}  // namespace
}  // namespace hone::lab
