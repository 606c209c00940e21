#include "server/cost_model/xgboost_json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

using Json = nlohmann::json;

// object[key], or a status: the library's own accessors throw.
absl::StatusOr<const Json*> Member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) {
    return absl::InternalError(absl::StrCat("XGBoost's model has no ", key));
  }
  return &*found;
}

template <typename T>
absl::StatusOr<std::vector<T>> Numbers(const Json& tree, const char* key) {
  HONE_ASSIGN_OR_RETURN(const Json* array, Member(tree, key));
  std::vector<T> numbers;
  numbers.reserve(array->size());
  for (const Json& element : *array) {
    if (std::is_integral_v<T> ? !element.is_number_integer() : !element.is_number()) {
      return absl::InternalError(absl::StrCat("XGBoost's model has other than numbers in ", key));
    }
    numbers.push_back(element.get<T>());
  }
  return numbers;
}

}  // namespace

absl::StatusOr<FlatForest> ForestOfXgboostJson(absl::string_view json, int columns, int max_trees) {
  const Json model = Json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                                 /*allow_exceptions=*/false);
  if (model.is_discarded()) return absl::InternalError("XGBoost's model is not JSON");
  const Json* trees = &model;
  for (const char* key : {"learner", "gradient_booster", "model", "trees"}) {
    HONE_ASSIGN_OR_RETURN(trees, Member(*trees, key));
  }
  std::vector<FlatForest::Tree> flat;
  for (const Json& tree : *trees) {
    if (static_cast<int>(flat.size()) == max_trees) break;
    FlatForest::Tree& out = flat.emplace_back();
    HONE_ASSIGN_OR_RETURN(out.left, Numbers<int32_t>(tree, "left_children"));
    HONE_ASSIGN_OR_RETURN(out.right, Numbers<int32_t>(tree, "right_children"));
    HONE_ASSIGN_OR_RETURN(out.feature, Numbers<int32_t>(tree, "split_indices"));
    // A leaf keeps its value where an inner node keeps its threshold.
    HONE_ASSIGN_OR_RETURN(out.value, Numbers<float>(tree, "split_conditions"));
  }
  absl::StatusOr<FlatForest> forest = FlatForest::Create(flat, columns);
  if (!forest.ok()) {
    return absl::InternalError(absl::StrCat("XGBoost's model: ", forest.status().message()));
  }
  return forest;
}

}  // namespace hone::cost_model
