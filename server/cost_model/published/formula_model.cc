#include "server/cost_model/published/formula_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/cost_model/analytic_rows.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/validate.h"

namespace hone::cost_model {
namespace {

constexpr float kLargestLog = 200;

std::vector<double> Costs(const FeatureMatrix& features) {
  std::vector<double> costs(features.candidates(), 0.0);
  for (int i = 0; i < features.candidates(); ++i) {
    for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
      const float* row = features.values.data() + static_cast<size_t>(r) * kAnalyticColumns;
      for (const int column : {kFormulaArithmeticColumn, kFormulaMemoryColumn})
        costs[i] += std::exp2(std::clamp(row[column], -kLargestLog, kLargestLog));
    }
  }
  return costs;
}

class FormulaModel final : public CostModel {
 public:
  absl::string_view name() const override { return "formula"; }
  absl::string_view feature_set() const override { return "analytic"; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateColumns(features, kAnalyticColumns));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    if (features.candidates() == 0) {
      unit_ = 0;
      return absl::OkStatus();
    }
    const std::vector<double> costs = Costs(features);
    std::vector<double> units;
    for (size_t i = 0; i < costs.size(); ++i) {
      if (throughput[i] > 0) units.push_back(throughput[i] * costs[i]);
    }
    if (units.empty()) units.push_back(*std::min_element(costs.begin(), costs.end()));
    std::nth_element(units.begin(), units.begin() + units.size() / 2, units.end());
    unit_ = units[units.size() / 2];
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateColumns(features, kAnalyticColumns));
    Prediction prediction;
    prediction.mean.assign(features.candidates(), 0.0);
    if (unit_ == 0) return prediction;
    prediction.mean = Costs(features);
    for (double& mean : prediction.mean) mean = unit_ / mean;
    return prediction;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    writer.AddDouble(unit_);
    return EncodeModel(Header(unit_), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    HONE_ASSIGN_OR_RETURN(const double unit, reader.Double());
    if (reader.remaining() != 0 || !std::isfinite(unit) || unit < 0 ||
        file.header.columns != Header(unit).columns) {
      return absl::InvalidArgumentError(
          absl::StrCat("not loaded as a cost model: no unit of a formula: ", unit));
    }
    unit_ = unit;
    return absl::OkStatus();
  }

 private:
  static ModelHeader Header(double unit) {
    return {.name = "formula",
            .version = 1,
            .feature_set = "analytic",
            .columns = unit > 0 ? uint32_t{kAnalyticColumns} : 0};
  }

  double unit_ = 0;  // throughput × cost; 0: has seen nothing
};

}  // namespace

std::unique_ptr<CostModel> MakeFormulaModel(const CostModelOptions&) {
  return std::make_unique<FormulaModel>();
}

}  // namespace hone::cost_model
