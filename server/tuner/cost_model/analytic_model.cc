#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "server/tuner/cost_model/column_scaler.h"
#include "server/tuner/cost_model/linear_fit.h"
#include "server/tuner/cost_model/models.h"

namespace hone::cost_model {
namespace {

// The throughput of failed candidates: low, but not so low that they dominate the fit.
constexpr double kLeastThroughput = 1.0 / 128;
// The weight of the prior, in candidates.
constexpr double kPull = 2;
constexpr double kLargestExponent = 60;

class AnalyticPredictor final : public Predictor {
 public:
  absl::Status Train(const FeatureMatrix& features, const Labels& given) override {
    const absl::Span<const double> throughput = given.throughput;
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

  int columns() const override { return scaler_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction;
    if (scaler_.columns() == 0) {
      for (int i = 0; i < features.candidates(); ++i) prediction.mean.push_back(Draft(features, i));
      return prediction;
    }
    const std::vector<float> rows = scaler_.PoolMeans(features.values, features.row_begin);
    const size_t width = fit_.weights.size();
    for (int i = 0; i < features.candidates(); ++i) {
      double exponent = fit_.intercept;
      for (size_t c = 0; c < width; ++c) exponent += fit_.weights[c] * rows[i * width + c];
      prediction.mean.push_back(
          std::exp2(std::clamp(exponent, -kLargestExponent, kLargestExponent)));
    }
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    scaler_.Serialize(writer);
    writer.Add(fit_.intercept);
    for (const double weight : fit_.weights) writer.Add(weight);
  }

  absl::Status Parse(ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(scaler_, ColumnScaler::Parse(reader));
    fit_.weights.resize(scaler_.kept());
    HONE_RETURN_IF_ERROR(reader.Read(fit_.intercept));
    bool fits = std::isfinite(fit_.intercept) &&
                (scaler_.columns() == 0 || scaler_.columns() == kAnalyticColumns);
    for (double& weight : fit_.weights) {
      HONE_RETURN_IF_ERROR(reader.Read(weight));
      fits &= std::isfinite(weight);
    }
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "cannot load the cost model: not a finite line over the analytic features");
  }

 private:
  // Returns 1 / the estimated cycles, the mean over a candidate's rows.
  static double Draft(const FeatureMatrix& features, int candidate) {
    const int32_t begin = features.row_begin[candidate], end = features.row_begin[candidate + 1];
    double sum = 0;
    for (int32_t r = begin; r < end; ++r) sum += features.row(r)[kDraftColumn];
    return std::exp2(-std::clamp(sum / (end - begin), -kLargestExponent, kLargestExponent));
  }

  ColumnScaler scaler_;  // without columns: untrained
  LinearFit fit_;        // over scaled columns
};

}  // namespace

constexpr ModelKind kAnalyticModel = {.name = "analytic",
                                      .version = 2,
                                      .feature_set = "analytic",
                                      .make = MakePredictor<AnalyticPredictor>,
                                      .columns = kAnalyticColumns,
                                      .any_features = false};

}  // namespace hone::cost_model
