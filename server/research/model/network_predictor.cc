#include "server/research/model/network_predictor.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/research/model/calibration.h"
#include "server/research/model/column_scaler.h"
#include "server/tuner/cost_model/rank_loss.h"

namespace hone::cost_model {
namespace {

// The number of candidates whose scores are computed at once, which bounds the memory of Predict.
constexpr int kPredictBatch = 64;
constexpr int kTargetsInFile = 64;
constexpr int kTreeParent = 0;             // kTreeParentColumn of server/research/feature
constexpr double kLeastThroughput = 1e-3;  // of a failed candidate, for its logarithm

// InvalidArgument: the parent of a row is not an earlier row of its candidate.
absl::Status CheckTrees(const FeatureMatrix& features) {
  for (int i = 0; i < features.candidates(); ++i) {
    for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
      const float parent = features.row(r)[kTreeParent];
      const auto row = static_cast<float>(r - features.row_begin[i]);
      if (parent == std::floor(parent) && parent >= -1 && parent < row) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("feature ", kTreeParent, " of candidate ", i, ", row ", row,
                       ", is not the number of an earlier row: ", parent));
    }
  }
  return absl::OkStatus();
}

class NetworkPredictor final : public Predictor {
 public:
  NetworkPredictor(const NetworkKind& kind, const CostModelOptions& options)
      : kind_(kind), seed_(options.seed), pause_(options.pause) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    if (kind_.tree) HONE_RETURN_IF_ERROR(CheckTrees(features));
    if (kind_.several_targets && !labels.targets.empty()) {
      targets_ = 1 + *absl::c_max_element(labels.targets);
      if (targets_ > kTargetsInFile)
        return absl::InvalidArgumentError(
            absl::StrCat("at most ", kTargetsInFile, " targets, not ", targets_));
    }
    scaler_ = ColumnScaler::Fit(features.values, features.columns);
    network_ = kind_.make(scaler_.kept(), targets_, seed_);
    network::Adam adam(network_->weights(), kind_.training.weight_decay,
                       kind_.training.largest_gradient);
    const bool offsets = !labels.offset.empty();
    TaskBatches batches(labels, kind_.training, seed_);
    std::vector<double> scores, throughput, offset, gradient;
    std::vector<int> heads;
    while (batches.Next()) {
      if (pause_ != nullptr) HONE_RETURN_IF_ERROR(pause_());
      throughput.clear(), offset.clear(), heads.clear(), scores.clear();
      network::Tape tape(/*learns=*/true);
      const network::Var result = network_->Scores(tape, BatchOf(features, batches.members()));
      for (size_t m = 0; m < batches.members().size(); ++m) {
        const int i = batches.members()[m];
        throughput.push_back(labels.throughput[i]);
        if (offsets) offset.push_back(labels.offset[i]);
        heads.push_back(kind_.several_targets ? labels.TargetOf(i) : 0);
        scores.push_back(result->value(static_cast<Eigen::Index>(m), heads.back()));
      }
      gradient.resize(scores.size());
      LossOf(kind_.training.loss, scores, throughput, offset, batches.groups(),
             absl::MakeSpan(gradient));
      network::Matrix slope = network::Matrix::Zero(result->value.rows(), targets_);
      for (size_t m = 0; m < gradient.size(); ++m)
        slope(static_cast<Eigen::Index>(m), heads[m]) = static_cast<float>(gradient[m]);
      tape.Backward(result, std::move(slope));
      adam.Step(tape, kind_.training.learning_rate * batches.left());
    }
    if (kind_.training.loss == Loss::kSquares) return absl::OkStatus();
    if (offsets)
      calibration_ = {.offset = 0, .slope = 1 / kRankSharpness};
    else
      calibration_ = Calibration::Fit(ScoresOf(features), labels.throughput);
    return absl::OkStatus();
  }

  int columns() const override { return scaler_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    if (kind_.tree) HONE_RETURN_IF_ERROR(CheckTrees(features));
    Prediction prediction{.mean = ScoresOf(features)};
    for (double& mean : prediction.mean) mean = calibration_(mean);
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    scaler_.Serialize(writer);
    calibration_.Serialize(writer);
    if (network_ == nullptr) return;
    writer.Add<uint32_t>(targets_);
    network_->weights().Serialize(writer);
  }

  absl::Status Parse(ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(scaler_, ColumnScaler::Parse(reader));
    HONE_ASSIGN_OR_RETURN(calibration_, Calibration::Parse(reader));
    if (scaler_.columns() == 0) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const uint32_t targets, reader.Read<uint32_t>());
    const uint64_t least = uint64_t{sizeof(float)} * scaler_.kept() * kind_.width;
    if (targets < 1 || targets > (kind_.several_targets ? kTargetsInFile : 1) ||
        least > reader.remaining()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot load the cost model: ", reader.remaining(), " bytes are not a network of ",
          scaler_.kept(), " columns and ", targets, " targets"));
    }
    targets_ = static_cast<int>(targets);
    network_ = kind_.make(scaler_.kept(), targets_, seed_);
    return network_->weights().Parse(reader);
  }

 private:
  RowBatch BatchOf(const FeatureMatrix& features, absl::Span<const int> candidates) const {
    RowBatch batch;
    for (const int i : candidates)
      batch.begin.push_back(batch.begin.back() + features.row_begin[i + 1] - features.row_begin[i]);
    batch.rows.resize(batch.begin.back(), scaler_.kept());
    Eigen::Index at = 0;
    for (size_t c = 0; c < candidates.size(); ++c) {
      for (int32_t r = features.row_begin[candidates[c]]; r < features.row_begin[candidates[c] + 1];
           ++r) {
        scaler_.Apply(features.row(r), absl::MakeSpan(batch.rows.row(at++).data(),
                                                      static_cast<size_t>(scaler_.kept())));
        if (!kind_.tree) continue;
        const auto parent = static_cast<int>(features.row(r)[kTreeParent]);
        batch.parent.push_back(parent < 0 ? -1 : batch.begin[c] + parent);
      }
    }
    return batch;
  }

  // The scores for the first target.
  std::vector<double> ScoresOf(const FeatureMatrix& features) const {
    std::vector<double> scores;
    std::vector<int> members;
    for (int begin = 0; begin < features.candidates(); begin += kPredictBatch) {
      members.resize(std::min(kPredictBatch, features.candidates() - begin));
      absl::c_iota(members, begin);
      network::Tape tape;
      const network::Var result = network_->Scores(tape, BatchOf(features, members));
      for (Eigen::Index i = 0; i < result->value.rows(); ++i) scores.push_back(result->value(i, 0));
    }
    return scores;
  }

  const NetworkKind kind_;
  const uint64_t seed_;
  const std::function<absl::Status()> pause_;
  int targets_ = 1;
  ColumnScaler scaler_;                      // without columns: untrained
  std::unique_ptr<ScoringNetwork> network_;  // null: untrained
  Calibration calibration_;
};

}  // namespace

