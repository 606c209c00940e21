// Decisions and statements are assigned to the stage that they shape, and a crossover takes each
// stage from the parent that the model scores higher there.
#include "server/search/stage_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "common/base/rng.h"
#include "server/cost_model/cost_model.h"
#include "server/feature/feature_set.h"
#include "server/search/evaluator.h"
#include "server/search/site_values.h"
#include "server/search/strategies.h"
#include "tests/server/search/spaces.h"

namespace hone::search {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The stages of SoftmaxSpace in the order of their decisions: the rows and parts of the result, the
// sums, the exponentials, the maxima.
enum Stage { kResult, kSum, kExp, kMax };

Stage StageOfBlock(const std::string& name) {
  return absl::StartsWith(name, "Sum")   ? kSum
         : absl::StartsWith(name, "Exp") ? kExp
         : absl::StartsWith(name, "Max") ? kMax
                                         : kResult;
}

TEST(StageGroupsTest, DecisionsOfASoftmaxBelongToItsStages) {
  const TestSpaces spaces = SoftmaxSpace();
  const StageGroups groups = StageGroups::Of(*spaces.spaces()[0]);
  EXPECT_EQ(groups.count(), 4);
  EXPECT_THAT(groups.of_decisions(), ElementsAre(kResult, kResult, kSum, kExp, kMax));
}

TEST(StageGroupsTest, StatementsBelongToTheirStages) {
  const TestSpaces spaces = SoftmaxSpace();
  const space::DesignSpace& space = *spaces.spaces()[0];
  const StageGroups groups = StageGroups::Of(space);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Rng rng(seed);
    const ir::Program program = *space.Replay(*space.Sample(rng));
    std::vector<int> stages;
    std::set<std::string> names;
    for (const ir::NodeId block : program.AllBlocks()) {
      names.insert(program.BlockOf(block).name);
      stages.push_back(StageOfBlock(program.BlockOf(block).name));
    }
    EXPECT_THAT(names, Contains("Sum_rf"));
    EXPECT_EQ(groups.OfStatements(program), stages);
  }
}

TEST(StageGroupsTest, APackedMatrixProductIsOneGroup) {
  const TestSpaces spaces = MatmulSpaces();
  for (const auto& space : spaces.spaces()) {
    const StageGroups groups = StageGroups::Of(*space);
    EXPECT_EQ(groups.count(), space->decision_count() > 0 ? 1 : 0) << space->name();
    EXPECT_THAT(groups.of_decisions(), Each(0));
  }
}

TEST(StageGroupsTest, StagesWithoutDecisionsJoinTheirConsumer) {
  TestSpaces spaces("dense_relu", {"m=64", "n=64", "k=64"});
  spaces.Add("fused", R"(
b0 = block("C")
b1 = block("D")
l0, l1, l2 = loops(b0)
x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=16)
l3, l4 = split(l0, x0, x1)
reverse_compute_at(b1, l3)
l5, l6, l7 = loops(b1)
vectorize(l7)
)");
  spaces.Add("apart", R"(
b0 = block("C")
b1 = block("D")
l0, l1, l2 = loops(b0)
x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=16)
l3, l4 = split(l0, x0, x1)
l5, l6 = loops(b1)
x2, x3 = sample_perfect_tile(l6, parts=2, max_inner=16)
l7, l8 = split(l6, x2, x3)
vectorize(l8)
)");
  const StageGroups fused = StageGroups::Of(*spaces.spaces()[0]);
  EXPECT_EQ(fused.count(), 1);
  const StageGroups apart = StageGroups::Of(*spaces.spaces()[1]);
  EXPECT_THAT(apart.of_decisions(), ElementsAre(0, 0, 1, 1));
  Rng rng(1);
  const ir::Program program = *spaces.spaces()[1]->Replay(*spaces.spaces()[1]->Sample(rng));
  EXPECT_THAT(apart.OfStatements(program), ElementsAre(0, 1));
}

TEST(StageGroupsTest, MergeTakesTheBetterParentPerStage) {
  const TestSpaces spaces = SoftmaxSpace();
  const StageGroups groups = StageGroups::Of(*spaces.spaces()[0]);
  const std::vector<int64_t> a = {1, 8, 16, 48, 64}, b = {2, 16, 48, 64, 32};
  const std::vector<double> scores_a = {0.2, 0.3, 0.1, 0.4}, scores_b = {0.3, 0.1, 0.1, 0.5};
  EXPECT_THAT(MergeStages(groups, a, scores_a, b, scores_b), ElementsAre(2, 16, 16, 48, 32));
  EXPECT_THAT(MergeStages(groups, b, scores_b, a, scores_a), ElementsAre(2, 16, 16, 64, 32));
}

