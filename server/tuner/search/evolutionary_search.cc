#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/random_draw.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

constexpr double kMeasuredShare = 0.2;  // of the first generation
constexpr size_t kRandomSeeds = 50;     // minimum number of draws in the first generation
constexpr double kRandomShare = 0.05;   // of a batch (ε-greedy)
constexpr int kRetries = 3;             // attempts to breed a child that is new to the call

class EvolutionarySearch final : public HistorySearch {
 public:
  EvolutionarySearch(SearchContext context, const EvolutionaryOptions& options)
      : HistorySearch(options.name, std::move(context), options.draft),
        options_(options),
        filter_(options.filter == nullptr ? nullptr : options.filter(this->context())) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/2));
    Met met;
    bool filters = false;
    if (filter_ != nullptr) {
      HONE_ASSIGN_OR_RETURN(filters, filter_->Learn(history()));
    }
    const size_t draws = filters ? options_.draws : 1;
    const bool is_first = n == 1 && context().first_population > 0 && history().Told() == 0;
    const size_t population =
        is_first ? static_cast<size_t>(context().first_population) : Population();
    HONE_ASSIGN_OR_RETURN(std::vector<Point> generation,
                          FirstGeneration(population, draws, call.rng));
    for (int g = 1;; ++g) {
      HONE_ASSIGN_OR_RETURN(const std::vector<Scored> scored, Score(generation, call));
      for (const Scored& each : scored) {
        if (met.keys.insert(each.key).second) met.pool.push_back(each);
      }
      if (g == options_.generations || scored.empty()) break;
      if (options_.temperature > 0) {
        HONE_ASSIGN_OR_RETURN(generation, NextChains(scored, met, call));
      } else {
        const std::vector<Point> children =
            NextGeneration(scored, met, draws * scored.size(), call.rng);
        HONE_ASSIGN_OR_RETURN(generation, Filtered(children, 0, scored.size()));
      }
    }
    SortByScore(met.pool);
    call.picker.CoverUntried(met.pool);
    // A space that is small or seldom legal may have no candidate in the pool.
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    const int random = static_cast<int>(kRandomShare * n + call.rng.Uniform());
    call.picker.PickBest(met.pool, n - random);
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    call.picker.Sort();
    KeepSurvivors(met.pool);
    return Commit(call);
  }

 private:
  // The distinct candidates that this Propose has scored so far.
  struct Met {
    absl::flat_hash_set<Digest> keys;
    std::vector<Scored> pool;
  };

  // Returns the first `kept` points, and of the others the `most` that the filter prefers, in their
  // order.
  absl::StatusOr<std::vector<Point>> Filtered(const std::vector<Point>& points, size_t kept,
                                              size_t most) const {
    if (points.size() <= kept + most) return points;
    HONE_ASSIGN_OR_RETURN(const std::vector<double> scores,
                          filter_->Score(absl::MakeConstSpan(points).subspan(kept)));
    std::vector<size_t> order(scores.size());
    absl::c_iota(order, 0);
    absl::c_stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    order.resize(most);
    absl::c_sort(order);
    std::vector<Point> chosen(points.begin(), points.begin() + static_cast<int64_t>(kept));
    for (const size_t i : order) chosen.push_back(points[kept + i]);
    return chosen;
  }

  // `draws`: random draws for each place.
  absl::StatusOr<std::vector<Point>> FirstGeneration(size_t population, size_t draws, Rng& rng) {
    std::vector<Point> points;
    for (const History::Entry* best :
         history().Best(static_cast<size_t>(kMeasuredShare * static_cast<double>(population)))) {
      points.push_back(best->point);
    }
    const size_t random = std::min(population, std::max<size_t>(kRandomSeeds, population / 8));
    for (const Point& survivor : survivors_) {
      if (points.size() + random >= population) break;
      points.push_back(survivor);
    }
    // Every space gets the same number of draws, whatever its size.
    const size_t spaces = context().spaces.size(), kept = points.size();
    const size_t places = population - std::min(population, kept);
    for (size_t turn = rng.Below(spaces), failures = 0;
         points.size() < kept + draws * places && failures < draws * population; ++turn) {
      if (!Sample(static_cast<int>(turn % spaces), rng, points)) ++failures;
    }
    return Filtered(points, kept, places);
  }

  std::vector<Point> NextGeneration(const std::vector<Scored>& scored, const Met& met, size_t count,
                                    Rng& rng) const {
    std::vector<double> scores;
    for (const Scored& each : scored) scores.push_back(each.score);
    const Roulette roulette(scores);
    std::vector<Point> children;
    absl::flat_hash_set<Digest> keys;
    while (children.size() < count) {
      Point child;
      for (int attempt = 0; attempt < kRetries; ++attempt) {
        child = Breed(scored, roulette, rng);
        const Digest key = KeyOf(context(), child);
        if (!met.keys.contains(key) && keys.insert(key).second) break;
      }
      children.push_back(std::move(child));
    }
    return children;
  }

  // Returns the chains after one Metropolis-Hastings step.
  absl::StatusOr<std::vector<Point>> NextChains(const std::vector<Scored>& chains, Met& met,
                                                Call& call) {
    std::vector<Point> children;
    for (const Scored& chain : chains) {
      absl::StatusOr<std::vector<int64_t>> child = Mutate(chain.point, call.rng);
      children.push_back(child.ok() ? Point{chain.point.space, *std::move(child)} : chain.point);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<Scored> scored, Score(children, call));
    absl::flat_hash_map<Digest, double> scores;
    for (const Scored& each : scored) {
      scores[each.key] = each.score;
      if (met.keys.insert(each.key).second) met.pool.push_back(each);
    }
    for (size_t i = 0; i < chains.size(); ++i) {
      const auto score = scores.find(KeyOf(context(), children[i]));
      const double dice = call.rng.Uniform();
      if (score == scores.end() ||
          dice >= std::exp((score->second - chains[i].score) / options_.temperature))
        children[i] = chains[i].point;
    }
    return children;
  }

  size_t Population() const {
    return static_cast<size_t>(std::max(1.0, options_.population * context().population));
  }

  absl::StatusOr<std::vector<int64_t>> Mutate(const Point& point, Rng& rng) const {
    const space::DesignSpace& space = *context().spaces[point.space];
    return options_.mutate != nullptr ? options_.mutate(space, point.decisions, rng)
                                      : space.Mutate(point.decisions, rng);
  }

  Point Breed(const std::vector<Scored>& scored, const Roulette& roulette, Rng& rng) const {
    const Point& parent = scored[roulette.Spin(rng)].point;
    const space::DesignSpace& space = *context().spaces[parent.space];
    absl::StatusOr<std::vector<int64_t>> child = absl::NotFoundError("");
    if (rng.Uniform() >= options_.mutation) {
      for (int attempt = 0; attempt < kRetries; ++attempt) {
        const Point& other = scored[roulette.Spin(rng)].point;
        if (other.space != parent.space || other == parent) continue;
        child = space.Crossover(parent.decisions, other.decisions, rng);
        break;
      }
    }
    if (!child.ok()) child = Mutate(parent, rng);
    return child.ok() ? Point{parent.space, *std::move(child)} : parent;
  }

  void KeepSurvivors(const std::vector<Scored>& pool) {
    survivors_.clear();
    for (const Scored& each : pool) {
      if (survivors_.size() >= Population() / 2) break;
      survivors_.push_back(each.point);
    }
  }

  const EvolutionaryOptions options_;
  const std::unique_ptr<PointFilter> filter_;  // null: every point is replayed
  std::vector<Point> survivors_;  // the best candidates of the last call, including seen ones
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeEvolutionarySearch(SearchContext context,
                                                       const EvolutionaryOptions& options) {
  return std::make_unique<EvolutionarySearch>(std::move(context), options);
}

}  // namespace hone::search
