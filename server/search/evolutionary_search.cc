#include "server/search/evolutionary_search.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/search/batch.h"
#include "server/search/evaluator.h"
#include "server/search/history.h"
#include "server/search/ranking.h"
#include "server/search/saved_state.h"
#include "server/search/unseen.h"

namespace hone::search {
namespace {

constexpr StateHeader kState = {"evolutionary", 1};
constexpr int kGenerations = 3;  // the first, drawn one included
constexpr double kMutation = 0.85;
constexpr double kMeasuredShare = 0.2;
constexpr int kRandomSeeds = 50;
constexpr double kRandomShare = 0.05;  // of a batch (ε-greedy)
constexpr int kRetries = 3;            // for a child that is new to the call

// Draws indices with probability proportional to max(score, 0).
class Roulette {
 public:
  explicit Roulette(absl::Span<const Scored> population) {
    double total = 0;
    for (const Scored& each : population)
      cumulative_.push_back(total += each.evaluation->legal ? std::max(each.score, 0.0) : 0.0);
  }
  size_t Spin(Rng& rng) const {
    const double total = cumulative_.back();
    if (total <= 0) return rng.Below(cumulative_.size());
    const auto found =
        std::upper_bound(cumulative_.begin(), cumulative_.end(), rng.Uniform() * total);
    return std::min<size_t>(found - cumulative_.begin(), cumulative_.size() - 1);
  }

 private:
  std::vector<double> cumulative_;
};

class EvolutionarySearch final : public SearchStrategy {
 public:
  explicit EvolutionarySearch(SearchContext context)
      : context_(std::move(context)), history_(&context_), evaluator_(&context_) {}

  absl::string_view name() const override { return kState.name; }

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_RETURN_IF_ERROR(evaluator_.UseFeaturesOf(model));
    history_.Refresh(evaluator_);
    Rng rng(context_.seed, event, /*purpose=*/2);
    Call call{.model = model, .ranking = Ranking::Of(context_, history_)};
    std::vector<Point> generation = FirstGeneration(rng);
    for (int g = 1;; ++g) {
      HONE_ASSIGN_OR_RETURN(const std::vector<Scored> scored, Score(generation, call));
      for (const Scored& each : scored) {
        if (call.keys.insert(each.key).second) call.pool.push_back(each);
      }
      if (g == kGenerations || scored.empty()) break;
      generation = NextGeneration(scored, call, rng);
    }
    SortByScore(call.pool);
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> batch, PickBatch(n, call, rng));
    KeepSurvivors(call.pool);
    std::vector<record::Candidate> candidates;
    for (Scored& each : batch) {
      candidates.push_back(CandidateOf(context_, each.point));
      history_.AddProposal(std::move(each.point), std::move(each.evaluation), event, call.learnt,
                           each.prediction);
    }
    return candidates;
  }

  void Tell(absl::Span<const Measured> results) override { history_.Tell(results); }

  std::string Save() const override {
    cost_model::ByteWriter writer;
    history_.Save(writer);
    writer.AddU64(survivors_.size());
    for (const Point& point : survivors_) WritePoint(writer, point);
    return EncodeState(kState, std::move(writer).Finish());
  }

  absl::Status Restore(absl::string_view state) override {
    HONE_ASSIGN_OR_RETURN(const absl::string_view payload, DecodeState(kState, state));
    History history(&context_);
    std::vector<Point> survivors;
    cost_model::ByteReader reader(payload);
    HONE_RETURN_IF_ERROR(history.Restore(reader));
    HONE_ASSIGN_OR_RETURN(const uint64_t count, reader.U64());
    for (uint64_t i = 0; i < count; ++i) {
      HONE_ASSIGN_OR_RETURN(survivors.emplace_back(), ReadPoint(reader, context_));
    }
    HONE_RETURN_IF_ERROR(CheckEnd(reader));
    history_ = std::move(history);
    survivors_ = std::move(survivors);
    return absl::OkStatus();
  }

 private:
  // What one Propose knows.
  struct Call {
    const cost_model::CostModel* model;
    Ranking ranking;
    bool learnt = false;               // the model answered something else than zeros
    absl::flat_hash_set<Digest> keys;  // of the pool
    std::vector<Scored> pool;          // every candidate met, once
  };

  std::vector<Point> FirstGeneration(Rng& rng) const {
    const auto population = static_cast<size_t>(context_.population);
    std::vector<Point> points;
    for (const History::Entry* best :
         history_.Best(static_cast<size_t>(kMeasuredShare * context_.population))) {
      points.push_back(best->point);
    }
    const size_t random =
        std::min<size_t>(population, std::max(kRandomSeeds, context_.population / 8));
    for (const Point& survivor : survivors_) {
      if (points.size() + random >= population) break;
      points.push_back(survivor);
    }
    // The same number for every space, whatever its size: which is best is not known yet.
    const size_t spaces = context_.spaces.size();
    for (size_t turn = rng.Below(spaces), failures = 0;
         points.size() < population && failures < population; ++turn) {
      const int space = static_cast<int>(turn % spaces);
      absl::StatusOr<std::vector<int64_t>> drawn = context_.spaces[space]->Sample(rng);
      if (drawn.ok()) {
        points.push_back({space, *std::move(drawn)});
      } else {
        ++failures;
      }
    }
    return points;
  }

