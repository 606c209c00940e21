#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/research/model/models.h"
#include "server/tuner/cost_model/xgboost_booster.h"

namespace hone::cost_model {
namespace {

constexpr int kMembers = 4;
constexpr double kShare = 0.63;
// Members have fewer training candidates and rounds than a single forest. With more rounds, they
// would fit the noise and disagree because of it.
constexpr ForestOptions kForest = {.max_rounds = 30, .patience = 10};

// The mean and variance of the members' scores for each candidate.
struct Moments {
  std::vector<double> mean, variance;
};

Moments MomentsOf(absl::Span<const std::vector<double>> scores) {
  Moments moments;
  const size_t candidates = scores.empty() ? 0 : scores.front().size();
  for (size_t i = 0; i < candidates; ++i) {
    double sum = 0, squares = 0;
    for (const std::vector<double>& member : scores) sum += member[i];
    const double mean = sum / static_cast<double>(scores.size());
    for (const std::vector<double>& member : scores)
      squares += (member[i] - mean) * (member[i] - mean);
    moments.mean.push_back(mean);
    // The unbiased estimate, because there are few members.
    moments.variance.push_back(squares / static_cast<double>(scores.size() - 1));
  }
  return moments;
}

class XgboostBagPredictor final : public Predictor {
 public:
  explicit XgboostBagPredictor(const CostModelOptions& options) : options_(options) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    const absl::Span<const double> throughput = labels.throughput;
    const int count = features.candidates();
    const auto columns = static_cast<size_t>(features.columns);
    const int drawn = std::max(1, static_cast<int>(std::lround(kShare * count)));
    std::vector<std::vector<bool>> seen;
    std::vector<std::vector<double>> scores;
    for (int m = 0; m < kMembers; ++m) {
      std::vector<int> order(count);
      absl::c_iota(order, 0);
      Rng rng(options_.seed, 0x626167 + m);
      for (int i = 0; i < drawn; ++i) std::swap(order[i], order[i + rng.Below(count - i)]);
      order.resize(drawn);
      absl::c_sort(order);
      FeatureMatrix part{.columns = features.columns};
      std::vector<double> labels;
      seen.emplace_back(count, false);
      for (const int i : order) {
        const size_t begin = features.row_begin[i], end = features.row_begin[i + 1];
        part.Append(
            absl::MakeConstSpan(features.values).subspan(begin * columns, (end - begin) * columns),
            static_cast<int>(end - begin));
        labels.push_back(throughput[i]);
        seen.back()[i] = true;
      }
      HONE_ASSIGN_OR_RETURN(FlatForest member, TrainForest(part, labels, kForest, options_));
      scores.push_back(ForestScores(member, features));
      members_.push_back(std::move(member));
    }
    noise_ = Noise(seen, scores, throughput);
    return absl::OkStatus();
  }

  int columns() const override { return members_.empty() ? 0 : members_.front().columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    std::vector<std::vector<double>> scores;
    for (const FlatForest& member : members_) scores.push_back(ForestScores(member, features));
    Moments moments = MomentsOf(scores);
    for (double& variance : moments.variance) variance = std::sqrt(variance + noise_);
    return Prediction{.mean = std::move(moments.mean), .spread = std::move(moments.variance)};
  }

  void Serialize(ByteWriter& writer) const override {
    writer.Add(static_cast<uint32_t>(members_.size()), noise_);
    for (const FlatForest& member : members_) member.Serialize(writer);
  }

  absl::Status Parse(ByteReader& reader) override {
    uint32_t members = 0;
    HONE_RETURN_IF_ERROR(reader.Read(members, noise_));
    bool fits = (members == 0 || members == kMembers) && noise_ >= 0 && std::isfinite(noise_);
    for (uint32_t m = 0; fits && m < members; ++m) {
      HONE_ASSIGN_OR_RETURN(members_.emplace_back(), FlatForest::Parse(reader));
      fits = members_[m].columns() == columns();
    }
    if (fits && (members > 0) == (columns() > 0)) return absl::OkStatus();
    return absl::InvalidArgumentError("cannot load the cost model: not a bag of forests");
  }

 private:
  // Returns the mean squared error on the candidates that members left out, minus the variance
  // among the members for these candidates; at least 0.
  static double Noise(const std::vector<std::vector<bool>>& seen,
                      const std::vector<std::vector<double>>& scores,
                      absl::Span<const double> throughput) {
    const Moments moments = MomentsOf(scores);
    double errors = 0, variances = 0;
    int count = 0;
    for (size_t i = 0; i < throughput.size(); ++i) {
      double sum = 0;
      int blind = 0;
      for (int m = 0; m < kMembers; ++m) {
        if (seen[m][i]) continue;
        sum += scores[m][i];
        ++blind;
      }
      if (blind == 0) continue;
      const double error = sum / blind - throughput[i];
      errors += error * error;
      variances += moments.variance[i];
      ++count;
    }
    return count == 0 ? 0 : std::max(0.0, (errors - variances) / count);
  }

  const CostModelOptions options_;
  std::vector<FlatForest> members_;  // empty: untrained
  double noise_ = 0;                 // variance of errors beyond the members' disagreement
};

}  // namespace

constexpr ModelKind kXgboostBagModel = {.name = "xgboost-bag",
                                        .feature_set = "statement",
                                        .make = MakePredictor<XgboostBagPredictor>,
                                        .has_spread = true};

}  // namespace hone::cost_model
