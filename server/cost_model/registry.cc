#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/cost_model/analytic_model.h"
#include "server/cost_model/cost_model.h"
#include "server/cost_model/formula_model.h"
#include "server/cost_model/gp_model.h"
#include "server/cost_model/mlp_model.h"
#include "server/cost_model/random_model.h"
#include "server/cost_model/xgboost_model.h"

namespace hone::cost_model {
namespace {

struct Entry {
  absl::string_view name;
  std::unique_ptr<CostModel> (*make)(const CostModelOptions& options);
  bool any_features = true;  // learns from whatever columns there are
};

// One line per model.
constexpr Entry kModels[] = {
    {"random", MakeRandomModel, /*any_features=*/false},
    {"analytic", MakeAnalyticModel, /*any_features=*/false},
    {"formula", MakeFormulaModel, /*any_features=*/false},
    {"xgboost", MakeXgboostModel},
    {"xgboost-rank", MakeXgboostRankModel},
    {"mlp", MakeMlpModel},
    {"gp", MakeGpModel},
};

}  // namespace

absl::StatusOr<std::unique_ptr<CostModel>> CreateCostModel(absl::string_view name,
                                                           const CostModelOptions& options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cost model needs at least one thread, not ", options.threads));
  }
  for (const Entry& entry : kModels) {
    if (entry.name != name) continue;
    std::unique_ptr<CostModel> model = entry.make(options);
    if (!entry.any_features && !options.feature_set.empty() &&
        options.feature_set != model->feature_set()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cost model '", name, "' reads ",
                       model->feature_set().empty()
                           ? std::string("no features")
                           : absl::StrCat("only feature set '", model->feature_set(), "'"),
                       ", not '", options.feature_set, "'"));
    }
    return model;
  }
  return absl::NotFoundError(absl::StrCat("no cost model '", name,
                                          "'; there are: ", absl::StrJoin(CostModelNames(), ", ")));
}

std::vector<std::string> CostModelNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  return names;
}

}  // namespace hone::cost_model
