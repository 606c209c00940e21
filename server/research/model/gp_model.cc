#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "server/research/model/column_scaler.h"
#include "server/research/model/models.h"
#include "server/research/model/spread_scale.h"
#include "server/tuner/cost_model/gaussian_process.h"

namespace hone::cost_model {
namespace {

constexpr double kLeastVariance = 1e-10;  // below it, labels count as equal
// The maximum number of training candidates, because the time grows with its third power. If there
// are more candidates, half of the training candidates are the best ones, and the others are an
// even selection of the rest.
constexpr int kMostTrained = 256;
// The maximum number of candidates for choosing the parameters.
constexpr int kMostChosenOn = 128;

// Returns `count` evenly spaced elements of `from`, in order.
std::vector<int> Spread(absl::Span<const int> from, size_t count) {
  std::vector<int> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(from[i * from.size() / count]);
  return chosen;
}

std::vector<int> Subset(absl::Span<const double> throughput) {
  std::vector<int> order(throughput.size());
  absl::c_iota(order, 0);
  if (order.size() <= kMostTrained) return order;
  absl::c_stable_sort(order, [&](int a, int b) { return throughput[a] > throughput[b]; });
  const int best = kMostTrained / 2;
  std::vector<int> chosen(order.begin(), order.begin() + best);
  const std::vector<int> rest =
      Spread(absl::MakeConstSpan(order).subspan(best), kMostTrained - best);
  chosen.insert(chosen.end(), rest.begin(), rest.end());
  return chosen;
}

// The saved parameters of a kernel.
struct Parameters {
  Kernel::Shape shape = Kernel::Shape::kMatern52;
  double length = 1;    // in units of the points
  double noise = 0.01;  // variance of a label's noise / variance of the process

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

// Returns the median distance of the points, or 1 if it is 0.
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

// Returns the parameters with the largest likelihood on a small grid: both kernels, lengths around
// the median distance of the points, and noise of 0.1, 1 and 10 %. The mean and variance of the
// process are those that fit the labels best.
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

class GpPredictor final : public Predictor {
 public:
  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    const absl::Span<const double> throughput = labels.throughput;
    scaler_ = ColumnScaler::Fit(features.values, features.columns);
    const std::vector<float> pooled = scaler_.PoolMeans(features.values, features.row_begin);
    const auto take = [&](absl::Span<const int> members) {
      points_ = Matrix(static_cast<int>(members.size()), scaler_.kept());
      labels_.clear();
      for (size_t i = 0; i < members.size(); ++i) {
        std::copy_n(pooled.begin() + static_cast<size_t>(members[i]) * points_.columns,
                    points_.columns, points_.row(static_cast<int>(i)));
        labels_.push_back(throughput[members[i]]);
      }
    };
    const std::vector<int> members = Subset(throughput);
    take(Spread(members, std::min<size_t>(members.size(), kMostChosenOn)));
    parameters_ = ChooseParameters(points_, labels_);
    take(members);
    Fit();
    return absl::OkStatus();
  }

  int columns() const override { return scaler_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction;
    const std::vector<float> pooled = scaler_.PoolMeans(features.values, features.row_begin);
    const size_t width = scaler_.kept();
    for (int i = 0; i < features.candidates(); ++i) {
      const GaussianProcess::Marginal marginal =
          process_.At(InputOf(pooled.data() + i * width, static_cast<int>(width)));
      prediction.mean.push_back(mean_ + marginal.mean);
      prediction.spread.push_back(scale_(deviation_ * marginal.deviation));
    }
    return prediction;
  }

  // Writes the points and labels. Parse computes the factor of their covariance and the scale of
  // the spread again, with the same operations.
  void Serialize(ByteWriter& writer) const override {
    scaler_.Serialize(writer);
    writer.Add(static_cast<uint32_t>(parameters_.shape), parameters_.length, parameters_.noise,
               static_cast<uint32_t>(labels_.size()));
    for (const double label : labels_) writer.Add(label);
    for (const float value : points_.values) writer.Add(value);
  }

  absl::Status Parse(ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(scaler_, ColumnScaler::Parse(reader));
    uint32_t shape = 0, count = 0;
    HONE_RETURN_IF_ERROR(reader.Read(shape, parameters_.length, parameters_.noise, count));
    const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
    if (shape > static_cast<uint32_t>(Kernel::Shape::kMatern52) || !positive(parameters_.length) ||
        !positive(parameters_.noise) || (count == 0) != (scaler_.columns() == 0) ||
        count > reader.remaining() || uint64_t{count} * scaler_.kept() > reader.remaining()) {
      return absl::InvalidArgumentError("cannot load the cost model: not a Gaussian process");
    }
    parameters_.shape = static_cast<Kernel::Shape>(shape);
    labels_.resize(count);
    points_ = Matrix(static_cast<int>(count), scaler_.kept());
    bool finite = true;
    for (double& label : labels_) {
      HONE_RETURN_IF_ERROR(reader.Read(label));
      finite &= std::isfinite(label);
    }
    for (float& value : points_.values) {
      HONE_RETURN_IF_ERROR(reader.Read(value));
      finite &= std::isfinite(value);
    }
    if (!finite) return absl::InvalidArgumentError("cannot load the cost model: not finite");
    if (count > 0) Fit();
    return absl::OkStatus();
  }

 private:
  // Computes the process from the points, labels and parameters.
  void Fit() {
    mean_ = MeanOf(labels_);
    process_ = GaussianProcess(parameters_.ToKernel());
    for (int i = 0; i < points_.rows; ++i)
      process_.Add(InputOf(points_.row(i), points_.columns), labels_[i] - mean_);
    deviation_ = std::sqrt(std::max(process_.Squares() / points_.rows, kLeastVariance));
    scale_ = SpreadScale::Fit(process_, deviation_, points_);
  }

  ColumnScaler scaler_;  // without columns: untrained
  Parameters parameters_;
  Matrix points_;  // pooled
  std::vector<double> labels_;
  double mean_ = 0;          // of the labels
  GaussianProcess process_;  // of the labels minus their mean, in units of its deviation
  double deviation_ = 0;
  SpreadScale scale_;
};

}  // namespace

constexpr ModelKind kGpModel = {.name = "gp",
                                .feature_set = "statement",
                                .make = MakePredictor<GpPredictor>,
                                .has_spread = true};

}  // namespace hone::cost_model
