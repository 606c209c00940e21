// Built only with HONE_WITH_TORCH: the one file that includes libtorch, whose exceptions end here.

#include "server/cost_model/published/treegru_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/calibration.h"
#include "server/cost_model/column_scaler.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/rank_loss.h"
#include "server/cost_model/validate.h"

namespace hone::cost_model {
namespace {

constexpr int kHidden = 128;  // of a loop's embedding and state
constexpr int kSlots = 8;
constexpr int kBatch = 64;  // candidates whose order is compared at once
constexpr int kEpochs = 30;
constexpr int kLeastSteps = 150;
constexpr double kLearningRate = 2e-3;
constexpr double kWeightDecay = 1e-6;
constexpr double kLargestGradient = 0.5;
constexpr int kParentColumn = 0;  // kTreeParentColumn of server/feature/tree_features.h
// The loops of some candidates, by height: a loop is read after all that it contains.
struct Forest {
  torch::Tensor rows;                        // loops × features
  std::vector<int64_t> parent;               // of a loop; -1
  std::vector<std::vector<int64_t>> levels;  // loops without loops inside first
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

  // One score per candidate.
  torch::Tensor forward(const Forest& forest) {
    const torch::Tensor embedded = torch::relu(embedding(forest.rows));
    const auto loops = static_cast<int64_t>(forest.parent.size());
    // What the loops inside came to, summed up as their parents are reached.
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
    // Every loop's state goes into each slot by its share.
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

// InvalidArgument: a row names no earlier row of its candidate as its parent.
absl::Status CheckParents(const FeatureMatrix& features) {
  for (int i = 0; i < features.candidates(); ++i) {
    for (int32_t r = features.row_begin[i]; r < features.row_begin[i + 1]; ++r) {
      const float parent =
          features.values[static_cast<size_t>(r) * features.columns + kParentColumn];
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
      const auto row = absl::MakeConstSpan(features.values)
                           .subspan(static_cast<size_t>(r) * features.columns, features.columns);
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

class TreeGruModel final : public CostModel {
 public:
  explicit TreeGruModel(const CostModelOptions& options)
      : seed_(options.seed), threads_(options.threads) {}

  absl::string_view name() const override { return "treegru"; }
  absl::string_view feature_set() const override { return "tree"; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    HONE_RETURN_IF_ERROR(CheckParents(features));
    State state;
    if (features.candidates() > 0) {
      try {
        Train(features, throughput, state);
      } catch (const std::exception& error) {
        return absl::InternalError(absl::StrCat("libtorch: ", error.what()));
      }
    }
    state_ = std::move(state);
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
    HONE_RETURN_IF_ERROR(CheckParents(features));
    try {
      prediction.mean = Scores(features, state_);
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("libtorch: ", error.what()));
    }
    for (double& mean : prediction.mean) mean = state_.calibration(mean);
    return prediction;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    state_.scaler.Serialize(writer);
    state_.calibration.Serialize(writer);
    if (state_.scaler.columns() > 0) {
      for (const torch::Tensor& parameter : state_.network->parameters()) {
        const torch::Tensor flat = parameter.detach().contiguous().view(-1);
        writer.AddU64(static_cast<uint64_t>(flat.numel()));
        for (int64_t i = 0; i < flat.numel(); ++i) writer.AddFloat(flat.data_ptr<float>()[i]);
      }
    }
    return EncodeModel(Header(state_.scaler.columns()), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    State state;
    HONE_ASSIGN_OR_RETURN(state.scaler, ColumnScaler::Parse(reader));
    HONE_ASSIGN_OR_RETURN(state.calibration, Calibration::Parse(reader));
    bool fits = file.header.columns == static_cast<uint32_t>(state.scaler.columns());
    if (fits && state.scaler.columns() > 0) {
      state.network = Network(state.scaler.kept());
      const torch::NoGradGuard no_gradients;
      for (torch::Tensor& parameter : state.network->parameters()) {
        HONE_ASSIGN_OR_RETURN(const uint64_t count, reader.U64());
        if (count != static_cast<uint64_t>(parameter.numel())) {
          fits = false;
          break;
        }
        std::vector<float> values(count);
        for (float& value : values) {
          HONE_ASSIGN_OR_RETURN(value, reader.Float());
          fits = fits && std::isfinite(value);
        }
        parameter.copy_(torch::from_blob(values.data(), parameter.sizes(), torch::kFloat));
      }
    }
    if (!fits || reader.remaining() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not loaded as a cost model: a network over ", state.scaler.columns(), " columns and ",
          reader.remaining(), " more bytes under a header of ", file.header.columns, " columns"));
    }
    state_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  struct State {
    ColumnScaler scaler;        // of no columns: has seen nothing
    Network network = nullptr;  // null then
    Calibration calibration;
  };

  void Train(const FeatureMatrix& features, absl::Span<const double> throughput,
             State& state) const {
    torch::set_num_threads(threads_);
    state.scaler = ColumnScaler::Fit(features.values, features.columns);
    torch::manual_seed(seed_);
    state.network = Network(state.scaler.kept());
    torch::optim::Adam adam(state.network->parameters(),
                            torch::optim::AdamOptions(kLearningRate).weight_decay(kWeightDecay));
    const int count = features.candidates();
    const int batches = (count + kBatch - 1) / kBatch;
    const int epochs = std::max(kEpochs, (kLeastSteps + batches - 1) / batches);
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    Rng rng(seed_, 0x74726565);
    std::vector<double> labels, scores, gradient, hessian;
    for (int step = 0; step < epochs * batches; ++step) {
      const int batch = step % batches;
      if (batch == 0) {
        for (int i = count - 1; i > 0; --i) std::swap(order[i], order[rng.Below(i + 1)]);
      }
      // Equal shares, so that no batch is too small to compare.
      const int begin = batch * count / batches, end = (batch + 1) * count / batches;
      const auto members = absl::MakeConstSpan(order).subspan(begin, end - begin);
      labels.clear();
      for (const int i : members) labels.push_back(throughput[i]);
      adam.zero_grad();
      const torch::Tensor output =
          state.network->forward(GrowForest(features, state.scaler, members));
      scores.resize(labels.size());
      for (size_t i = 0; i < labels.size(); ++i) scores[i] = output[i].item<float>();
      gradient.resize(labels.size());
      hessian.resize(labels.size());
      RankLoss(labels, kBatch, seed_)
          .Differentiate(scores, absl::MakeSpan(gradient), absl::MakeSpan(hessian));
      torch::Tensor slope = torch::empty_like(output);
      for (size_t i = 0; i < labels.size(); ++i) {
        slope[i] = gradient[i] / static_cast<double>(labels.size());
      }
      output.backward(slope);
      torch::nn::utils::clip_grad_norm_(state.network->parameters(), kLargestGradient);
      const double left = 1 - static_cast<double>(step) / (epochs * batches);
      static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options())
          .lr(kLearningRate * left);
      adam.step();
    }
    state.calibration = Calibration::Fit(Scores(features, state), throughput);
  }

  static std::vector<double> Scores(const FeatureMatrix& features, const State& state) {
    const torch::NoGradGuard no_gradients;
    std::vector<double> scores;
    // One by one, so that a score does not depend on those beside it: products of other shapes are
    // summed up in another order. forward is not const in libtorch, but writes nothing here.
    Network network = state.network;
    for (int i = 0; i < features.candidates(); ++i) {
      scores.push_back(
          network->forward(GrowForest(features, state.scaler, absl::MakeConstSpan(&i, 1)))[0]
              .item<float>());
    }
    return scores;
  }

  static ModelHeader Header(int columns) {
    return {.name = "treegru",
            .version = 1,
            .feature_set = "tree",
            .columns = static_cast<uint32_t>(columns)};
  }

  const uint64_t seed_;
  const int threads_;
  State state_;
};

}  // namespace

std::unique_ptr<CostModel> MakeTreeGruModel(const CostModelOptions& options) {
  return std::make_unique<TreeGruModel>(options);
}

}  // namespace hone::cost_model
