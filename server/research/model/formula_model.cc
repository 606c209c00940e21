#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "server/research/model/models.h"

namespace hone::cost_model {
namespace {

constexpr float kLargestLog = 200;

std::vector<double> Costs(const FeatureMatrix& features) {
  std::vector<double> costs(features.candidates(), 0.0);
  for (int i = 0; i < features.candidates(); ++i) {
    for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
      for (const int column : {kFormulaArithmeticColumn, kFormulaMemoryColumn})
        costs[i] += std::exp2(std::clamp(features.row(r)[column], -kLargestLog, kLargestLog));
    }
  }
  return costs;
}

class FormulaPredictor final : public Predictor {
 public:
  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    const absl::Span<const double> throughput = labels.throughput;
    const std::vector<double> costs = Costs(features);
    std::vector<double> units;
    for (size_t i = 0; i < costs.size(); ++i) {
      if (throughput[i] > 0) units.push_back(throughput[i] * costs[i]);
    }
    if (units.empty()) units.push_back(*absl::c_min_element(costs));
    std::nth_element(units.begin(), units.begin() + units.size() / 2, units.end());
    unit_ = units[units.size() / 2];
    return absl::OkStatus();
  }

  int columns() const override { return unit_ > 0 ? kAnalyticColumns : 0; }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction{.mean = Costs(features)};
    for (double& mean : prediction.mean) mean = unit_ / mean;
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override { writer.Add(unit_); }

  absl::Status Parse(ByteReader& reader) override {
    HONE_RETURN_IF_ERROR(reader.Read(unit_));
    if (std::isfinite(unit_) && unit_ >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError("cannot load the cost model: not the factor of a formula");
  }

 private:
  double unit_ = 0;  // throughput × cost; 0: untrained
};

}  // namespace

constexpr ModelKind kFormulaModel = {.name = "formula",
                                     .feature_set = "analytic",
                                     .make = MakePredictor<FormulaPredictor>,
                                     .columns = kAnalyticColumns,
                                     .any_features = false};

}  // namespace hone::cost_model
