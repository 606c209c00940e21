#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/cost_model/cost_model.h"
#include "server/cost_model/random_model.h"
#include "server/cost_model/xgboost_model.h"

namespace hone::cost_model {
namespace {

struct Entry {
  absl::string_view name;
  std::unique_ptr<CostModel> (*make)(const CostModelOptions& options);
};

// One line per model.
constexpr Entry kModels[] = {
    {"random", MakeRandomModel},
    {"xgboost", MakeXgboostModel},
};

}  // namespace

absl::StatusOr<std::unique_ptr<CostModel>> CreateCostModel(absl::string_view name,
                                                           const CostModelOptions& options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cost model needs at least one thread, not ", options.threads));
  }
  for (const Entry& entry : kModels) {
    if (entry.name == name) return entry.make(options);
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
