#include <algorithm>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "server/research/model/calibration.h"
#include "server/research/model/column_scaler.h"
#include "server/research/model/mlp_network.h"
#include "server/research/model/models.h"
#include "server/tuner/cost_model/rank_loss.h"

namespace hone::cost_model {
namespace {

// TenSet uses 256, for millions of records. 64 suits the hundreds of records of one task and the
// time limits of a search.
constexpr int kHidden = 64;
constexpr int kEpochs = 40;
constexpr int kLeastSteps = 200;        // minimum number of training steps
constexpr int kBatch = 64;              // maximum number of candidates in a batch
constexpr double kLearningRate = 2e-3;  // of Adam; decreases to 0 during the training
constexpr double kWeightDecay = 1e-6;
constexpr double kLargestGradient = 0.5;  // norm; larger ones are clipped
// The number of candidates whose scores are computed at once, which bounds the memory of Predict.
constexpr int kForwardBatch = 256;

// Collects the scaled rows of some candidates.
void Gather(const FeatureMatrix& features, const ColumnScaler& scaler,
            absl::Span<const int> candidates, Matrix& rows, std::vector<int32_t>& row_begin) {
  row_begin.assign(1, 0);
  for (const int i : candidates)
    row_begin.push_back(row_begin.back() + features.row_begin[i + 1] - features.row_begin[i]);
  rows = Matrix(row_begin.back(), scaler.kept());
  int at = 0;
  for (const int i : candidates) {
    for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
      scaler.Apply(features.row(r), absl::MakeSpan(rows.row(at++), rows.columns));
    }
  }
}

class MlpPredictor final : public Predictor {
 public:
  explicit MlpPredictor(const CostModelOptions& options) : seed_(options.seed) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    const absl::Span<const double> throughput = labels.throughput;
    scaler_ = ColumnScaler::Fit(features.values, features.columns);
    network_ = MlpNetwork(scaler_.kept(), kHidden, seed_);
    Adam adam(kWeightDecay, kLargestGradient);
    const std::vector<Matrix*> parameters = network_.Parameters();
    MlpNetwork::Activations activations;
    std::vector<int32_t> row_begin;
    RankBatches batches(throughput, {kBatch, kEpochs, kLeastSteps}, seed_, 0x7368756666);
    while (batches.Next()) {
      Gather(features, scaler_, batches.members(), activations.rows, row_begin);
      network_.Forward(row_begin, activations);
      adam.Step(parameters,
                network_.Backward(row_begin, activations, batches.Gradient(activations.scores)),
                kLearningRate * batches.left());
    }
    calibration_ = Calibration::Fit(Scores(features), throughput);
    return absl::OkStatus();
  }

  int columns() const override { return scaler_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction{.mean = Scores(features)};
    for (double& mean : prediction.mean) mean = calibration_(mean);
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    scaler_.Serialize(writer);
    calibration_.Serialize(writer);
    network_.Serialize(writer);
  }

  absl::Status Parse(ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(scaler_, ColumnScaler::Parse(reader));
    HONE_ASSIGN_OR_RETURN(calibration_, Calibration::Parse(reader));
    HONE_ASSIGN_OR_RETURN(network_, MlpNetwork::Parse(reader, scaler_.kept()));
    if (network_.empty() == (scaler_.columns() == 0)) return absl::OkStatus();
    return absl::InvalidArgumentError("cannot load the cost model: not the network of its columns");
  }

 private:
  std::vector<double> Scores(const FeatureMatrix& features) const {
    std::vector<double> scores;
    MlpNetwork::Activations activations;
    std::vector<int32_t> row_begin;
    std::vector<int> members;
    for (int begin = 0; begin < features.candidates(); begin += kForwardBatch) {
      members.resize(std::min(kForwardBatch, features.candidates() - begin));
      absl::c_iota(members, begin);
      Gather(features, scaler_, members, activations.rows, row_begin);
      network_.Forward(row_begin, activations);
      scores.insert(scores.end(), activations.scores.begin(), activations.scores.end());
    }
    return scores;
  }

  const uint64_t seed_;
  ColumnScaler scaler_;  // without columns: untrained
  MlpNetwork network_;
  Calibration calibration_;
};

}  // namespace

constexpr ModelKind kMlpModel = {
    .name = "mlp", .feature_set = "statement", .make = MakePredictor<MlpPredictor>};

}  // namespace hone::cost_model