std::vector<int> RowBatch::Owners() const {
  std::vector<int> owners;
  for (int i = 0; i < candidates(); ++i) owners.insert(owners.end(), begin[i + 1] - begin[i], i);
  return owners;
}

TaskBatches::TaskBatches(const Labels& labels, const NetworkTraining& training, uint64_t seed)
    : group_(training.group),
      groups_per_batch_(std::max(1, training.batch / training.group)),
      rng_(seed, 0x6261746368) {
  std::map<int32_t, std::vector<int>> tasks;
  for (size_t i = 0; i < labels.throughput.size(); ++i)
    tasks[training.by_task ? labels.TaskOf(i) : 0].push_back(static_cast<int>(i));
  for (auto& [number, candidates] : tasks) tasks_.push_back(std::move(candidates));
  Shuffle();
  batches_ = (static_cast<int>(chunks_.size()) + groups_per_batch_ - 1) / groups_per_batch_;
  const int epochs =
      std::max(training.epochs, (training.least_steps + batches_ - 1) / std::max(1, batches_));
  steps_ = std::min(batches_ * epochs, std::max(training.most_steps, training.least_steps));
}

void TaskBatches::Shuffle() {
  const auto shuffle = [&](auto& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng_.Below(i)]);
  };
  chunks_.clear();
  for (std::vector<int>& task : tasks_) {
    shuffle(task);
    const size_t count = task.size(), parts = (count + group_ - 1) / group_;
    for (size_t p = 0; p < parts; ++p)
      chunks_.emplace_back(task.begin() + static_cast<int64_t>(p * count / parts),
                           task.begin() + static_cast<int64_t>((p + 1) * count / parts));
  }
  shuffle(chunks_);
}

bool TaskBatches::Next() {
  if (++step_ == steps_) return false;
  const int batch = step_ % batches_;
  if (batch == 0 && step_ > 0) Shuffle();
  const auto chunks = static_cast<int>(chunks_.size());
  members_.clear();
  groups_.assign(1, 0);
  for (int c = batch * chunks / batches_; c < (batch + 1) * chunks / batches_; ++c) {
    members_.insert(members_.end(), chunks_[c].begin(), chunks_[c].end());
    groups_.push_back(static_cast<int>(members_.size()));
  }
  return true;
}

double LossOf(Loss loss, absl::Span<const double> scores, absl::Span<const double> throughput,
              absl::Span<const double> offset, absl::Span<const int> groups,
              absl::Span<double> gradient) {
  const auto all = static_cast<double>(scores.size());
  double total = 0;
  std::vector<double> values, ignored;
  for (size_t g = 0; g + 1 < groups.size(); ++g) {
    const size_t begin = groups[g], count = groups[g + 1] - groups[g];
    const absl::Span<double> slopes = gradient.subspan(begin, count);
    values.assign(scores.begin() + groups[g], scores.begin() + groups[g + 1]);
    if (loss == Loss::kRank) {
      for (size_t i = 0; i < count && !offset.empty(); ++i)
        values[i] += kRankSharpness * offset[begin + i];
      ignored.resize(count);
      total += static_cast<double>(count) *
               RankLoss(throughput.subspan(begin, count), static_cast<int>(count), 0)
                   .Differentiate(values, slopes, absl::MakeSpan(ignored));
    } else {
      double mean = 0;
      for (size_t i = 0; i < count; ++i) {
        values[i] -= offset.empty() ? throughput[begin + i]
                                    : std::log(std::max(throughput[begin + i], kLeastThroughput)) -
                                          offset[begin + i];
        mean += values[i] / static_cast<double>(count);
      }
      for (size_t i = 0; i < count; ++i) {
        const double error = values[i] - (offset.empty() ? 0 : mean);
        total += error * error;
        slopes[i] = 2 * error;
      }
    }
  }
  for (double& slope : gradient) slope /= all;
  return total / all;
}

std::unique_ptr<Predictor> MakeNetworkPredictor(const NetworkKind& kind,
                                                const CostModelOptions& options) {
  return std::make_unique<NetworkPredictor>(kind, options);
}

}  // namespace hone::cost_model
