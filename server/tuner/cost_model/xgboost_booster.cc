#include "server/tuner/cost_model/xgboost_booster.h"

#include <xgboost/c_api.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/metric.h"
#include "server/tuner/cost_model/pack_objective.h"

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

// Time grows with the number of bins. Statement features have few distinct values, and 64 bins take
// half of the time of 256.
constexpr int kBins = 64;

XgboostBooster::Parameters BoosterParameters(const ForestOptions& forest,
                                             const CostModelOptions& options) {
  return {{"tree_method", "hist"},
          {"max_bin", absl::StrCat(kBins)},
          {"max_depth", std::string(forest.depth)},
          {"eta", absl::StrCat(forest.learning_rate)},
          {"gamma", std::string(forest.gamma)},
          {"min_child_weight", std::string(forest.min_child)},
          // The score of a program without trees must be 0 for any number of statements.
          {"base_score", "0"},
          {"nthread", absl::StrCat(options.threads)},
          {"seed", absl::StrCat(options.seed & 0x7fffffff)},
          {"verbosity", "0"}};
}

std::unique_ptr<PackObjective> MakeObjective(const ForestOptions& forest,
                                             const FeatureMatrix& features,
                                             absl::Span<const double> throughput, uint64_t seed) {
  if (forest.ranks) {
    return std::make_unique<PackRank>(features.row_begin, throughput, forest.learning_rate, seed);
  }
  return std::make_unique<PackSum>(features.row_begin, throughput, forest.learning_rate);
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

absl::StatusOr<FlatForest> TrainForest(const FeatureMatrix& features,
                                       absl::Span<const double> throughput,
                                       const ForestOptions& forest,
                                       const CostModelOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<XgboostBooster> booster,
                        XgboostBooster::Create(features.values, features.columns,
                                               BoosterParameters(forest, options)));
  const std::unique_ptr<PackObjective> objective =
      MakeObjective(forest, features, throughput, options.seed);
  double least_error = std::numeric_limits<double>::infinity();
  int best_round = 0;
  for (int round = 0;; ++round) {
    HONE_ASSIGN_OR_RETURN(const absl::Span<const float> scores, booster->TrainingScores());
    double error = objective->Differentiate(scores);
    if (forest.recall_at > 0 && round > 0) {
      error = 1 - AverageRecall(SumRows(features.row_begin, scores), throughput, forest.recall_at);
    }
    const bool comparable = forest.recall_at == 0 || round > 0;
    if (comparable && error < least_error) {
      least_error = error;
      best_round = round;
    }
    YieldToTimers();
    if (round == forest.max_rounds || round - best_round == forest.patience) break;
    HONE_RETURN_IF_ERROR(booster->BoostOneRound(objective->gradient(), objective->hessian()));
  }
  HONE_ASSIGN_OR_RETURN(const std::string json, booster->Json());
  return ForestOfXgboostJson(json, features.columns, best_round);
}

std::vector<double> ForestScores(const FlatForest& forest, const FeatureMatrix& features) {
  std::vector<float> row_scores(features.rows());
  forest.Predict(features.values, absl::MakeSpan(row_scores));
  return SumRows(features.row_begin, row_scores);
}

}  // namespace hone::cost_model