// Tree models trained on a latency that is a sum over the stages.
class StageScoresTest : public testing::Test {
 protected:
  StageScoresTest() {
    for (const auto& space : context_.spaces) groups_.push_back(StageGroups::Of(*space));
    evaluator_.ObserveStages(&groups_);
    EXPECT_TRUE(evaluator_.UseFeaturesOf(model_.get()).ok());
    cost_model::FeatureMatrix matrix{
        .columns = (*feature::FindFeatureSet(model_->feature_set()))->Columns()};
    std::vector<double> latencies;
    for (uint64_t i = 0; i < 200; ++i) {
      Rng rng(i);
      const Point point{0, *context_.spaces[0]->Sample(rng)};
      const EvaluationPtr evaluation = evaluator_.Evaluate({point})[0];
      matrix.Append(evaluation->rows, evaluation->row_count);
      latencies.push_back(Latency(point.decisions));
    }
    const double best = *std::min_element(latencies.begin(), latencies.end());
    std::vector<double> throughput;
    for (const double latency : latencies) throughput.push_back(best / latency);
    EXPECT_TRUE(model_->Update(matrix, throughput).ok());
  }

  // Wide parts are slow, except in the sums, where narrow parts are slow.
  static double Latency(absl::Span<const int64_t> decisions) {
    const auto part = [&](int i) { return static_cast<double>(decisions[i]); };
    return 1 + 0.1 * part(0) + part(1) / 64 + 32 / part(2) + part(3) / 32 + part(4) / 32;
  }

  const TestSpaces spaces_ = SoftmaxSpace();
  const SearchContext context_ = spaces_.Context(1);
  Evaluator evaluator_{&context_};
  std::vector<StageGroups> groups_;
  const std::unique_ptr<cost_model::CostModel> model_ = *cost_model::CreateCostModel("xgboost", {});
};

TEST_F(StageScoresTest, AreSumsOfTheRowsOfEachStage) {
  std::vector<Point> points;
  for (uint64_t i = 0; i < 20; ++i) {
    Rng rng(500 + i);
    points.push_back({0, *context_.spaces[0]->Sample(rng)});
  }
  const std::vector<EvaluationPtr> evaluations = evaluator_.Evaluate(points);
  const auto scores = *evaluator_.StageScores(evaluations, model_.get());
  const auto predictions = *evaluator_.Predict(evaluations, model_.get());
  for (size_t i = 0; i < points.size(); ++i) {
    ASSERT_THAT(scores[i], SizeIs(4));
    const ir::Program program = *context_.spaces[0]->Replay(points[i].decisions);
    cost_model::FeatureMatrix matrix{
        .columns = evaluations[i]->row_count == 0
                       ? 0
                       : static_cast<int>(evaluations[i]->rows.size()) / evaluations[i]->row_count};
    matrix.Append(evaluations[i]->rows, evaluations[i]->row_count);
    const std::vector<double> rows = *model_->RowScores(matrix);
    std::vector<double> expected(4, 0.0);
    const std::vector<ir::NodeId> blocks = program.AllBlocks();
    ASSERT_EQ(rows.size(), blocks.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      expected[StageOfBlock(program.BlockOf(blocks[r]).name)] += rows[r];
    }
    for (int stage = 0; stage < 4; ++stage) EXPECT_NEAR(scores[i][stage], expected[stage], 1e-9);
    EXPECT_NEAR(scores[i][kResult] + scores[i][kSum] + scores[i][kExp] + scores[i][kMax],
                predictions[i], 1e-5);
  }
}

TEST_F(StageScoresTest, AreEmptyForModelsWithoutStatementScores) {
  Rng rng(1);
  const std::vector<EvaluationPtr> evaluations =
      evaluator_.Evaluate({Point{0, *context_.spaces[0]->Sample(rng)}});
  const auto fresh = *cost_model::CreateCostModel("xgboost", {});
  const auto network = *cost_model::CreateCostModel("mlp", {});
  EXPECT_THAT(*evaluator_.StageScores(evaluations, fresh.get()), ElementsAre(IsEmpty()));
  EXPECT_THAT(*evaluator_.StageScores(evaluations, network.get()), ElementsAre(IsEmpty()));
  EXPECT_THAT(*evaluator_.StageScores(evaluations, nullptr), ElementsAre(IsEmpty()));
}

TEST_F(StageScoresTest, ChildrenByStagesAreBetterThanChildrenBySites) {
  // Uses crossovers only, from the same parents.
  const auto best_of = [&](bool by_stages, uint64_t seed) {
    SearchContext context = spaces_.Context(seed);
    context.population = 64;
    const auto strategy = MakeEvolutionarySearch(context, {.mutation = 0, .by_stages = by_stages});
    double sum = 0;
    const auto candidates = *strategy->Propose(8, 0, model_.get());
    for (const record::Candidate& candidate : candidates) sum += Latency(candidate.decisions);
    return sum / static_cast<double>(candidates.size());
  };
  double by_stages = 0, by_sites = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    by_stages += best_of(true, seed);
    by_sites += best_of(false, seed);
  }
  EXPECT_LT(by_stages, by_sites);
}

}  // namespace
}  // namespace hone::search
