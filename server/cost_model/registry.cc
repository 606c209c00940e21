#include "server/cost_model/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/cost_model/analytic_model.h"
#include "server/cost_model/cost_model.h"
#include "server/cost_model/gp_model.h"
#include "server/cost_model/published/formula_model.h"
#include "server/cost_model/published/mlp_model.h"
#include "server/cost_model/published/treegru_model.h"
#include "server/cost_model/random_model.h"
#include "server/cost_model/xgboost_bag_model.h"
#include "server/cost_model/xgboost_model.h"

namespace hone::cost_model {
namespace {

struct Entry {
  absl::string_view name;
  std::unique_ptr<CostModel> (*make)(const CostModelOptions& options);  // null: not in this build
  absl::string_view feature_set;
  bool any_features = true;  // learns from whatever columns there are
  bool has_spread = false;
  absl::string_view missing = "";
};

// One line per model.
constexpr Entry kModels[] = {
    {"random", MakeRandomModel, "", /*any_features=*/false},
    {"analytic", MakeAnalyticModel, "analytic", /*any_features=*/false},
    {"formula", MakeFormulaModel, "analytic", /*any_features=*/false},
    {"xgboost", MakeXgboostModel, "statement"},
    {"xgboost-rank", MakeXgboostRankModel, "statement"},
    {"xgboost-bag", MakeXgboostBagModel, "statement", true, /*has_spread=*/true},
    {"mlp", MakeMlpModel, "statement"},
    {"gp", MakeGpModel, "statement", true, /*has_spread=*/true},
    {"treegru", kMakeTreeGruModel, "tree", /*any_features=*/false, false, kTreeGruMissing},
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
    if (entry.make == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("cost model '", name, "' is not in this build: ", entry.missing));
    }
    if (!entry.any_features && !options.feature_set.empty() &&
        options.feature_set != entry.feature_set) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cost model '", name, "' reads ",
          entry.feature_set.empty() ? std::string("no features")
                                    : absl::StrCat("only feature set '", entry.feature_set, "'"),
          ", not '", options.feature_set, "'"));
    }
    return entry.make(options);
  }
  return absl::NotFoundError(absl::StrCat("no cost model '", name,
                                          "'; there are: ", absl::StrJoin(CostModelNames(), ", ")));
}

std::vector<std::string> CostModelNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) {
    if (entry.make != nullptr) names.emplace_back(entry.name);
  }
  return names;
}

std::vector<CostModelInfo> CostModelInfos() {
  std::vector<CostModelInfo> infos;
  for (const Entry& entry : kModels) {
    infos.push_back({std::string(entry.name), std::string(entry.feature_set), entry.any_features,
                     entry.has_spread, std::string(entry.make == nullptr ? entry.missing : "")});
  }
  return infos;
}

}  // namespace hone::cost_model
