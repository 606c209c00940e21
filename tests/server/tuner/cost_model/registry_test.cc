#include "server/tuner/cost_model/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/tuner/cost_model/cost_model.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CostModelRegistryTest, HasTheModels) {
  std::vector<std::string> names, missing;
  for (const CostModelInfo& info : CostModelInfos()) {
    names.push_back(info.name);
    if (!info.missing.empty()) missing.push_back(info.name);
  }
  EXPECT_THAT(names, ElementsAre("random", "draft", "residual", "xgboost", "formula", "gp", "mlp",
                                 "treegru", "xgboost-bag", "xgboost-rank"));
  EXPECT_THAT(missing, testing::IsSubsetOf({"treegru"}));
  EXPECT_EQ(CostModelNames().size(), names.size() - missing.size());
}

TEST(CostModelRegistryTest, ReportsMissingDependencies) {
  const auto model = CreateCostModel("treegru", {});
  if (model.ok()) GTEST_SKIP() << "built with libtorch";
  EXPECT_THAT(model, StatusIs(absl::StatusCode::kFailedPrecondition,
                              testing::AllOf(HasSubstr("'treegru' is not in this build"),
                                             HasSubstr("libtorch-dev"),
                                             HasSubstr("-DHONE_WITH_TORCH=ON"))));
}

TEST(CostModelRegistryTest, ListsTheNamesForAnUnknownOne) {
  EXPECT_THAT(CreateCostModel("crystal ball", {}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("'crystal ball'; there are: random, draft, residual, xgboost, "
                                 "formula, gp")));
}

TEST(CostModelRegistryTest, RejectsZeroThreads) {
  EXPECT_THAT(CreateCostModel("random", {.threads = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::cost_model
