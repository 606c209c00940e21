#include "server/cost_model/xgboost_bag_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/flat_forest.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/validate.h"
#include "server/cost_model/xgboost_training.h"

namespace hone::cost_model {
namespace {

constexpr int kMembers = 4;
constexpr double kShare = 0.63;
// A member sees less and ends sooner: the noise that more rounds would fit is what they disagree
// on.
constexpr ForestOptions kForest = {.max_rounds = 30, .patience = 10};

// The members' scores, [member][candidate], as mean and variance of each candidate.
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
    for (const std::vector<double>& member : scores) {
      squares += (member[i] - mean) * (member[i] - mean);
    }
    moments.mean.push_back(mean);
    // Unbiased, since the members are few.
    moments.variance.push_back(squares / static_cast<double>(scores.size() - 1));
  }
  return moments;
}

class XgboostBagModel final : public CostModel {
 public:
  explicit XgboostBagModel(const CostModelOptions& options)
      : options_(options),
        feature_set_(options.feature_set.empty() ? "statement" : options.feature_set) {}

  absl::string_view name() const override { return "xgboost-bag"; }
  absl::string_view feature_set() const override { return feature_set_; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    State state;
    if (features.candidates() > 0) {
      HONE_ASSIGN_OR_RETURN(state, Train(features, throughput));
    }
    state_ = std::move(state);
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    Prediction prediction;
    if (state_.members.empty()) {
      prediction.mean.assign(features.candidates(), 0.0);
      return prediction;
    }
    HONE_RETURN_IF_ERROR(ValidateColumns(features, state_.members.front().columns()));
    std::vector<std::vector<double>> scores;
    for (const FlatForest& member : state_.members) {
      scores.push_back(ForestScores(member, features));
    }
    Moments moments = MomentsOf(scores);
    prediction.mean = std::move(moments.mean);
    for (const double variance : moments.variance) {
      prediction.spread.push_back(std::sqrt(variance + state_.noise));
    }
    return prediction;
  }

  absl::StatusOr<std::vector<double>> RowScores(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    if (state_.members.empty()) return std::vector<double>();
    HONE_RETURN_IF_ERROR(ValidateColumns(features, state_.members.front().columns()));
    std::vector<double> scores(features.rows(), 0.0);
    for (const FlatForest& member : state_.members) {
      const std::vector<float> rows = ForestRowScores(member, features);
      for (size_t i = 0; i < rows.size(); ++i) scores[i] += rows[i] / kMembers;
    }
    return scores;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    writer.AddU32(static_cast<uint32_t>(state_.members.size()));
    writer.AddDouble(state_.noise);
    for (const FlatForest& member : state_.members) member.Serialize(writer);
    return EncodeModel(Header(state_.members.empty() ? 0 : state_.members.front().columns()),
                       std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    State state;
    HONE_ASSIGN_OR_RETURN(const uint32_t members, reader.U32());
    HONE_ASSIGN_OR_RETURN(state.noise, reader.Double());
    bool fits = (members == 0 || members == kMembers) && state.noise >= 0 &&
                std::isfinite(state.noise) && (members > 0) == (file.header.columns > 0);
    for (uint32_t m = 0; fits && m < members; ++m) {
      HONE_ASSIGN_OR_RETURN(FlatForest member, FlatForest::Parse(reader));
      fits = static_cast<uint32_t>(member.columns()) == file.header.columns;
      state.members.push_back(std::move(member));
    }
    if (!fits || reader.remaining() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not loaded as a cost model: ", members, " forests, noise ", state.noise, " and ",
          reader.remaining(), " more bytes under a header of ", file.header.columns, " columns"));
    }
    state_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  struct State {
    std::vector<FlatForest> members;  // none: has seen nothing
    double noise = 0;                 // variance of errors beyond the members' disagreement
  };

  absl::StatusOr<State> Train(const FeatureMatrix& features,
                              absl::Span<const double> throughput) const {
    State state;
    const int count = features.candidates();
    const auto columns = static_cast<size_t>(features.columns);
    const int drawn = std::max(1, static_cast<int>(std::lround(kShare * count)));
    std::vector<std::vector<bool>> seen;
    std::vector<std::vector<double>> scores;
    for (int m = 0; m < kMembers; ++m) {
      std::vector<int> order(count);
      std::iota(order.begin(), order.end(), 0);
      Rng rng(options_.seed, 0x626167 + m);
      for (int i = 0; i < drawn; ++i) std::swap(order[i], order[i + rng.Below(count - i)]);
      order.resize(drawn);
      std::sort(order.begin(), order.end());
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
      state.members.push_back(std::move(member));
    }
    state.noise = Noise(seen, scores, throughput);
    return state;
  }

  // The mean squared error of members on what they have not seen, less their variance there.
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

  ModelHeader Header(int columns) const {
    return {.name = "xgboost-bag",
            .version = 1,
            .feature_set = feature_set_,
            .columns = static_cast<uint32_t>(columns)};
  }

  const CostModelOptions options_;
  const std::string feature_set_;
  State state_;
};

}  // namespace

std::unique_ptr<CostModel> MakeXgboostBagModel(const CostModelOptions& options) {
  return std::make_unique<XgboostBagModel>(options);
}

}  // namespace hone::cost_model
