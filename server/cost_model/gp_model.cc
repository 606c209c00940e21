#include "server/cost_model/gp_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/column_scaler.h"
#include "server/cost_model/gaussian_process.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/spread_scale.h"
#include "server/cost_model/validate.h"

namespace hone::cost_model {
namespace {

constexpr double kLeastVariance = 1e-10;  // labels closer than that are equal

// Every so-many-th of `from`, `count` of them in order.
std::vector<int> Spread(absl::Span<const int> from, size_t count) {
  std::vector<int> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(from[i * from.size() / count]);
  return chosen;
}

std::vector<int> Subset(absl::Span<const double> throughput, int cap) {
  std::vector<int> order(throughput.size());
  std::iota(order.begin(), order.end(), 0);
  if (throughput.size() <= static_cast<size_t>(cap)) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return throughput[a] > throughput[b]; });
  const int best = cap / 2;
  std::vector<int> chosen(order.begin(), order.begin() + best);
  const std::vector<int> rest =
      Spread(absl::MakeConstSpan(order).subspan(best), static_cast<size_t>(cap - best));
  chosen.insert(chosen.end(), rest.begin(), rest.end());
  return chosen;
}

// What is saved of a kernel.
struct Parameters {
  Kernel::Shape shape = Kernel::Shape::kMatern52;
  double length = 1;    // in units of the points
  double noise = 0.01;  // variance of a label, in units of that of the process

  Kernel ToKernel() const { return {.shape = shape, .length = length, .noise = std::sqrt(noise)}; }
};

KernelInput InputOf(const float* point, int columns) {
  return {.numbers = {point, point + columns}, .choices = {}};
}

double MeanOf(absl::Span<const double> labels) {
  double mean = 0;
  for (const double label : labels) mean += label / static_cast<double>(labels.size());
  return mean;
}

// The median distance of the points, or 1 where it is 0.
double MedianDistance(const Matrix& points) {
  std::vector<double> distances;
  for (int i = 0; i < points.rows; ++i) {
    const KernelInput at = InputOf(points.row(i), points.columns);
    for (int j = 0; j < i; ++j)
      distances.push_back(Between(at, InputOf(points.row(j), points.columns)).squares);
  }
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + distances.size() / 2;
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle > 0 ? std::sqrt(*middle) : 1;
}

// The parameters of the largest likelihood on a small grid: both kernels, lengths around the median
// distance of the points, noise of 0.1, 1 and 10 %; the process's mean and variance are those that
// fit the labels best.
Parameters ChooseParameters(const Matrix& points, absl::Span<const double> labels) {
  const double median = MedianDistance(points), mean = MeanOf(labels);
  Observations observations;
  for (int i = 0; i < points.rows; ++i)
    observations.Add(InputOf(points.row(i), points.columns), labels[i] - mean);
  Parameters best{.length = median};
  double likeliest = -std::numeric_limits<double>::infinity();
  for (const Kernel::Shape shape : {Kernel::Shape::kMatern52, Kernel::Shape::kRbf}) {
    for (const double length : {0.25, 0.5, 1.0, 2.0, 4.0}) {
      const std::vector<double> covariances =
          observations.Covariances({.shape = shape, .length = length * median});
      for (const double noise : {0.001, 0.01, 0.1}) {
        const Observations::Evidence evidence =
            observations.EvidenceOf(covariances, /*deviation=*/1, std::sqrt(noise));
        const double n = points.rows;
        const double likelihood =
            -0.5 * (n * std::log(std::max(evidence.squares / n, kLeastVariance)) +
                    evidence.log_determinant);
        if (likelihood <= likeliest) continue;
        likeliest = likelihood;
        best = {shape, length * median, noise};
      }
    }
  }
  return best;
}

class GpModel final : public CostModel {
 public:
  GpModel(const CostModelOptions& options, const GpOptions& gp)
      : gp_(gp), feature_set_(options.feature_set.empty() ? "statement" : options.feature_set) {}

  absl::string_view name() const override { return "gp"; }
  absl::string_view feature_set() const override { return feature_set_; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    State state;
    if (features.candidates() == 0) {
      state_ = std::move(state);
      return absl::OkStatus();
    }
    state.scaler = ColumnScaler::Fit(features.values, features.columns);
    const std::vector<float> pooled = state.scaler.PoolMeans(features.values, features.row_begin);
    const auto take = [&](absl::Span<const int> members, Matrix& points,
                          std::vector<double>& labels) {
      points = Matrix(static_cast<int>(members.size()), state.scaler.kept());
      labels.clear();
      for (size_t i = 0; i < members.size(); ++i) {
        std::copy_n(pooled.begin() + static_cast<size_t>(members[i]) * points.columns,
                    points.columns, points.row(static_cast<int>(i)));
        labels.push_back(throughput[members[i]]);
      }
    };
    const std::vector<int> members = Subset(throughput, gp_.cap);
    Matrix sample;
    std::vector<double> sample_labels;
    take(Spread(members, std::min<size_t>(members.size(), gp_.parameter_cap)), sample,
         sample_labels);
    state.parameters = ChooseParameters(sample, sample_labels);
    take(members, state.points, state.labels);
    Fit(state);
    state_ = std::move(state);
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    Prediction prediction;
    prediction.mean.assign(features.candidates(), 0.0);
    prediction.spread.assign(features.candidates(), 0.0);
    if (state_.scaler.columns() == 0) return prediction;
    HONE_RETURN_IF_ERROR(ValidateColumns(features, state_.scaler.columns()));
    const std::vector<float> pooled = state_.scaler.PoolMeans(features.values, features.row_begin);
    const size_t width = state_.scaler.kept();
    for (size_t i = 0; i < prediction.mean.size(); ++i) {
      const GaussianProcess::Marginal marginal =
          state_.process.At(InputOf(pooled.data() + i * width, static_cast<int>(width)));
      prediction.mean[i] = state_.mean + marginal.mean;
      prediction.spread[i] = state_.scale(state_.deviation * marginal.deviation);
    }
    return prediction;
  }

