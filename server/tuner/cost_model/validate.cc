#include "server/tuner/cost_model/validate.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

// Returns whether all values are finite: 0·x is 0 for a finite x and NaN otherwise. Four sums let
// additions overlap.
bool AllFinite(absl::Span<const float> values) {
  float sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += 0.0f * values[i + lane];
  }
  for (; i < values.size(); ++i) sums[0] += 0.0f * values[i];
  return sums[0] + sums[1] + sums[2] + sums[3] == 0.0f;
}

absl::Status ValidateFinite(const FeatureMatrix& features) {
  if (AllFinite(features.values)) return absl::OkStatus();
  int candidate = 0;
  for (int row = 0; row < features.rows(); ++row) {
    while (features.row_begin[candidate + 1] <= row) ++candidate;
    for (int column = 0; column < features.columns; ++column) {
      const float value = features.row(row)[column];
      if (!std::isfinite(value)) {
        return absl::InvalidArgumentError(
            absl::StrCat("feature ", column, " of candidate ", candidate, ", row ",
                         row - features.row_begin[candidate], ", is not finite: ", value));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateShape(const FeatureMatrix& features) {
  if (features.columns < 0) {
    return absl::InvalidArgumentError(absl::StrCat("negative columns: ", features.columns));
  }
  if (features.row_begin.empty() || features.row_begin.front() != 0) {
    return absl::InvalidArgumentError("row_begin does not start with 0");
  }
  for (int i = 0; i < features.candidates(); ++i) {
    if (features.row_begin[i + 1] < features.row_begin[i]) {
      return absl::InvalidArgumentError(absl::StrCat("row_begin decreases at candidate ", i));
    }
  }
  const size_t expected = static_cast<size_t>(features.rows()) * features.columns;
  if (features.values.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(features.rows(), " rows of ", features.columns,
                                                   " columns need ", expected, " values, but ",
                                                   features.values.size(), " are given"));
  }
  return absl::OkStatus();
}

absl::Status ValidateRows(const FeatureMatrix& features) {
  if (features.candidates() > 0 && features.columns == 0)
    return absl::InvalidArgumentError("the candidates have no feature columns");
  for (int i = 0; i < features.candidates(); ++i) {
    if (features.row_begin[i + 1] == features.row_begin[i])
      return absl::InvalidArgumentError(absl::StrCat("candidate ", i, " has no feature rows"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateFeatures(const FeatureMatrix& features, bool read, int columns) {
  HONE_RETURN_IF_ERROR(ValidateShape(features));
  if (read) HONE_RETURN_IF_ERROR(ValidateRows(features));
  HONE_RETURN_IF_ERROR(ValidateFinite(features));
  if (!read || columns == 0 || features.candidates() == 0 || features.columns == columns)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "rows of ", features.columns, " columns, but the model was trained on ", columns));
}

absl::Status ValidateThroughput(const FeatureMatrix& features,
                                absl::Span<const double> throughput) {
  if (throughput.size() != static_cast<size_t>(features.candidates())) {
    return absl::InvalidArgumentError(absl::StrCat(features.candidates(), " candidates, but ",
                                                   throughput.size(), " throughputs"));
  }
  for (size_t i = 0; i < throughput.size(); ++i) {
    if (!(throughput[i] >= 0 && throughput[i] <= 1)) {  // false for NaN
      return absl::InvalidArgumentError(
          absl::StrCat("the throughput of candidate ", i, " is not in [0, 1]: ", throughput[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::cost_model
