#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CostModelRegistryTest, HasTheModels) {
  EXPECT_THAT(CostModelNames(),
              ElementsAre("random", "analytic", "formula", "xgboost", "xgboost-rank", "mlp", "gp"));
}

TEST(CostModelRegistryTest, ListsTheNamesForAnUnknownOne) {
  const absl::Status status = CreateCostModel("crystal ball", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("'crystal ball'; there are: random, analytic, formula, xgboost, xgboost-rank"));
}

TEST(CostModelRegistryTest, RefusesNoThreads) {
  EXPECT_EQ(CreateCostModel("random", {.threads = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hone::cost_model