  // The points and labels; the factor of their covariance and the scale of the spread are computed
  // again on Load, by the same operations.
  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    state_.scaler.Serialize(writer);
    writer.AddU32(static_cast<uint32_t>(state_.parameters.shape));
    writer.AddDouble(state_.parameters.length);
    writer.AddDouble(state_.parameters.noise);
    writer.AddU32(static_cast<uint32_t>(state_.labels.size()));
    for (const double label : state_.labels) writer.AddDouble(label);
    for (const float value : state_.points.values) writer.AddFloat(value);
    return EncodeModel(Header(state_.scaler.columns()), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    HONE_ASSIGN_OR_RETURN(State state, Parse(reader));
    if (reader.remaining() != 0 ||
        file.header.columns != static_cast<uint32_t>(state.scaler.columns())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not loaded as a cost model: points of ", state.scaler.columns(), " columns and ",
          reader.remaining(), " more bytes under a header of ", file.header.columns, " columns"));
    }
    if (state.scaler.columns() != 0) Fit(state);
    state_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  struct State {
    ColumnScaler scaler;  // of no columns: has seen nothing
    Parameters parameters;
    Matrix points;  // pooled
    std::vector<double> labels;
    double mean = 0;          // of the labels
    GaussianProcess process;  // of the labels less their mean, in units of its deviation
    double deviation = 0;
    SpreadScale scale;
  };

  // Computes the process from the points, labels and parameters.
  static void Fit(State& state) {
    state.mean = MeanOf(state.labels);
    state.process = GaussianProcess(state.parameters.ToKernel());
    for (int i = 0; i < state.points.rows; ++i) {
      state.process.Add(InputOf(state.points.row(i), state.points.columns),
                        state.labels[i] - state.mean);
    }
    state.deviation =
        std::sqrt(std::max(state.process.Squares() / state.points.rows, kLeastVariance));
    state.scale = SpreadScale::Fit(state.process, state.deviation, state.points);
  }

  static absl::StatusOr<State> Parse(ByteReader& reader) {
    State state;
    HONE_ASSIGN_OR_RETURN(state.scaler, ColumnScaler::Parse(reader));
    HONE_ASSIGN_OR_RETURN(const uint32_t kernel, reader.U32());
    HONE_ASSIGN_OR_RETURN(state.parameters.length, reader.Double());
    HONE_ASSIGN_OR_RETURN(state.parameters.noise, reader.Double());
    HONE_ASSIGN_OR_RETURN(const uint32_t count, reader.U32());
    const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
    if (kernel > static_cast<uint32_t>(Kernel::Shape::kMatern52) ||
        !positive(state.parameters.length) || !positive(state.parameters.noise) ||
        (count == 0) != (state.scaler.columns() == 0) || count > reader.remaining()) {
      return absl::InvalidArgumentError("not loaded as a cost model: not a Gaussian process");
    }
    state.parameters.shape = static_cast<Kernel::Shape>(kernel);
    bool finite = true;
    for (uint32_t i = 0; i < count; ++i) {
      HONE_ASSIGN_OR_RETURN(const double label, reader.Double());
      finite &= std::isfinite(label);
      state.labels.push_back(label);
    }
    if (uint64_t{count} * state.scaler.kept() > reader.remaining())
      return absl::InvalidArgumentError("not loaded as a cost model: truncated points");
    state.points = Matrix(static_cast<int>(count), state.scaler.kept());
    for (float& value : state.points.values) {
      HONE_ASSIGN_OR_RETURN(value, reader.Float());
      finite &= std::isfinite(value);
    }
    if (!finite) return absl::InvalidArgumentError("not loaded as a cost model: not finite");
    return state;
  }

  ModelHeader Header(int columns) const {
    return {.name = "gp",
            .version = 1,
            .feature_set = feature_set_,
            .columns = static_cast<uint32_t>(columns)};
  }

  const GpOptions gp_;
  const std::string feature_set_;
  State state_;
};

}  // namespace

std::unique_ptr<CostModel> MakeGpModel(const CostModelOptions& options) {
  return MakeGpModel(options, GpOptions());
}

std::unique_ptr<CostModel> MakeGpModel(const CostModelOptions& options, const GpOptions& gp) {
  return std::make_unique<GpModel>(options, gp);
}

}  // namespace hone::cost_model
