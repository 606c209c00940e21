#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/status_macros.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/cost_model/dense.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/random_draw.h"
#include "server/tuner/search/site_values.h"

namespace hone::search {
namespace {

using cost_model::Matrix;

constexpr int kQLayers = 4;
constexpr size_t kReplayed = 256;  // the latest transitions, which every training reads
constexpr int kStartTries = 32;    // walks that lead to no new candidate until a draw replaces them
// AdaDelta's constants (Zeiler, 2012).
constexpr float kDecay = 0.95f, kEpsilon = 1e-6f;

// A step of a walk whose result is known.
struct Transition {
  std::vector<int64_t> from, to;
  int direction = 0;
  float reward = 0;
};

// Predicts the value of every direction: four fully connected layers with rectified linear units
// between them, trained by AdaDelta on the squared error.
class QNetwork {
 public:
  QNetwork(int inputs, int outputs, int hidden, Rng rng) {
    int from = inputs;
    for (int l = 0; l < kQLayers; ++l) {
      const int to = l + 1 == kQLayers ? outputs : hidden;
      Layer& layer = layers_.emplace_back(Layer{Parameter(from, to), Parameter(1, to)});
      // He et al., ICCV 2015. The last layer begins small: no direction is preferred.
      const double scale = std::sqrt(2.0 / from) * (l + 1 == kQLayers ? 0.01 : 1);
      for (float& weight : layer.weights.value.values)
        weight = static_cast<float>(scale * StandardNormal(rng));
      from = to;
    }
  }

  // Returns a row of values for each row of inputs.
  Matrix Values(const Matrix& inputs) const { return std::move(Forward(inputs).back()); }

  // Takes one step towards targets[r] at output[r] of row r.
  void Train(const Matrix& inputs, absl::Span<const int> output, absl::Span<const float> targets) {
    const std::vector<Matrix> activations = Forward(inputs);
    Matrix gradient(inputs.rows, activations.back().columns);
    for (int r = 0; r < inputs.rows; ++r) {
      const float error = activations.back().row(r)[output[r]] - targets[r];
      gradient.row(r)[output[r]] = 2 * error / static_cast<float>(inputs.rows);
    }
    for (int l = kQLayers; l-- > 0;) {
      Layer& layer = layers_[l];
      const Matrix& input = l == 0 ? inputs : activations[l - 1];
      Matrix weights(layer.weights.value.rows, layer.weights.value.columns);
      AddTransposedProduct(input, gradient, weights);
      Matrix bias(1, gradient.columns);
      for (int r = 0; r < gradient.rows; ++r) {
        for (int c = 0; c < gradient.columns; ++c) bias.values[c] += gradient.row(r)[c];
      }
      Matrix below(input.rows, input.columns);
      if (l > 0) AddProduct(gradient, Transposed(layer.weights.value), below);
      for (size_t i = 0; l > 0 && i < below.values.size(); ++i) {
        if (input.values[i] <= 0) below.values[i] = 0;
      }
      layer.weights.Step(weights);
      layer.bias.Step(bias);
      gradient = std::move(below);
    }
  }

 private:
  struct Parameter {
    Parameter(int rows, int columns)
        : value(rows, columns), squares(rows, columns), steps(rows, columns) {}
    void Step(const Matrix& gradient) {
      for (size_t i = 0; i < value.values.size(); ++i) {
        const float g = gradient.values[i];
        squares.values[i] = kDecay * squares.values[i] + (1 - kDecay) * g * g;
        const float step =
            -std::sqrt((steps.values[i] + kEpsilon) / (squares.values[i] + kEpsilon)) * g;
        steps.values[i] = kDecay * steps.values[i] + (1 - kDecay) * step * step;
        value.values[i] += step;
      }
    }
    Matrix value, squares, steps;
  };
  struct Layer {
    Parameter weights, bias;
  };

