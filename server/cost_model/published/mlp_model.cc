#include "server/cost_model/published/mlp_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/calibration.h"
#include "server/cost_model/column_scaler.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/published/adam.h"
#include "server/cost_model/published/mlp_network.h"
#include "server/cost_model/rank_loss.h"
#include "server/cost_model/validate.h"

namespace hone::cost_model {
namespace {

// Scores of that many candidates are computed at once, which bounds the memory of a Predict.
constexpr int kForwardBatch = 256;

// The scaled rows of some candidates, one after the other.
void Gather(const FeatureMatrix& features, const ColumnScaler& scaler,
            absl::Span<const int> candidates, Matrix& rows, std::vector<int32_t>& row_begin) {
  row_begin.assign(1, 0);
  for (const int i : candidates)
    row_begin.push_back(row_begin.back() + features.row_begin[i + 1] - features.row_begin[i]);
  rows = Matrix(row_begin.back(), scaler.kept());
  int at = 0;
  for (const int i : candidates) {
    for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
      scaler.Apply(absl::MakeConstSpan(features.values)
                       .subspan(static_cast<size_t>(r) * features.columns, features.columns),
                   absl::MakeSpan(rows.row(at++), rows.columns));
    }
  }
}

class MlpModel final : public CostModel {
 public:
  MlpModel(const CostModelOptions& options, const MlpOptions& mlp)
      : seed_(options.seed),
        mlp_(mlp),
        feature_set_(options.feature_set.empty() ? "statement" : options.feature_set) {}

  absl::string_view name() const override { return "mlp"; }
  absl::string_view feature_set() const override { return feature_set_; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    state_ = State();
    if (features.candidates() == 0) return absl::OkStatus();
    state_.scaler = ColumnScaler::Fit(features.values, features.columns);
    state_.network = MlpNetwork(state_.scaler.kept(), mlp_.hidden, seed_);
    Train(features, throughput);
    state_.calibration = Calibration::Fit(Scores(features), throughput);
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    Prediction prediction;
    if (state_.scaler.columns() == 0) {
      prediction.mean.assign(features.candidates(), 0.0);
      return prediction;
    }
    HONE_RETURN_IF_ERROR(ValidateColumns(features, state_.scaler.columns()));
    prediction.mean = Scores(features);
    for (double& mean : prediction.mean) mean = state_.calibration(mean);
    return prediction;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    state_.scaler.Serialize(writer);
    state_.calibration.Serialize(writer);
    state_.network.Serialize(writer);
    return EncodeModel(Header(state_.scaler.columns()), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    State state;
    HONE_ASSIGN_OR_RETURN(state.scaler, ColumnScaler::Parse(reader));
    HONE_ASSIGN_OR_RETURN(state.calibration, Calibration::Parse(reader));
    HONE_ASSIGN_OR_RETURN(state.network, MlpNetwork::Parse(reader, state.scaler.kept()));
    if (reader.remaining() != 0 || state.network.empty() != (state.scaler.columns() == 0) ||
        file.header.columns != static_cast<uint32_t>(state.scaler.columns())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not loaded as a cost model: a network over ", state.scaler.columns(), " columns and ",
          reader.remaining(), " more bytes under a header of ", file.header.columns, " columns"));
    }
    state_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  struct State {
    ColumnScaler scaler;  // of no columns: has seen nothing
    MlpNetwork network;
    Calibration calibration;
  };

  void Train(const FeatureMatrix& features, absl::Span<const double> throughput) {
    const int count = features.candidates();
    const int batches = (count + mlp_.batch - 1) / mlp_.batch;
    const int epochs = std::max(mlp_.epochs, (mlp_.least_steps + batches - 1) / batches);
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    Rng rng(seed_, 0x7368756666);
    Adam adam(mlp_.weight_decay, mlp_.largest_gradient);
    const std::vector<Matrix*> parameters = state_.network.Parameters();
    MlpNetwork::Activations activations;
    std::vector<int32_t> row_begin;
    std::vector<double> labels, gradient, hessian;
    for (int step = 0; step < epochs * batches; ++step) {
      const int batch = step % batches;
      if (batch == 0) {
        for (int i = count - 1; i > 0; --i) std::swap(order[i], order[rng.Below(i + 1)]);
      }
      // Equal shares, so that no batch is too small to compare.
      const int begin = batch * count / batches, end = (batch + 1) * count / batches;
      const auto members = absl::MakeConstSpan(order).subspan(begin, end - begin);
      Gather(features, state_.scaler, members, activations.rows, row_begin);
      labels.clear();
      for (const int i : members) labels.push_back(throughput[i]);
      state_.network.Forward(row_begin, activations);
      gradient.resize(labels.size());
      hessian.resize(labels.size());
      RankLoss(labels, mlp_.batch, seed_)
          .Differentiate(activations.scores, absl::MakeSpan(gradient), absl::MakeSpan(hessian));
      for (double& each : gradient) each /= static_cast<double>(labels.size());
      const double left = 1 - static_cast<double>(step) / (epochs * batches);
      adam.Step(parameters, state_.network.Backward(row_begin, activations, gradient),
                mlp_.learning_rate * left);
    }
  }

  std::vector<double> Scores(const FeatureMatrix& features) const {
    std::vector<double> scores;
    MlpNetwork::Activations activations;
    std::vector<int32_t> row_begin;
    std::vector<int> members;
    for (int begin = 0; begin < features.candidates(); begin += kForwardBatch) {
      members.resize(std::min(kForwardBatch, features.candidates() - begin));
      std::iota(members.begin(), members.end(), begin);
      Gather(features, state_.scaler, members, activations.rows, row_begin);
      state_.network.Forward(row_begin, activations);
      scores.insert(scores.end(), activations.scores.begin(), activations.scores.end());
    }
    return scores;
  }

  ModelHeader Header(int columns) const {
    return {.name = "mlp",
            .version = 1,
            .feature_set = feature_set_,
            .columns = static_cast<uint32_t>(columns)};
  }

  const uint64_t seed_;
  const MlpOptions mlp_;
  const std::string feature_set_;
  State state_;
};

}  // namespace

std::unique_ptr<CostModel> MakeMlpModel(const CostModelOptions& options) {
  return MakeMlpModel(options, MlpOptions());
}

std::unique_ptr<CostModel> MakeMlpModel(const CostModelOptions& options, const MlpOptions& mlp) {
  return std::make_unique<MlpModel>(options, mlp);
}

}  // namespace hone::cost_model
