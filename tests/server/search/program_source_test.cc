// Feature programs change how an evaluation comes about, never what it says.
#include "server/search/program_source.h"

#include <gtest/gtest.h>

#include "server/cost_model/cost_model.h"
#include "server/search/evaluator.h"
#include "tests/server/search/spaces.h"

namespace hone::search {
namespace {

// Draws and what lies near them, one of ten with a tile that is none.
std::vector<Point> Points(const SearchContext& context, uint64_t seed) {
  Rng rng(seed);
  std::vector<Point> points;
  while (points.size() < 600) {
    const auto space = static_cast<int>(rng.Below(context.spaces.size()));
    Point point{space, context.spaces[space]->Sample(rng).value()};
    points.push_back(point);
    for (int near = 0; near < 3 && context.spaces[space]->decision_count() > 0; ++near) {
      const auto mutated = context.spaces[space]->Mutate(point.decisions, rng);
      if (mutated.ok()) points.push_back({space, *mutated});
    }
    if (!point.decisions.empty() && rng.Below(3) == 0) {
      point.decisions[rng.Below(point.decisions.size())] += 1;
      points.push_back(point);
    }
  }
  return points;
}

TEST(ProgramSourceTest, EvaluationsAreThoseOfReplays) {
  const TestSpaces spaces = MatmulSpaces();
  SearchContext context = spaces.Context(1);
  SearchContext with = context;
  with.feature_programs = true;
  with.threads = 3;
  Evaluator replays(&context), programs(&with);
  const auto model = cost_model::CreateCostModel("xgboost", {}).value();
  ASSERT_TRUE(replays.UseFeaturesOf(model.get()).ok());
  ASSERT_TRUE(programs.UseFeaturesOf(model.get()).ok());
  int illegal = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const std::vector<Point> points = Points(context, seed);
    const std::vector<EvaluationPtr> wanted = replays.Evaluate(points);
    const std::vector<EvaluationPtr> found = programs.Evaluate(points);
    for (size_t i = 0; i < points.size(); ++i) {
      ASSERT_EQ(found[i]->legal, wanted[i]->legal);
      ASSERT_EQ(found[i]->program, wanted[i]->program);
      ASSERT_EQ(found[i]->draft_cycles, wanted[i]->draft_cycles);
      ASSERT_EQ(found[i]->rows, wanted[i]->rows);
      ASSERT_EQ(found[i]->row_count, wanted[i]->row_count);
      illegal += !wanted[i]->legal;
    }
  }
  EXPECT_GT(illegal, 0);
  const ProgramSource::Counts counts = programs.programs().counts();
  EXPECT_GT(counts.recorded, 0);
  EXPECT_LT(counts.replayed, counts.points * 9 / 10);
  EXPECT_EQ(replays.programs().counts().replayed, replays.programs().counts().points);
  EXPECT_EQ(replays.programs().counts().recorded, 0);
}

}  // namespace
}  // namespace hone::search
