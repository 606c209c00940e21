// Built only with HONE_WITH_TORCH. Only this file includes libtorch; it catches libtorch's
// exceptions.

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/research/model/calibration.h"
#include "server/research/model/column_scaler.h"
#include "server/research/model/models.h"
#include "server/tuner/cost_model/rank_loss.h"

namespace hone::cost_model {
namespace {

constexpr int kHidden = 128;  // of a loop's embedding and state
constexpr int kSlots = 8;
constexpr int kBatch = 64;  // maximum number of candidates in a batch
constexpr int kEpochs = 30;
constexpr int kLeastSteps = 150;
constexpr double kLearningRate = 2e-3;
constexpr double kWeightDecay = 1e-6;
constexpr double kLargestGradient = 0.5;
constexpr int kParentColumn = 0;  // kTreeParentColumn of server/tuner/feature/feature_sets.h
// The loops of some candidates by height: a loop is processed after all loops inside it.
struct Forest {
  torch::Tensor rows;                        // loops × features
  std::vector<int64_t> parent;               // of each loop; -1: none
  std::vector<std::vector<int64_t>> levels;  // innermost loops first
  std::vector<int64_t> candidate;            // of a loop
  int64_t candidates = 0;
};

struct NetworkImpl : torch::nn::Module {
  explicit NetworkImpl(int inputs)
      : embedding(register_module("embedding", torch::nn::Linear(inputs, kHidden))),
        gru(register_module("gru", torch::nn::GRUCell(kHidden, kHidden))),
        slots(register_module(
            "slots", torch::nn::Linear(torch::nn::LinearOptions(kHidden, kSlots).bias(false)))),
        score(register_module("score", torch::nn::Linear(kSlots * kHidden, 1))) {}

  // Returns one score per candidate.
  torch::Tensor forward(const Forest& forest) {
    const torch::Tensor embedded = torch::relu(embedding(forest.rows));
    const auto loops = static_cast<int64_t>(forest.parent.size());
    // For each loop, the sum of the states of the loops directly inside it.
    torch::Tensor inside = torch::zeros({loops, kHidden});
    torch::Tensor states = torch::zeros({loops, kHidden});
    for (const std::vector<int64_t>& level : forest.levels) {
      const torch::Tensor at = torch::tensor(level);
      const torch::Tensor state = gru(embedded.index_select(0, at), inside.index_select(0, at));
      states = states.index_copy(0, at, state);
      std::vector<int64_t> to, from;
      for (size_t i = 0; i < level.size(); ++i) {
        if (forest.parent[level[i]] < 0) continue;
        to.push_back(forest.parent[level[i]]);
        from.push_back(static_cast<int64_t>(i));
      }
      if (to.empty()) continue;
      inside = inside.index_add(0, torch::tensor(to), state.index_select(0, torch::tensor(from)));
    }
    // The share of every loop's state in each slot.
    const torch::Tensor share = torch::softmax(slots(states), 1);
    const torch::Tensor scattered =
        (share.unsqueeze(2) * states.unsqueeze(1)).reshape({loops, kSlots * kHidden});
    const torch::Tensor summed = torch::zeros({forest.candidates, kSlots * kHidden})
                                     .index_add(0, torch::tensor(forest.candidate), scattered);
    return score(summed).squeeze(1);
  }

  torch::nn::Linear embedding;
  torch::nn::GRUCell gru;
  torch::nn::Linear slots, score;
};
TORCH_MODULE(Network);

// InvalidArgument: the parent of a row is not an earlier row of its candidate.
absl::Status CheckParents(const FeatureMatrix& features) {
  for (int i = 0; i < features.candidates(); ++i) {
    for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
      const float parent = features.row(r)[kParentColumn];
      const auto row = static_cast<float>(r - features.row_begin[i]);
      if (parent == std::floor(parent) && parent >= -1 && parent < row) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("feature ", kParentColumn, " of candidate ", i, ", row ", row,
                       ", is not the number of an earlier row: ", parent));
    }
  }
  return absl::OkStatus();
}

Forest GrowForest(const FeatureMatrix& features, const ColumnScaler& scaler,
                  absl::Span<const int> candidates) {
  Forest forest;
  forest.candidates = static_cast<int64_t>(candidates.size());
  std::vector<float> scaled;
  for (size_t c = 0; c < candidates.size(); ++c) {
    const int32_t begin = features.row_begin[candidates[c]],
                  end = features.row_begin[candidates[c] + 1];
    const auto first = static_cast<int64_t>(forest.parent.size());
    for (int32_t r = begin; r < end; ++r) {
      const absl::Span<const float> row = features.row(r);
      const auto parent = static_cast<int64_t>(row[kParentColumn]);
      forest.parent.push_back(parent < 0 ? -1 : first + parent);
      forest.candidate.push_back(static_cast<int64_t>(c));
      scaled.resize(scaled.size() + scaler.kept());
      scaler.Apply(row, absl::MakeSpan(scaled).last(scaler.kept()));
    }
  }
  const auto loops = static_cast<int64_t>(forest.parent.size());
  std::vector<size_t> height(loops, 0);
  for (int64_t loop = loops - 1; loop >= 0; --loop) {  // children come after their parents
    if (forest.levels.size() <= height[loop]) forest.levels.resize(height[loop] + 1);
    forest.levels[height[loop]].push_back(loop);
    if (const int64_t parent = forest.parent[loop]; parent >= 0) {
      height[parent] = std::max(height[parent], height[loop] + 1);
    }
  }
  forest.rows = torch::from_blob(scaled.data(), {loops, scaler.kept()}, torch::kFloat).clone();
  return forest;
}

