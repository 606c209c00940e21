#include "server/tuner/cost_model/model_kind.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/model_file.h"

namespace hone::cost_model {
namespace {

// Returns whether all values are finite: 0·x is 0 for a finite x and NaN otherwise. Four sums let
// additions overlap.
bool AllFinite(absl::Span<const float> values) {
  float sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    sums[0] += 0.0f * values[i];
    sums[1] += 0.0f * values[i + 1];
    sums[2] += 0.0f * values[i + 2];
    sums[3] += 0.0f * values[i + 3];
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

// Checks of the input of models. All errors are InvalidArgument; the message names the first wrong
// position.
// InvalidArgument: row_begin does not match the values, or a value is NaN or infinite. If `read` is
// set, also: there are no columns, a candidate has no rows, or the number of columns is not
// `columns` (0: any).
absl::Status ValidateFeatures(const FeatureMatrix& features, bool read, int columns) {
  HONE_RETURN_IF_ERROR(ValidateShape(features));
  if (read) HONE_RETURN_IF_ERROR(ValidateRows(features));
  HONE_RETURN_IF_ERROR(ValidateFinite(features));
  if (!read || columns == 0 || features.candidates() == 0 || features.columns == columns)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "rows of ", features.columns, " columns, but the model was trained on ", columns));
}

// InvalidArgument: the number of labels, tasks, targets or offsets is not the number of candidates,
// a label is not in [0, 1], a target is negative, or an offset is not finite.
absl::Status ValidateLabels(const FeatureMatrix& features, const Labels& labels) {
  const absl::Span<const double> throughput = labels.throughput;
  for (const auto& [size, what] : {std::pair{labels.tasks.size(), "numbers of tasks"},
                                   {labels.targets.size(), "numbers of targets"},
                                   {labels.offset.size(), "offsets"}}) {
    if (size == 0 || size == throughput.size()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(throughput.size(), " candidates, but ", size, " ", what));
  }
  if (throughput.size() != static_cast<size_t>(features.candidates())) {
    return absl::InvalidArgumentError(absl::StrCat(features.candidates(), " candidates, but ",
                                                   throughput.size(), " throughputs"));
  }
  for (size_t i = 0; i < throughput.size(); ++i) {
    if (!(throughput[i] >= 0 && throughput[i] <= 1)) {  // false for NaN
      return absl::InvalidArgumentError(
          absl::StrCat("the throughput of candidate ", i, " is not in [0, 1]: ", throughput[i]));
    }
    if (labels.TargetOf(i) < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the target of candidate ", i, " has a negative number: ", labels.TargetOf(i)));
    }
    if (!labels.offset.empty() && !std::isfinite(labels.offset[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the offset of candidate ", i, " is not finite: ", labels.offset[i]));
    }
  }
  return absl::OkStatus();
}

class Model final : public CostModel {
 public:
  Model(const ModelKind& kind, const CostModelOptions& options)
      : kind_(kind), options_(options), predictor_(kind.make(options)) {
    if (options_.feature_set.empty()) options_.feature_set = std::string(kind.feature_set);
  }

  absl::string_view name() const override { return kind_.name; }
  absl::string_view feature_set() const override { return options_.feature_set; }

  using CostModel::Update;
  absl::Status Update(const FeatureMatrix& features, const Labels& labels) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features, ReadsFeatures(), kind_.columns));
    HONE_RETURN_IF_ERROR(ValidateLabels(features, labels));
    if (!labels.offset.empty() && !kind_.learns_residual) {
      return absl::InvalidArgumentError(
          absl::StrCat("cost model '", kind_.name, "' cannot learn a residual over offsets"));
    }
    std::unique_ptr<Predictor> predictor = kind_.make(options_);
    if (features.candidates() > 0) HONE_RETURN_IF_ERROR(predictor->Train(features, labels));
    predictor_ = std::move(predictor);
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features, ReadsFeatures(), columns()));
    if (!SeenNothing()) return predictor_->Predict(features);
    return Prediction{.mean = std::vector<double>(features.candidates(), 0.0)};
  }

  std::string Summary() const override { return predictor_->Summary(); }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    predictor_->Serialize(writer);
    ModelHeader header = Header();
    header.columns = static_cast<uint32_t>(predictor_->columns());
    return EncodeModel(header, std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header()));
    ByteReader reader(file.payload);
    std::unique_ptr<Predictor> predictor = kind_.make(options_);
    HONE_RETURN_IF_ERROR(predictor->Parse(reader));
    if (reader.remaining() != 0 ||
        file.header.columns != static_cast<uint32_t>(predictor->columns())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot load the cost model: it reads ", predictor->columns(), " columns, with ",
          reader.remaining(), " bytes left, but its header has ", file.header.columns, " columns"));
    }
    predictor_ = std::move(predictor);
    return absl::OkStatus();
  }

 private:
  int columns() const { return kind_.columns > 0 ? kind_.columns : predictor_->columns(); }
  bool ReadsFeatures() const { return !kind_.feature_set.empty(); }
  bool SeenNothing() const { return ReadsFeatures() && columns() == 0; }

  ModelHeader Header() const {
    return {.name = std::string(kind_.name),
            .version = kind_.version,
            .feature_set = options_.feature_set};
  }

  const ModelKind kind_;
  CostModelOptions options_;
  std::unique_ptr<Predictor> predictor_;
};

}  // namespace

std::unique_ptr<CostModel> MakeModel(const ModelKind& kind, const CostModelOptions& options) {
  return std::make_unique<Model>(kind, options);
}

}  // namespace hone::cost_model
