#include "server/research/lab/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"
#include "common/target/target.h"
#include "server/job/search/draft_work.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/registry.h"
#include "tests/status.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

TEST(ScoreTaskTest, CountsByHand) {
  const JudgedTask task{.latency_ns = {200, 100, 0, 400, 103}, .best_ns = 100};
  // The best-scored candidate takes twice the best; the next is the failed one, then 103.
  const TaskScore score = ScoreTask(task, {0.9, 0.1, 0.8, 0.2, 0.7});
  EXPECT_DOUBLE_EQ(score.first, 2);
  EXPECT_DOUBLE_EQ(score.best_of_8, 1);
  EXPECT_EQ(score.trials_to_95, 3);
  // Of the nine pairs that are clearly apart, the scores order three: 200 and 103 before 400, and
  // 200 before the failed one.
  EXPECT_NEAR(score.pairs, 3.0 / 9, 1e-9);
}

// A failed first choice counts as the slowest candidate.
TEST(ScoreTaskTest, FailuresAreSlow) {
  const JudgedTask task{.latency_ns = {0, 100, 300}, .best_ns = 100};
  EXPECT_DOUBLE_EQ(ScoreTask(task, {3, 2, 1}).first, 3);
}

TEST(ClusteredBootstrapTest, SimilarTasksWidenTheInterval) {
  // The same forty values, once in families of equal values and once each in its own family.
  std::vector<TaskScore> alone, clustered;
  Rng rng(1);
  for (int family = 0; family < 4; ++family) {
    const double value = 1 + family;
    for (int i = 0; i < 10; ++i) {
      clustered.push_back({.family = std::to_string(family), .first = value});
      alone.push_back({.family = std::to_string(10 * family + i), .first = value});
    }
  }
  const auto mean = [](const std::vector<const TaskScore*>& some) {
    double sum = 0;
    for (const TaskScore* score : some) sum += score->first;
    return sum / static_cast<double>(some.size());
  };
  const Interval narrow = ClusteredBootstrap(alone, mean),
                 wide = ClusteredBootstrap(clustered, mean);
  EXPECT_DOUBLE_EQ(narrow.value, 2.5);
  EXPECT_DOUBLE_EQ(wide.value, 2.5);
  EXPECT_LT(narrow.low, 2.5);
  EXPECT_GT(narrow.high, 2.5);
  EXPECT_GT(wide.high - wide.low, 2 * (narrow.high - narrow.low));
}

// The latency of each candidate follows from its only feature that is not zero.
Sample MakeSample(int tasks) {
  Sample sample{.target = "target", .machine = "a machine", .feature_sets = {"statement"}};
  for (int t = 0; t < tasks; ++t) {
    JudgedTask task{.name = "task " + std::to_string(t),
                    .family = "family " + std::to_string(t % 3),
                    .held_out = t % 2 == 1,
                    .best_ns = 1000};
    cost_model::FeatureMatrix features{.columns = 12};
    Rng rng(t);
    for (int i = 0; i < 60; ++i) {
      std::vector<float> row(12, 0.0f);
      row[3] = static_cast<float>(rng.Uniform());
      task.latency_ns.push_back(1000 * std::exp(row[3]));
      features.Append(row, 1);
    }
    task.best_ns = *std::min_element(task.latency_ns.begin(), task.latency_ns.end());
    task.features = {features};
    sample.tasks.push_back(task);
  }
  return sample;
}

TEST(JudgeTest, TellsModelsThatLearnFromThoseThatGuess) {
  const Sample sample = MakeSample(20);
  HONE_ASSERT_OK_AND_ASSIGN(const auto models, Judge(sample, {"xgboost", "random"}));
  ASSERT_EQ(models.size(), 2u);
  for (const JudgedModel& model : models) {
    EXPECT_EQ(model.development.size(), 10u);
    EXPECT_EQ(model.held_out.size(), 10u);
  }
  for (size_t t = 0; t < 10; ++t) {
    EXPECT_GT(models[0].held_out[t].pairs, 0.9);
    EXPECT_LT(models[1].held_out[t].pairs, 0.7);
    EXPECT_EQ(models[0].held_out[t].name, sample.tasks[2 * t + 1].name);
  }
  const std::string text = JudgementText(sample, models, /*per_task=*/true);
  EXPECT_THAT(text, HasSubstr("1200 candidates of 20 tasks on a machine"));
  EXPECT_THAT(text, HasSubstr("10 held-out tasks"));
  EXPECT_THAT(Judge(sample, {"crystal ball"}), StatusIs(absl::StatusCode::kNotFound));
}

