#include "server/research/lab/model_comparison.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/research/lab/small_set.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

TEST(ModelComparisonTest, JudgesModelsOnTheProgramsOfASet) {
  const RecordedSet set = SmallSet();
  const auto evaluation =
      EvaluateOnSets({set}, {.models = {{"random", ""}, {"xgboost", ""}}, .held_out_trials = 0.3});
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->candidates, static_cast<int64_t>(set.measurements.size()));
  EXPECT_EQ(evaluation->left_out.Total(), 0);
  ASSERT_EQ(evaluation->scores.size(), 2u);
  EXPECT_GT(evaluation->scores[1].pairwise, evaluation->scores[0].pairwise + 0.2);
  EXPECT_THAT(EvaluationText(*evaluation), HasSubstr("| xgboost | statement | trials |"));
}

TEST(ModelComparisonTest, UnknownModelsAreListed) {
  const auto evaluation = EvaluateOnSets({SmallSet()}, {.models = {{"oracle", ""}}});
  EXPECT_EQ(evaluation.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(evaluation.status().message()), HasSubstr("xgboost"));
}

}  // namespace
}  // namespace hone::lab
