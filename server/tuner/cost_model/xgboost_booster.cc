#include "server/tuner/cost_model/xgboost_booster.h"

#include <xgboost/c_api.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

absl::Status ToStatus(int code, absl::string_view what) {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("XGBoost failed to ", what, ": ", XGBGetLastError()));
}

// Requests the margins of all trees. "training" lets the library keep its cache of scores, which
// makes this call cheap.
constexpr char kTrainingScores[] =
    R"({"type": 1, "training": true, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})";

using Json = nlohmann::json;

// Returns object[key], or a status; nlohmann's own accessors throw.
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
      return absl::InternalError(
          absl::StrCat("XGBoost's model has values that are not numbers in ", key));
    }
    numbers.push_back(element.get<T>());
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<XgboostBooster>> XgboostBooster::Create(
    absl::Span<const float> rows, int columns, const Parameters& parameters) {
  std::unique_ptr<XgboostBooster> result(new XgboostBooster);
  HONE_RETURN_IF_ERROR(ToStatus(XGDMatrixCreateFromMat(rows.data(), rows.size() / columns, columns,
                                                       std::nanf(""), &result->matrix_),
                                "take the rows"));
  HONE_RETURN_IF_ERROR(
      ToStatus(XGBoosterCreate(&result->matrix_, 1, &result->booster_), "create a booster"));
  for (const auto& [name, value] : parameters) {
    HONE_RETURN_IF_ERROR(ToStatus(XGBoosterSetParam(result->booster_, name.c_str(), value.c_str()),
                                  absl::StrCat("set ", name, " = ", value)));
  }
  return result;
}

XgboostBooster::~XgboostBooster() {
  if (booster_ != nullptr) XGBoosterFree(booster_);
  if (matrix_ != nullptr) XGDMatrixFree(matrix_);
}

absl::StatusOr<absl::Span<const float>> XgboostBooster::TrainingScores() {
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* scores = nullptr;
  HONE_RETURN_IF_ERROR(ToStatus(
      XGBoosterPredictFromDMatrix(booster_, matrix_, kTrainingScores, &shape, &dimensions, &scores),
      "score the training rows"));
  size_t count = 1;
  for (bst_ulong i = 0; i < dimensions; ++i) count *= shape[i];
  return absl::MakeConstSpan(scores, count);
}

absl::Status XgboostBooster::BoostOneRound(absl::Span<float> gradient, absl::Span<float> hessian) {
  return ToStatus(
      XGBoosterBoostOneIter(booster_, matrix_, gradient.data(), hessian.data(), gradient.size()),
      "grow a tree");
}

absl::StatusOr<std::string> XgboostBooster::Json() {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  HONE_RETURN_IF_ERROR(
      ToStatus(XGBoosterSaveModelToBuffer(booster_, R"({"format": "json"})", &size, &bytes),
               "write the model"));
  return std::string(bytes, size);
}

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
    // XGBoost stores a leaf's value in the array of the inner nodes' thresholds.
    HONE_ASSIGN_OR_RETURN(out.value, Numbers<float>(tree, "split_conditions"));
  }
  absl::StatusOr<FlatForest> forest = FlatForest::Create(flat, columns);
  if (!forest.ok()) {
    return absl::InternalError(absl::StrCat("XGBoost's model: ", forest.status().message()));
  }
  return forest;
}

}  // namespace hone::cost_model