// What comes with the program was learned on two cores of another kind of CPU. A part of the sample
// of one core is enough to see that it orders tasks that it does not know better than the
// constants.
TEST(ShippedDraftTest, OrdersTasksOfAnotherMachine) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const Sample sample,
      ReadSample("tests/bench/sample/x86_64-znver3-avx2-1c.h5", {job::kLearnedDraft},
                 /*threads=*/1, {.only = "conv2d"}));
  HONE_ASSERT_OK_AND_ASSIGN(const target::Target target, target::Target::FromText(sample.target));
  HONE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<cost_model::CostModel> shipped,
                            cost_model::CreateCostModel(job::kLearnedDraft, {}));
  HONE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<cost_model::CostModel> presets,
                            cost_model::CreateCostModel(job::kLearnedDraft, {}));
  ASSERT_THAT(shipped->Load(std::string(job::ShippedDraft(target))), IsOk());
  double with = 0, without = 0, tasks = 0;
  for (const JudgedTask& task : sample.tasks) {
    if (!task.held_out) continue;
    const cost_model::FeatureMatrix& rows = task.features.at(0);
    HONE_ASSERT_OK_AND_ASSIGN(const cost_model::Prediction a, shipped->Predict(rows));
    HONE_ASSERT_OK_AND_ASSIGN(const cost_model::Prediction b, presets->Predict(rows));
    with += ScoreTask(task, a.mean).pairs;
    without += ScoreTask(task, b.mean).pairs;
    ++tasks;
  }
  ASSERT_GE(tasks, 3);
  EXPECT_GT(with / tasks, without / tasks + 0.05);
}

TEST(JudgeTest, JudgesTheModelledCost) {
  Sample sample = MakeSample(4);
  for (JudgedTask& task : sample.tasks) {
    task.modelled_cycles = task.latency_ns;  // a perfect model
    task.modelled_cycles[0] = 0;             // which does not compile this one
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto models, Judge(sample, {kModelledCost}));
  ASSERT_EQ(models[0].held_out.size(), 2u);
  EXPECT_GT(models[0].held_out[0].pairs, 0.95);
  EXPECT_LT(models[0].held_out[0].pairs, 1);
  EXPECT_THAT(JudgementText(sample, models, false), HasSubstr("| modelled | "));
}

TEST(JudgeTest, TheTitleSaysThatNothingWasMeasured) {
  Sample sample = MakeSample(2);
  sample.machine = "modelled: cortex-a76 with 4 cores";
  sample.modelled = true;
  EXPECT_THAT(JudgementText(sample, {}, false),
              HasSubstr("of 2 tasks **not measured** but modelled: cortex-a76 with 4 cores"));
}

// The draft knows half of the latency, and the network learns the other half.
TEST(JudgeTest, JudgesAResidualOverThePresets) {
  Sample sample = MakeSample(6);
  sample.feature_sets.push_back("draft");
  Rng rng(1);
  for (JudgedTask& task : sample.tasks) {
    cost_model::FeatureMatrix draft{.columns = cost_model::kDraftColumns};
    for (size_t i = 0; i < task.latency_ns.size(); ++i) {
      // The first column is a part of the estimate, in cycles.
      std::vector<float> row(cost_model::kDraftColumns, 0.0f);
      row[0] = static_cast<float>(1000 * std::exp(2 * rng.Uniform()));
      task.latency_ns[i] *= row[0] / 1000.0;
      draft.Append(row, 1);
    }
    task.best_ns = *std::min_element(task.latency_ns.begin(), task.latency_ns.end());
    task.features.push_back(draft);
  }
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto models, Judge(sample, {"presets", "mlp", "presets+mlp"}, {.held_out_only = true}));
  EXPECT_TRUE(models[0].development.empty());
  double pairs[3] = {0, 0, 0};
  for (int m = 0; m < 3; ++m) {
    ASSERT_EQ(models[m].held_out.size(), 3u);
    for (const TaskScore& score : models[m].held_out) pairs[m] += score.pairs / 3;
  }
  EXPECT_GT(pairs[2], pairs[0] + 0.02);
  EXPECT_GT(pairs[2], pairs[1] + 0.02);
  EXPECT_THAT(Judge(sample, {"presets+xgboost"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot learn a residual")));
}

// With several targets, a model still predicts for the judged one.
TEST(JudgeTest, LearnsFromAnotherMachineAsASecondTarget) {
  const Sample own = MakeSample(8);
  Sample other = MakeSample(8);
  for (JudgedTask& task : other.tasks) {  // a machine on which everything is the other way round
    for (double& each : task.latency_ns) each = 1e7 / each;
    task.best_ns = *std::min_element(task.latency_ns.begin(), task.latency_ns.end());
  }
  Training training = {.other = &other, .with_own = true, .held_out_only = true};
  // mtl-tlp reads another set by default, so the rows are called by its name.
  Sample renamed = own, renamed_other = other;
  renamed.feature_sets = renamed_other.feature_sets = {"primitives"};
  training.other = &renamed_other;
  HONE_ASSERT_OK_AND_ASSIGN(const auto models, Judge(renamed, {"mtl-tlp"}, training));
  for (const TaskScore& score : models[0].held_out) EXPECT_GT(score.pairs, 0.9);
  training.with_own = false;
  HONE_ASSERT_OK_AND_ASSIGN(const auto misled, Judge(renamed, {"mtl-tlp"}, training));
  for (const TaskScore& score : misled[0].held_out) EXPECT_LT(score.pairs, 0.1);
}

}  // namespace
}  // namespace hone::lab