  std::vector<Matrix> Forward(const Matrix& inputs) const {
    std::vector<Matrix> activations;
    for (int l = 0; l < kQLayers; ++l) {
      const Layer& layer = layers_[l];
      Matrix& out = activations.emplace_back(inputs.rows, layer.bias.value.columns);
      for (int r = 0; r < out.rows; ++r) std::ranges::copy(layer.bias.value.values, out.row(r));
      AddProduct(l == 0 ? inputs : activations[l - 1], layer.weights.value, out);
      for (float& value : out.values) {
        if (l + 1 < kQLayers) value = std::max(value, 0.0f);
      }
    }
    return activations;
  }

  std::vector<Layer> layers_;
};

class QLearningSearch final : public HistorySearch {
 public:
  QLearningSearch(SearchContext given, const QLearningOptions& options)
      : HistorySearch(options.name, std::move(given)),
        options_(options),
        learners_(context().spaces.size()) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, /*model=*/nullptr, /*purpose=*/11));
    Learn();
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    std::vector<const History::Entry*> starts;
    for (const History::Entry& entry : history().entries()) {
      if (entry.told && entry.ok) starts.push_back(&entry);
    }
    if (!starts.empty() && history().Told() >= options_.warm_up) {
      const Roulette roulette(StartWeights(starts));
      for (int tries = 0; !call.picker.full() && tries < kStartTries * n; ++tries) {
        // The walk begins at a measured candidate and takes one step.
        const Point& start = starts[roulette.Spin(call.rng)]->point;
        const std::optional<Walked> walked = Walk(start, call.rng);
        if (!walked.has_value()) continue;
        HONE_ASSIGN_OR_RETURN(const bool added, Add(walked->to, call));
        if (added) pending_[KeyOf(context(), walked->to)] = {start, walked->direction};
      }
    }
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    return Commit(call);
  }

 private:
  struct Walked {
    Point to;
    int direction;
  };
  struct Step {
    Point from;
    int direction;
  };
  // What is known of one design space.
  struct Learner {
    std::optional<QNetwork> network;
    std::vector<Transition> transitions;  // the latest ones
    int fresh = 0;                        // transitions since the last training
  };

  std::vector<double> StartWeights(absl::Span<const History::Entry* const> starts) const {
    double best_ns = starts[0]->latency_ns;
    for (const History::Entry* start : starts) best_ns = std::min(best_ns, start->latency_ns);
    std::vector<double> weights;
    for (const History::Entry* start : starts)
      weights.push_back(std::exp(-options_.annealing * (1 - best_ns / start->latency_ns)));
    return weights;
  }

  // Directions of a space: which decision grows and which shrinks; the last value: none does.
  int Directions(int space) const {
    const int values = context().spaces[space]->decision_count() + 1;
    return values * values;
  }
  static int DirectionOf(absl::Span<const int64_t> from, absl::Span<const int64_t> to) {
    size_t grows = from.size(), shrinks = from.size();
    for (size_t i = 0; i < from.size(); ++i) {
      if (to[i] > from[i] && grows == from.size()) grows = i;
      if (to[i] < from[i] && shrinks == from.size()) shrinks = i;
    }
    return static_cast<int>(grows * (from.size() + 1) + shrinks);
  }

  // Goes from a candidate in the direction of the highest predicted value, or in a random one.
  // Returns nullopt if all neighbours are known.
  std::optional<Walked> Walk(const Point& start, Rng& rng) {
    std::map<int, std::vector<Point>> neighbours;  // unseen ones, by direction
    for (std::vector<int64_t>& hop : Hops(*context().spaces[start.space], start.decisions, 1)) {
      Point point{start.space, std::move(hop)};
      if (history().Knows(point)) continue;
      neighbours[DirectionOf(start.decisions, point.decisions)].push_back(std::move(point));
    }
    if (neighbours.empty()) return std::nullopt;
    auto chosen = std::next(neighbours.begin(), rng.Below(neighbours.size()));
    const Learner& learner = learners_[start.space];
    if (learner.network.has_value() && rng.Uniform() >= options_.random) {
      const Matrix values = learner.network->Values(StateOf(start.decisions));
      chosen = std::ranges::max_element(
          neighbours, {}, [&](const auto& neighbour) { return values.values[neighbour.first]; });
    }
    const std::vector<Point>& points = chosen->second;
    return Walked{points[rng.Below(points.size())], chosen->first};
  }

  static Matrix StateOf(absl::Span<const int64_t> decisions) {
    Matrix state(1, static_cast<int>(decisions.size()) + 1);
    for (size_t i = 0; i < decisions.size(); ++i)
      state.values[i] = std::log2(static_cast<float>(std::max<int64_t>(decisions[i], 0) + 1)) / 8;
    state.values.back() = 1;
    return state;
  }

  // Turns the results of steps into transitions, and trains the networks that have enough new ones.
  void Learn() {
    std::vector<Digest> finished;
    // In the order of the history, so that the order does not depend on a hash table.
    for (const History::Entry& entry : history().entries()) {
      const Digest key = KeyOf(context(), entry.point);
      const auto step = pending_.find(key);
      if (!entry.told || step == pending_.end()) continue;
      finished.push_back(key);
      const History::Entry* from = history().Find(KeyOf(context(), step->second.from));
      if (from == nullptr || !from->ok) continue;
      // The relative change of the throughput; a failure loses all of it.
      const double reward = entry.ok ? from->latency_ns / entry.latency_ns - 1 : -1;
      Learner& learner = learners_[entry.point.space];
      learner.transitions.push_back({step->second.from.decisions, entry.point.decisions,
                                     step->second.direction,
                                     static_cast<float>(std::clamp(reward, -1.0, 10.0))});
      ++learner.fresh;
    }
    for (const Digest& key : finished) pending_.erase(key);
    for (size_t s = 0; s < learners_.size(); ++s) {
      if (learners_[s].fresh >= options_.train_every) Train(static_cast<int>(s));
    }
  }

  void Train(int space) {
    Learner& learner = learners_[space];
    std::vector<Transition>& transitions = learner.transitions;
    if (transitions.size() > kReplayed) {
      const auto surplus = static_cast<ptrdiff_t>(transitions.size() - kReplayed);
      transitions.erase(transitions.begin(), transitions.begin() + surplus);
    }
    if (!learner.network.has_value()) {
      learner.network.emplace(context().spaces[space]->decision_count() + 1, Directions(space),
                              options_.hidden, Rng(context().seed, space, /*purpose=*/12));
    }
    const int rows = static_cast<int>(transitions.size());
    const int columns = context().spaces[space]->decision_count() + 1;
    Matrix states(rows, columns), next(rows, columns);
    std::vector<int> directions;
    for (int r = 0; r < rows; ++r) {
      std::ranges::copy(StateOf(transitions[r].from).values, states.row(r));
      std::ranges::copy(StateOf(transitions[r].to).values, next.row(r));
      directions.push_back(transitions[r].direction);
    }
    // A step for each group of new results, as often as published.
    for (; learner.fresh >= options_.train_every; learner.fresh -= options_.train_every) {
      const Matrix values = learner.network->Values(next);
      std::vector<float> targets;
      for (int r = 0; r < rows; ++r) {
        const float* row = values.row(r);
        const float best = *std::max_element(row, row + values.columns);
        targets.push_back(transitions[r].reward + static_cast<float>(options_.discount) * best);
      }
      learner.network->Train(states, directions, targets);
    }
  }

  const QLearningOptions options_;
  std::vector<Learner> learners_;              // per space
  absl::flat_hash_map<Digest, Step> pending_;  // proposed steps without a result
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeQLearningSearch(SearchContext context,
                                                    const QLearningOptions& options) {
  return std::make_unique<QLearningSearch>(std::move(context), options);
}

}  // namespace hone::search
