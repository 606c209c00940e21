#include "server/research/lab/model_comparison.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/research/lab/small_set.h"
#include "tests/status.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

TEST(ModelComparisonTest, JudgesModelsOnTheProgramsOfASet) {
  const RecordedSet set = SmallSet();
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto evaluation,
      EvaluateOnSets({set}, {.models = {{"random", ""}, {"xgboost", ""}}, .held_out_trials = 0.3}));
  EXPECT_EQ(evaluation.candidates, static_cast<int64_t>(set.measurements.size()));
  EXPECT_EQ(evaluation.left_out.Total(), 0);
  ASSERT_EQ(evaluation.scores.size(), 2u);
  EXPECT_GT(evaluation.scores[1].pairwise, evaluation.scores[0].pairwise + 0.2);
  EXPECT_THAT(EvaluationText(evaluation), HasSubstr("| xgboost | statement | trials |"));
}

TEST(ModelComparisonTest, UnknownModelsAreListed) {
  EXPECT_THAT(EvaluateOnSets({SmallSet()}, {.models = {{"oracle", ""}}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("xgboost")));
}

}  // namespace
}  // namespace hone::lab
