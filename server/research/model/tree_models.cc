// Networks over the loop tree.

#include <algorithm>
#include <numeric>
#include <utility>

#include "server/research/model/models.h"
#include "server/research/model/network_predictor.h"

namespace hone::cost_model {
namespace {

using network::Tape;
using network::Var;

// The rows of a batch by height: a loop comes after all loops inside it.
class Levels {
 public:
  explicit Levels(const std::vector<int>& parent) : parent_(parent) {
    std::vector<size_t> height(parent.size(), 0);
    for (size_t row = parent.size(); row-- > 0;) {  // children come after their parents
      if (rows_.size() <= height[row]) rows_.resize(height[row] + 1);
      rows_[height[row]].push_back(static_cast<int>(row));
      if (parent[row] >= 0) height[parent[row]] = std::max(height[parent[row]], height[row] + 1);
    }
  }

  // Returns the state of every loop. `cell` computes the states of some loops from their inputs and
  // from what `combine` makes of the states of the loops directly inside each of them: those of
  // loop i of the level are the rows [begin[i], begin[i + 1]), in order. `width`: of a state.
  template <typename Combine, typename Cell>
  Var Run(Tape& tape, Var inputs, int width, const Combine& combine, const Cell& cell) const {
    std::vector<std::vector<int>> children(parent_.size());
    for (size_t row = 0; row < parent_.size(); ++row)
      if (parent_[row] >= 0) children[parent_[row]].push_back(static_cast<int>(row));
    std::vector<Var> states;
    std::vector<int> position(parent_.size(), -1);  // of each row in all states so far
    int done = 0;
    Var all = nullptr;
    for (const std::vector<int>& level : rows_) {
      std::vector<int> inside, begin = {0};
      for (const int row : level) {
        for (const int child : children[row]) inside.push_back(position[child]);
        begin.push_back(static_cast<int>(inside.size()));
      }
      const Var combined =
          inside.empty()
              ? tape.Input(network::Matrix::Zero(static_cast<Eigen::Index>(level.size()), width))
              : combine(tape.Gather(all, std::move(inside)), begin);
      states.push_back(cell(tape.Gather(inputs, level), combined));
      for (const int row : level) position[row] = done++;
      all = tape.ConcatenateRows(states);
    }
    return tape.Gather(all, std::move(position));
  }

 private:
  const std::vector<int>& parent_;
  std::vector<std::vector<int>> rows_;
};

Var SumSequences(Tape& tape, Var rows, const std::vector<int>& begin) {
  std::vector<int> group;
  const auto count = static_cast<int>(begin.size()) - 1;
  for (int i = 0; i < count; ++i) group.insert(group.end(), begin[i + 1] - begin[i], i);
  return tape.SumGroups(rows, std::move(group), count);
}

constexpr int kTreeWidth = 128, kSlots = 8;

class TreeGruNetwork final : public ScoringNetwork {
 public:
  TreeGruNetwork(int inputs, uint64_t seed)
      : ScoringNetwork(seed),
        embedding_(weights(), inputs, {kTreeWidth}),
        gru_(weights(), kTreeWidth, kTreeWidth),
        slots_(weights(), kTreeWidth, kSlots),
        score_(weights(), kSlots * kTreeWidth, 1) {}

  Var Scores(Tape& tape, const RowBatch& batch) const override {
    const Var embedded = embedding_(tape, tape.Input(batch.rows));
    const Var states = Levels(batch.parent)
                           .Run(
                               tape, embedded, kTreeWidth,
                               [&](Var inside, const std::vector<int>& begin) {
                                 return SumSequences(tape, inside, begin);
                               },
                               [&](Var input, Var inside) { return gru_(tape, input, inside); });
    const Var shares = tape.SoftmaxRows(slots_(tape, states));
    return score_(
        tape, tape.SumGroups(tape.OuterRows(shares, states), batch.Owners(), batch.candidates()));
  }

 private:
  const network::Stack embedding_;
  const network::GruCell gru_;
  const network::Linear slots_, score_;
};

// Published: 600, 350, 200 and 180, for millions of programs.
constexpr int kLoopWidth = 48;

class LoopTreeNetwork final : public ScoringNetwork {
 public:
  LoopTreeNetwork(int inputs, uint64_t seed)
      : ScoringNetwork(seed),
        embedding_(weights(), inputs, {kLoopWidth, kLoopWidth}),
        children_(weights(), kLoopWidth, kLoopWidth),
        loop_(weights(), 2 * kLoopWidth, {kLoopWidth}),
        head_(weights(), kLoopWidth, {kLoopWidth}),
        score_(weights(), kLoopWidth, 1, 0.1) {}

  Var Scores(Tape& tape, const RowBatch& batch) const override {
    const Var embedded = embedding_(tape, tape.Input(batch.rows));
    const auto combine = [&](Var inside, const std::vector<int>& begin) {
      const Var states = network::RunLstm(tape, children_, kLoopWidth, inside, begin);
      std::vector<int> last;  // -1: a loop without loops inside
      for (size_t i = 0; i + 1 < begin.size(); ++i)
        last.push_back(begin[i + 1] > begin[i] ? begin[i + 1] - 1 : -1);
      return tape.Gather(states, std::move(last));
    };
    const auto cell = [&](Var input, Var inside) {
      return loop_(tape, tape.ConcatenateColumns({input, inside}));
    };
    const Var states = Levels(batch.parent).Run(tape, embedded, kLoopWidth, combine, cell);
    std::vector<int> roots, begin = {0};
    for (int i = 0; i < batch.candidates(); ++i) {
      for (int row = batch.begin[i]; row < batch.begin[i + 1]; ++row)
        if (batch.parent[row] < 0) roots.push_back(row);
      begin.push_back(static_cast<int>(roots.size()));
    }
    const Var summed = SumSequences(tape, tape.Gather(states, std::move(roots)), begin);
    return score_(tape, head_(tape, summed));
  }

 private:
  const network::Stack embedding_;
  const network::LstmCell children_;
  const network::Stack loop_, head_;
  const network::Linear score_;
};

std::unique_ptr<ScoringNetwork> MakeLoopTree(int inputs, int, uint64_t seed) {
  return std::make_unique<LoopTreeNetwork>(inputs, seed);
}

std::unique_ptr<Predictor> MakeLoopTreePredictor(const CostModelOptions& options) {
  return MakeNetworkPredictor({.make = MakeLoopTree,
                               .width = kLoopWidth,
                               .training = {.epochs = 30, .least_steps = 100, .most_steps = 3000},
                               .tree = true},
                              options);
}

std::unique_ptr<ScoringNetwork> MakeTreeGru(int inputs, int, uint64_t seed) {
  return std::make_unique<TreeGruNetwork>(inputs, seed);
}

std::unique_ptr<Predictor> MakeTreeGruPredictor(const CostModelOptions& options) {
  return MakeNetworkPredictor({.make = MakeTreeGru,
                               .width = kTreeWidth,
                               .training = {.epochs = 30, .least_steps = 60, .most_steps = 1500},
                               .tree = true},
                              options);
}

}  // namespace

constexpr ModelKind kLoopTreeModel = {.name = "looptree",
                                      .feature_set = "tree",
                                      .make = MakeLoopTreePredictor,
                                      .any_features = false,
                                      .learns_residual = true};
constexpr ModelKind kTreeGruModel = {.name = "treegru",
                                     .version = 2,
                                     .feature_set = "tree",
                                     .make = MakeTreeGruPredictor,
                                     .any_features = false,
                                     .learns_residual = true};

}  // namespace hone::cost_model
