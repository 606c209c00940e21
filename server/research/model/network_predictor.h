#ifndef HONE_SERVER_RESEARCH_MODEL_NETWORK_PREDICTOR_H_
#define HONE_SERVER_RESEARCH_MODEL_NETWORK_PREDICTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/rng.h"
#include "server/research/model/network/layers.h"
#include "server/tuner/cost_model/model_kind.h"

// What the models that are networks share: scaling, batches, losses, training, saved files.
namespace hone::cost_model {

// The scaled rows of some candidates. Candidate i has the rows [begin[i], begin[i + 1]).
struct RowBatch {
  network::Matrix rows;
  std::vector<int> begin = {0};
  std::vector<int> parent;  // of each row, a row of the batch; -1: none. Only for loop trees

  int candidates() const { return static_cast<int>(begin.size()) - 1; }
  // The candidate of each row.
  std::vector<int> Owners() const;
};

// A network that scores candidates. Const calls are thread-safe.
class ScoringNetwork {
 public:
  explicit ScoringNetwork(uint64_t seed) : weights_(seed) {}
  virtual ~ScoringNetwork() = default;
  // Returns a row per candidate, with a column per target.
  virtual network::Var Scores(network::Tape& tape, const RowBatch& batch) const = 0;
  network::Weights& weights() { return weights_; }

 private:
  network::Weights weights_;
};

enum class Loss {
  kRank,     // rank_loss.h, among the candidates of a group
  kSquares,  // mean square of the error of the throughput
};

struct NetworkTraining {
  Loss loss = Loss::kRank;
  int batch = 64;               // candidates of a step
  int group = 32;               // of these, candidates of one task, which the rank loss compares
  bool by_task = true;          // false: candidates of all tasks are compared, as TenSet and TLP do
  int epochs = 40;              // at least
  int least_steps = 200;        // matters if there are few candidates
  int most_steps = 4000;        // matters if there are many
  double learning_rate = 2e-3;  // of Adam; decreases to 0 during the training
  double weight_decay = 1e-6;
  double largest_gradient = 0.5;  // norm; larger ones are clipped
};

// The batches of a training: groups of candidates of one task in a new random order in every epoch.
// All groups of a task are about as large, so none is too small for comparisons.
class TaskBatches {
 public:
  // `labels` must outlive this object.
  TaskBatches(const Labels& labels, const NetworkTraining& training, uint64_t seed);

  // Advances to the next batch. Returns false when the training is over.
  bool Next();
  // The candidates of the batch. Group g has those from groups()[g] to groups()[g + 1].
  const std::vector<int>& members() const { return members_; }
  const std::vector<int>& groups() const { return groups_; }
  // Returns the share of the steps that remain, including this one.
  double left() const { return 1 - static_cast<double>(step_) / steps_; }

 private:
  void Shuffle();

  const int group_, groups_per_batch_;
  Rng rng_;
  std::vector<std::vector<int>> tasks_;   // the candidates of each
  std::vector<std::vector<int>> chunks_;  // of this epoch
  int batches_ = 0, steps_ = 0, step_ = -1;
  std::vector<int> members_, groups_;
};

// Returns the loss of a batch and sets its gradient with respect to the scores, which are those of
// the candidates' own targets. With offsets, the sum of offset and score counts: as the order of
// candidates, or, for kSquares, as the logarithm of a throughput up to a constant of each group.
double LossOf(Loss loss, absl::Span<const double> scores, absl::Span<const double> throughput,
              absl::Span<const double> offset, absl::Span<const int> groups,
              absl::Span<double> gradient);

// With offsets and the rank loss, a score is a logarithm times this, because logarithms of nearby
// latencies differ by a few hundredths, too little for the loss.
inline constexpr double kRankSharpness = 5;

// A model that is a network.
struct NetworkKind {
  // The network for rows with so many kept columns.
  std::unique_ptr<ScoringNetwork> (*make)(int inputs, int targets, uint64_t seed);
  // The outputs of the first layer, to check the size of a saved network before it is made.
  int width;
  NetworkTraining training = {};
  bool tree = false;             // reads RowBatch::parent (feature set "tree")
  bool several_targets = false;  // has a head for each of Labels::targets
};
std::unique_ptr<Predictor> MakeNetworkPredictor(const NetworkKind& kind,
                                                const CostModelOptions& options);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_RESEARCH_MODEL_NETWORK_PREDICTOR_H_
