#include "server/tuner/cost_model/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/models.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CostModelRegistryTest, HasTheModels) {
  std::vector<std::string> names;
  for (const CostModelInfo& info : CostModelInfos()) {
    names.push_back(info.name);
    EXPECT_EQ(info.missing, "");
  }
  EXPECT_THAT(names, ElementsAre("random", "draft", "residual", "xgboost", "formula", "gp",
                                 "looptree", "mlp", "mlp-tenset", "mtl-tlp", "state-value", "tlp",
                                 "tlp-fast", "tlp-lstm", "tlp-mse", "tlp-published", "treegru",
                                 "xgboost-bag", "xgboost-rank"));
  EXPECT_EQ(CostModelNames(), names);
}

TEST(CostModelRegistryTest, ReportsMissingDependencies) {
  static constexpr ModelKind kAbsent = {.name = "absent", .missing = "install what it needs"};
  RegisterCostModel(kAbsent);
  EXPECT_THAT(CreateCostModel("absent", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::AllOf(HasSubstr("'absent' is not in this build"),
                                      HasSubstr("install what it needs"))));
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
