#include "server/cost_model/analytic_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/cost_model/analytic_rows.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/column_scaler.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/robust_line.h"
#include "server/cost_model/validate.h"

namespace hone::cost_model {
namespace {

// Failed candidates count as this slow: bad, but no lever on the fit.
constexpr double kLeastThroughput = 1.0 / 128;
// How many candidates' worth the prior weighs.
constexpr double kPull = 2;
constexpr double kLargestExponent = 60;

class AnalyticModel final : public CostModel {
 public:
  absl::string_view name() const override { return "analytic"; }
  absl::string_view feature_set() const override { return "analytic"; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateColumns(features, kAnalyticColumns));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    if (features.candidates() == 0) {
      scaler_ = ColumnScaler();
      fit_ = LinearFit();
      return absl::OkStatus();
    }
    scaler_ = ColumnScaler::Fit(features.values, features.columns);
    std::vector<double> prior(scaler_.kept(), 0.0), labels;
    const int draft = scaler_.PositionOf(kDraftColumn);
    if (draft >= 0) prior[draft] = -scaler_.DeviationAt(draft);
    for (const double each : throughput)
      labels.push_back(std::log2(std::max(each, kLeastThroughput)));
    fit_ =
        FitRobustly(scaler_.PoolMeans(features.values, features.row_begin), labels, prior, kPull);
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateColumns(features, kAnalyticColumns));
    Prediction prediction;
    prediction.mean.assign(features.candidates(), 0.0);
    if (scaler_.columns() == 0) {
      for (int i = 0; i < features.candidates(); ++i) prediction.mean[i] = Draft(features, i);
      return prediction;
    }
    const std::vector<float> rows = scaler_.PoolMeans(features.values, features.row_begin);
    const size_t width = fit_.weights.size();
    for (size_t i = 0; i < prediction.mean.size(); ++i) {
      double exponent = fit_.intercept;
      for (size_t c = 0; c < width; ++c) exponent += fit_.weights[c] * rows[i * width + c];
      prediction.mean[i] = std::exp2(std::clamp(exponent, -kLargestExponent, kLargestExponent));
    }
    return prediction;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    scaler_.Serialize(writer);
    writer.AddDouble(fit_.intercept);
    for (const double weight : fit_.weights) writer.AddDouble(weight);
    return EncodeModel(Header(scaler_.columns()), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    HONE_ASSIGN_OR_RETURN(ColumnScaler scaler, ColumnScaler::Parse(reader));
    LinearFit fit;
    HONE_ASSIGN_OR_RETURN(fit.intercept, reader.Double());
    bool finite = std::isfinite(fit.intercept);
    for (int i = 0; i < scaler.kept(); ++i) {
      HONE_ASSIGN_OR_RETURN(const double weight, reader.Double());
      finite &= std::isfinite(weight);
      fit.weights.push_back(weight);
    }
    if (reader.remaining() != 0 || !finite ||
        file.header.columns != static_cast<uint32_t>(scaler.columns()) ||
        (scaler.columns() != 0 && scaler.columns() != kAnalyticColumns)) {
      return absl::InvalidArgumentError(
          absl::StrCat("not loaded as a cost model: a line over ", scaler.columns(),
                       " columns contradicts its header or is not finite"));
    }
    scaler_ = std::move(scaler);
    fit_ = std::move(fit);
    return absl::OkStatus();
  }

 private:
  // 1 / the cycles that the features tell; of several rows their mean.
  static double Draft(const FeatureMatrix& features, int candidate) {
    const int32_t begin = features.row_begin[candidate], end = features.row_begin[candidate + 1];
    double sum = 0;
    for (int32_t r = begin; r < end; ++r)
      sum += features.values[static_cast<size_t>(r) * kAnalyticColumns + kDraftColumn];
    return std::exp2(-std::clamp(sum / (end - begin), -kLargestExponent, kLargestExponent));
  }

  static ModelHeader Header(int columns) {
    return {.name = "analytic",
            .version = 2,
            .feature_set = "analytic",
            .columns = static_cast<uint32_t>(columns)};
  }

  ColumnScaler scaler_;  // of no columns: has seen nothing
  LinearFit fit_;        // over scaled columns
};

}  // namespace

std::unique_ptr<CostModel> MakeAnalyticModel(const CostModelOptions&) {
  return std::make_unique<AnalyticModel>();
}

}  // namespace hone::cost_model