class TreeGruPredictor final : public Predictor {
 public:
  explicit TreeGruPredictor(const CostModelOptions& options)
      : seed_(options.seed), threads_(options.threads) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    const absl::Span<const double> throughput = labels.throughput;
    HONE_RETURN_IF_ERROR(CheckParents(features));
    try {
      TrainNetwork(features, throughput);
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("libtorch: ", error.what()));
    }
    return absl::OkStatus();
  }

  int columns() const override { return scaler_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(CheckParents(features));
    Prediction prediction;
    try {
      prediction.mean = Scores(features);
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("libtorch: ", error.what()));
    }
    for (double& mean : prediction.mean) mean = calibration_(mean);
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    scaler_.Serialize(writer);
    calibration_.Serialize(writer);
    if (scaler_.columns() == 0) return;
    for (const torch::Tensor& parameter : network_->parameters()) {
      const torch::Tensor flat = parameter.detach().contiguous().view(-1);
      writer.Add<uint64_t>(flat.numel());
      for (int64_t i = 0; i < flat.numel(); ++i) writer.Add(flat.data_ptr<float>()[i]);
    }
  }

  absl::Status Parse(ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(scaler_, ColumnScaler::Parse(reader));
    HONE_ASSIGN_OR_RETURN(calibration_, Calibration::Parse(reader));
    if (scaler_.columns() == 0) return absl::OkStatus();
    network_ = Network(scaler_.kept());
    const torch::NoGradGuard no_gradients;
    for (torch::Tensor& parameter : network_->parameters()) {
      HONE_ASSIGN_OR_RETURN(const uint64_t count, reader.Read<uint64_t>());
      bool fits = count == static_cast<uint64_t>(parameter.numel());
      std::vector<float> values(fits ? count : 0);
      for (float& value : values) {
        HONE_RETURN_IF_ERROR(reader.Read(value));
        fits = fits && std::isfinite(value);
      }
      if (!fits) {
        return absl::InvalidArgumentError(
            "cannot load the cost model: not the network of its columns");
      }
      parameter.copy_(torch::from_blob(values.data(), parameter.sizes(), torch::kFloat));
    }
    return absl::OkStatus();
  }

 private:
  void TrainNetwork(const FeatureMatrix& features, absl::Span<const double> throughput) {
    torch::set_num_threads(threads_);
    scaler_ = ColumnScaler::Fit(features.values, features.columns);
    torch::manual_seed(seed_);
    network_ = Network(scaler_.kept());
    torch::optim::Adam adam(network_->parameters(),
                            torch::optim::AdamOptions(kLearningRate).weight_decay(kWeightDecay));
    std::vector<double> scores;
    RankBatches batches(throughput, {kBatch, kEpochs, kLeastSteps}, seed_, 0x74726565);
    while (batches.Next()) {
      adam.zero_grad();
      const torch::Tensor output =
          network_->forward(GrowForest(features, scaler_, batches.members()));
      scores.resize(batches.members().size());
      for (size_t i = 0; i < scores.size(); ++i) scores[i] = output[i].item<float>();
      const absl::Span<const double> gradient = batches.Gradient(scores);
      torch::Tensor slope = torch::empty_like(output);
      for (size_t i = 0; i < scores.size(); ++i) slope[i] = gradient[i];
      output.backward(slope);
      torch::nn::utils::clip_grad_norm_(network_->parameters(), kLargestGradient);
      static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options())
          .lr(kLearningRate * batches.left());
      adam.step();
    }
    calibration_ = Calibration::Fit(Scores(features), throughput);
  }

  std::vector<double> Scores(const FeatureMatrix& features) const {
    const torch::NoGradGuard no_gradients;
    std::vector<double> scores;
    // Candidates are scored one by one: the shape of a product determines the order of its sums, so
    // a score would otherwise depend on the other candidates. forward is not const in libtorch, but
    // it writes nothing here.
    Network network = network_;
    for (int i = 0; i < features.candidates(); ++i) {
      scores.push_back(
          network->forward(GrowForest(features, scaler_, absl::MakeConstSpan(&i, 1)))[0]
              .item<float>());
    }
    return scores;
  }

  const uint64_t seed_;
  const int threads_;
  ColumnScaler scaler_;        // without columns: untrained
  Network network_ = nullptr;  // null if untrained
  Calibration calibration_;
};

}  // namespace

constexpr ModelKind kTreeGruModel = {.name = "treegru",
                                     .feature_set = "tree",
                                     .make = MakePredictor<TreeGruPredictor>,
                                     .any_features = false};

}  // namespace hone::cost_model
