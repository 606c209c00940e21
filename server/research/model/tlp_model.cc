#include <utility>

#include "server/research/model/models.h"
#include "server/research/model/network_predictor.h"

namespace hone::cost_model {
namespace {

using network::Tape;
using network::Var;

// The sizes of a sequence model.
struct TlpShape {
  std::vector<int> encoder;  // widths of the rectified layers of each position
  int heads = 8;             // of the attention; 0: an LSTM instead
  int residuals = 2;         // residual layers of each position
  std::vector<int> head;     // widths of the layers that compute a score, before the last
  bool normalize = false;    // a layer norm after the attention
  bool sum_first = false;    // the positions are summed before the head instead of after it
};

// Zhai et al., ASPLOS 2023.
TlpShape PublishedShape() {
  return {.encoder = {64, 128, 256, 256}, .heads = 8, .residuals = 2, .head = {256, 128, 64}};
}
// For tens of thousands of measurements and one core.
TlpShape DefaultShape() {
  return {.encoder = {48, 48}, .heads = 4, .residuals = 1, .head = {48}, .normalize = true};
}
// Small, for a filter of candidates before they are replayed.
TlpShape FastShape() {
  return {.encoder = {16}, .heads = 1, .residuals = 0, .head = {24}, .sum_first = true};
}
TlpShape LstmShape() { return {.encoder = {48}, .heads = 0, .residuals = 1, .head = {48}}; }

class TlpNetwork final : public ScoringNetwork {
 public:
  TlpNetwork(int inputs, int targets, const TlpShape& shape, uint64_t seed)
      : ScoringNetwork(seed),
        width_(shape.encoder.back()),
        sum_first_(shape.sum_first),
        encoder_(weights(), inputs, shape.encoder) {
    if (shape.heads > 0)
      attention_ = std::make_unique<network::SelfAttention>(weights(), width_, shape.heads);
    else
      lstm_ = std::make_unique<network::LstmCell>(weights(), width_, width_);
    if (shape.normalize) norm_ = std::make_unique<network::LayerNorm>(weights(), width_);
    residual_ = std::make_unique<network::Residual>(weights(), width_, shape.residuals);
    for (int t = 0; t < targets; ++t) {
      heads_.push_back({network::Stack(weights(), width_, shape.head),
                        network::Linear(weights(), shape.head.back(), 1, 0.1)});
    }
  }

  Var Scores(Tape& tape, const RowBatch& batch) const override {
    Var x = encoder_(tape, tape.Input(batch.rows));
    if (attention_ != nullptr)
      x = tape.Add(x, (*attention_)(tape, x, batch.begin));
    else
      x = RunLstm(tape, *lstm_, width_, x, batch.begin);
    if (norm_ != nullptr) x = (*norm_)(tape, x);
    x = (*residual_)(tape, x);
    const auto sum = [&](Var rows) {
      return tape.SumGroups(rows, batch.Owners(), batch.candidates());
    };
    if (sum_first_) x = sum(x);
    std::vector<Var> columns;
    for (const Head& head : heads_) {
      const Var score = head.score(tape, head.stack(tape, x));
      columns.push_back(sum_first_ ? score : sum(score));
    }
    return tape.ConcatenateColumns(std::move(columns));
  }

 private:
  struct Head {
    network::Stack stack;
    network::Linear score;
  };
  const int width_;
  const bool sum_first_;
  const network::Stack encoder_;
  std::unique_ptr<network::SelfAttention> attention_;
  std::unique_ptr<network::LstmCell> lstm_;
  std::unique_ptr<network::LayerNorm> norm_;
  std::unique_ptr<network::Residual> residual_;
  std::vector<Head> heads_;
};

template <TlpShape (*kShape)()>
std::unique_ptr<ScoringNetwork> MakeTlpNetwork(int inputs, int targets, uint64_t seed) {
  return std::make_unique<TlpNetwork>(inputs, targets, kShape(), seed);
}

template <TlpShape (*kShape)()>
NetworkKind TlpKind() {
  return {.make = MakeTlpNetwork<kShape>,
          .width = kShape().encoder[0],
          .training = {.epochs = 30, .least_steps = 100, .most_steps = 3000}};
}

template <TlpShape (*kShape)()>
std::unique_ptr<Predictor> MakeTlp(const CostModelOptions& options) {
  return MakeNetworkPredictor(TlpKind<kShape>(), options);
}

std::unique_ptr<Predictor> MakeTlpMse(const CostModelOptions& options) {
  NetworkKind kind = TlpKind<DefaultShape>();
  kind.training.loss = Loss::kSquares;
  return MakeNetworkPredictor(kind, options);
}

std::unique_ptr<Predictor> MakeMtlTlp(const CostModelOptions& options) {
  NetworkKind kind = TlpKind<DefaultShape>();
  kind.several_targets = true;
  return MakeNetworkPredictor(kind, options);
}

// As published, except for the number of steps: TLP is trained for 50 epochs on millions of
// programs, on a GPU. A core would take days.
std::unique_ptr<Predictor> MakePublishedTlp(const CostModelOptions& options) {
  NetworkKind kind = TlpKind<PublishedShape>();
  kind.training.by_task = false;
  kind.training.learning_rate = 7e-4;
  kind.training.epochs = 4;
  kind.training.least_steps = 4;
  kind.training.most_steps = 600;
  return MakeNetworkPredictor(kind, options);
}

}  // namespace

constexpr ModelKind kTlpModel = {.name = "tlp",
                                 .feature_set = "primitives",
                                 .make = MakeTlp<DefaultShape>,
                                 .learns_residual = true};
constexpr ModelKind kTlpFastModel = {.name = "tlp-fast",
                                     .feature_set = "primitives",
                                     .make = MakeTlp<FastShape>,
                                     .learns_residual = true};
constexpr ModelKind kTlpLstmModel = {.name = "tlp-lstm",
                                     .feature_set = "primitives",
                                     .make = MakeTlp<LstmShape>,
                                     .learns_residual = true};
constexpr ModelKind kTlpMseModel = {
    .name = "tlp-mse", .feature_set = "primitives", .make = MakeTlpMse, .learns_residual = true};
constexpr ModelKind kTlpPublishedModel = {.name = "tlp-published",
                                          .feature_set = "primitives-25x22",
                                          .make = MakePublishedTlp,
                                          .learns_residual = true};
constexpr ModelKind kMtlTlpModel = {
    .name = "mtl-tlp", .feature_set = "primitives", .make = MakeMtlTlp, .learns_residual = true};

}  // namespace hone::cost_model