  std::vector<Point> NextGeneration(const std::vector<Scored>& parents, const Call& call,
                                    Rng& rng) const {
    const Roulette roulette(parents);
    std::vector<Point> children;
    absl::flat_hash_set<Digest> keys;
    while (children.size() < parents.size()) {
      Point child;
      for (int attempt = 0; attempt < kRetries; ++attempt) {
        child = Breed(parents, roulette, rng);
        const Digest key = KeyOf(context_, child);
        if (!call.keys.contains(key) && keys.insert(key).second) break;
      }
      children.push_back(std::move(child));
    }
    return children;
  }

  Point Breed(const std::vector<Scored>& parents, const Roulette& roulette, Rng& rng) const {
    const Point& parent = parents[roulette.Spin(rng)].point;
    const space::DesignSpace& space = *context_.spaces[parent.space];
    absl::StatusOr<std::vector<int64_t>> child = absl::NotFoundError("");
    if (rng.Uniform() >= kMutation) {
      for (int attempt = 0; attempt < kRetries; ++attempt) {
        const Point& other = parents[roulette.Spin(rng)].point;
        if (other.space != parent.space || other == parent) continue;
        child = space.Crossover(parent.decisions, other.decisions, rng);
        break;
      }
    }
    if (!child.ok()) child = space.Mutate(parent.decisions, rng);
    return child.ok() ? Point{parent.space, *std::move(child)} : parent;
  }

  absl::StatusOr<std::vector<Scored>> Score(absl::Span<const Point> points, Call& call) {
    const std::vector<EvaluationPtr> evaluations = evaluator_.Evaluate(points);
    HONE_ASSIGN_OR_RETURN(const std::vector<double> predictions,
                          evaluator_.Predict(evaluations, call.model));
    for (const double prediction : predictions) call.learnt |= prediction != 0;
    std::vector<Scored> scored;
    for (size_t i = 0; i < points.size(); ++i) {
      if (!evaluations[i]->legal) continue;
      const Digest key = KeyOf(context_, points[i]);
      const History::Entry* known = history_.Find(key);
      const double draft = call.ranking.DraftScore(points[i].space, evaluations[i]->draft_cycles);
      const double score = known != nullptr && known->told
                               ? call.ranking.MeasuredScore(*known)
                               : call.ranking.Score(draft, predictions[i], call.learnt);
      scored.push_back({points[i], key, evaluations[i], predictions[i], score});
    }
    return scored;
  }

  absl::StatusOr<std::vector<Scored>> PickBatch(int n, Call& call, Rng& rng) {
    UnseenSource source(&context_, &history_, &evaluator_);
    BatchPicker picker(context_, history_, call.pool, n);
    picker.CoverUntried();
    for (size_t s = 0; s < context_.spaces.size(); ++s) {
      // A small or rarely legal space may have no candidate in the pool.
      const int space = static_cast<int>(s);
      if (picker.full() || !history_.IsUntried(space) || picker.Covers(space)) continue;
      HONE_RETURN_IF_ERROR(AddDrawn(source.Draw(space, rng), call, source, picker).status());
    }
    const int random = static_cast<int>(kRandomShare * n + rng.Uniform());
    picker.PickBest(n - random);
    for (const Scored& picked : picker.batch()) source.Skip(picked.evaluation->program);
    while (!picker.full()) {
      HONE_ASSIGN_OR_RETURN(const bool more, AddDrawn(source.DrawAny(rng, /*untried_first=*/false),
                                                      call, source, picker));
      if (!more) break;
    }
    return std::move(picker).Take();
  }

  // False: there was nothing to add.
  absl::StatusOr<bool> AddDrawn(std::optional<Unseen> drawn, Call& call, UnseenSource& source,
                                BatchPicker& picker) {
    if (!drawn.has_value()) return false;
    source.Skip(drawn->evaluation->program);
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored,
                          Score(absl::MakeConstSpan(&drawn->point, 1), call));
    picker.Add(std::move(scored[0]));
    return true;
  }

  void KeepSurvivors(const std::vector<Scored>& pool) {
    survivors_.clear();
    for (const Scored& each : pool) {
      if (survivors_.size() >= static_cast<size_t>(context_.population) / 2) break;
      survivors_.push_back(each.point);
    }
  }

  const SearchContext context_;
  History history_;
  Evaluator evaluator_;
  std::vector<Point> survivors_;  // the best of the last call, seen or not
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeEvolutionarySearch(SearchContext context) {
  return std::make_unique<EvolutionarySearch>(std::move(context));
}

}  // namespace hone::search
