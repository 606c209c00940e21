#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <numbers>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/cost_model/gaussian_process.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/site_values.h"

namespace hone::search {
namespace {

using cost_model::GaussianProcess;
using cost_model::KernelInput;
using schedule::Site;

// As in bayes_opt's regressor: unit variance after normalization, noise variance 1e-6 (alpha). The
// length scale is fitted between these bounds; the box has a side of 1.
constexpr cost_model::Kernel kKernel = {.deviation = 1, .length = 1, .noise = 1e-3};
constexpr double kShortest = 0.01, kLongest = 100;
constexpr int kLengths = 9, kRefinements = 6;  // lengths that are tried, then golden-section steps

constexpr int kSchedules = 1024;   // draws per Propose if context.population is 512
constexpr double kRandom = 0.2;    // share of a batch that is drawn without optimization
constexpr double kMeasured = 0.6;  // share of the seeds that are measured; the others are drawn
// The number of steps of a run is kEarlySteps below kEarly results, kMiddleSteps below kLate
// results, and kLateSteps from then on.
constexpr int kEarlySteps = 1, kMiddleSteps = 10, kLateSteps = 20, kEarly = 64, kLate = 256;
// Our parameter: the number of scores, the latest ones, that the process of a design space
// observes.
constexpr size_t kLogged = 128;
// The domain reduction's parameters as published: for a place that oscillates and for one that
// pans, and the shrinking in each step.
constexpr double kOscillates = 0.7, kPans = 1.0, kShrinks = 0.9;
// Of the climb by L-BFGS: its steps, the pairs that it remembers, and the width of differences.
constexpr int kClimbSteps = 10, kRemembered = 5;
constexpr double kDifference = 1e-4;

// An observation of a process.
struct Logged {
  std::vector<double> place;  // the point in the box
  double score;
};

using Place = std::vector<double>;

double Dot(const Place& a, const Place& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The part of the unit box in which a run looks for places.
struct Box {
  Place low, high;

  explicit Box(size_t sides) : low(sides, 0), high(sides, 1) {}
  Place Draw(Rng& rng) const {
    Place place;
    for (size_t i = 0; i < low.size(); ++i)
      place.push_back(low[i] + (high[i] - low[i]) * rng.Uniform());
    return place;
  }
  void Clamp(Place& place) const {
    for (size_t i = 0; i < low.size(); ++i) place[i] = std::clamp(place[i], low[i], high[i]);
  }
};

// Shrinks a box around the best place, less along a side where the best place keeps moving in one
// direction, and more where it oscillates ("On the robustness of a simple domain reduction scheme
// for simulation-based optimization", Stander and Craig, 2002).
class DomainReduction {
 public:
  DomainReduction(Place best, Box box) : best_(std::move(best)), box_(std::move(box)) {
    moved_.assign(best_.size(), 0);
  }

  const Box& box() const { return box_; }
  void Reduce(const Place& best) {
    for (size_t i = 0; i < best.size(); ++i) {
      const double width = box_.high[i] - box_.low[i];
      const double moved = 2 * (best[i] - best_[i]) / std::max(width, 1e-9);
      const double product = moved * moved_[i];
      const double same = std::copysign(std::sqrt(std::abs(product)), product);
      const double pace = 0.5 * (kPans * (1 + same) + kOscillates * (1 - same));
      const double share = kShrinks + std::min(1.0, std::abs(moved)) * (pace - kShrinks);
      const double half = width * std::min(1.0, share) / 2;
      box_.low[i] = std::clamp(best[i] - half, 0.0, 1.0);
      box_.high[i] = std::clamp(best[i] + half, box_.low[i], 1.0);
      moved_[i] = moved;
    }
    best_ = best;
  }

 private:
  Place best_, moved_;
  Box box_;
};

// Climbs a function from a place inside a box by L-BFGS (Liu and Nocedal, 1989) with projected
// steps, and derivatives from differences, as SciPy's default. Returns the highest place.
Place Climb(const std::function<double(const Place&)>& function, Place place, const Box& box) {
  const auto gradient_at = [&](const Place& at, double value) {
    Place gradient(at.size());
    for (size_t i = 0; i < at.size(); ++i) {
      Place near = at;
      const double step = at[i] + kDifference <= box.high[i] ? kDifference : -kDifference;
      near[i] += step;
      gradient[i] = (function(near) - value) / step;
      // A side that blocks the way.
      if ((at[i] <= box.low[i] && gradient[i] < 0) || (at[i] >= box.high[i] && gradient[i] > 0))
        gradient[i] = 0;
    }
    return gradient;
  };
  double value = function(place);
  Place gradient = gradient_at(place, value);
  std::deque<std::pair<Place, Place>> pairs;  // changes of the place and of the gradient's negative
  for (int step = 0; step < kClimbSteps; ++step) {
    Place direction = gradient;
    std::vector<double> weights;
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
      weights.push_back(Dot(pair->first, direction) / Dot(pair->first, pair->second));
      for (size_t i = 0; i < direction.size(); ++i)
        direction[i] -= weights.back() * pair->second[i];
    }
    if (!pairs.empty()) {
      const auto& [moved, turned] = pairs.back();
      const double scale = Dot(moved, turned) / Dot(turned, turned);
      for (double& each : direction) each *= scale;
    }
    for (const auto& [moved, turned] : pairs) {
      const double weight = weights.back() - Dot(turned, direction) / Dot(moved, turned);
      weights.pop_back();
      for (size_t i = 0; i < direction.size(); ++i) direction[i] += weight * moved[i];
    }
    const double slope = Dot(direction, gradient);
    if (!(slope > 1e-12)) break;
    bool climbed = false;
    // The first step has no curvature yet and is at most a tenth of the box.
    double length = pairs.empty() ? std::min(1.0, 0.1 / std::sqrt(Dot(direction, direction))) : 1;
    for (int halving = 0; halving < 10 && !climbed; ++halving, length /= 2) {
      Place next = place;
      for (size_t i = 0; i < next.size(); ++i) next[i] += length * direction[i];
      box.Clamp(next);
      const double reached = function(next);
      if (!(reached > value + 1e-4 * length * slope)) continue;
      climbed = true;
      Place next_gradient = gradient_at(next, reached);
      std::pair<Place, Place> pair{next, gradient};
      for (size_t i = 0; i < next.size(); ++i) {
        pair.first[i] -= place[i];
        pair.second[i] -= next_gradient[i];
      }
      if (Dot(pair.first, pair.second) > 1e-12) pairs.push_back(std::move(pair));
      if (pairs.size() > kRemembered) pairs.pop_front();
      place = std::move(next);
      value = reached;
      gradient = std::move(next_gradient);
    }
    if (!climbed) break;
  }
  return place;
}

// Returns the length scale under which the observations are most likely.
double FittedLength(const cost_model::Observations& observations) {
  const auto unlikely = [&](double log_length) {
    cost_model::Kernel kernel = kKernel;
    kernel.length = std::exp(log_length);
    const auto evidence =
        observations.EvidenceOf(observations.Covariances(kernel), kernel.deviation, kernel.noise);
    return evidence.squares + evidence.log_determinant;
  };
  const double low = std::log(kShortest), width = std::log(kLongest) - low;
  int best = 0;
  std::vector<double> values;
  for (int i = 0; i < kLengths; ++i) {
    values.push_back(unlikely(low + width * i / (kLengths - 1)));
    if (values.back() < values[best]) best = i;
  }
  double left = low + width * std::max(0, best - 1) / (kLengths - 1);
  double right = low + width * std::min(kLengths - 1, best + 1) / (kLengths - 1);
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < kRefinements; ++i) {
    const double a = right - kGolden * (right - left), b = left + kGolden * (right - left);
    if (unlikely(a) < unlikely(b)) {
      right = b;
    } else {
      left = a;
    }
  }
  return std::exp((left + right) / 2);
}

class BayesianIndexSearch final : public HistorySearch {
 public:
  BayesianIndexSearch(SearchContext given, const BayesianIndexOptions& options)
      : HistorySearch(options.name, std::move(given)),
        options_(options),
        logs_(context().spaces.size()) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/8));
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> drawn, Score(Drawn(call.rng), call));
    SortByScore(drawn);
    call.picker.CoverUntried(drawn);
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    const int random = static_cast<int>(kRandom * n + call.rng.Uniform());
    for (const Point& seed : Seeds(n - random - call.picker.size(), drawn)) {
      HONE_ASSIGN_OR_RETURN(std::vector<Scored> met, Optimize(seed, call));
      SortByScore(met);
      for (Scored& each : met) {
        if (call.picker.Add(std::move(each))) break;
      }
    }
    call.picker.PickBest(drawn, n - random);  // in place of runs that found nothing new
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    call.picker.Sort();
    return Commit(call);
  }

 private:
  std::vector<Point> Drawn(Rng& rng) {
    const int count = std::max(1, kSchedules * context().population / 512);
    std::vector<Point> points;
    for (int i = 0; i < count; ++i)
      Sample(static_cast<int>(rng.Below(context().spaces.size())), rng, points);
    return points;
  }

  std::vector<Point> Seeds(int count, const std::vector<Scored>& drawn) {
    std::vector<Point> seeds;
    if (count <= 0) return seeds;
    const auto measured = static_cast<size_t>(std::lround(kMeasured * count));
    for (const History::Entry* best : history().Best(measured)) seeds.push_back(best->point);
    for (size_t i = 0; i < drawn.size() && seeds.size() < static_cast<size_t>(count); ++i) {
      if (!history().Knows(drawn[i].point)) seeds.push_back(drawn[i].point);
    }
    return seeds;
  }

  int Steps() {
    const int64_t results = history().Told();
    return results < kEarly ? kEarlySteps : results < kLate ? kMiddleSteps : kLateSteps;
  }

  // Runs the optimization from a seed. Returns the legal candidates that it scored, including the
  // seed.
  absl::StatusOr<std::vector<Scored>> Optimize(const Point& seed, Call& call) {
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> met, Score(absl::MakeConstSpan(&seed, 1), call));
    const space::DesignSpace& space = *context().spaces[seed.space];
    const absl::StatusOr<std::vector<Site>> sites = space.Sites(seed.decisions);
    if (met.empty() || !sites.ok() || sites->empty()) return met;
    std::deque<Logged>& log = logs_[seed.space];
    log.push_back({PlaceOf(*sites, seed.decisions), met[0].score});
    // Scores are normalized by the mean and deviation of the scores logged before the first step.
    double mean = 0, squares = 0;
    for (const Logged& each : log) mean += each.score / static_cast<double>(log.size());
    for (const Logged& each : log) squares += (each.score - mean) * (each.score - mean);
    const double deviation = std::max(std::sqrt(squares / static_cast<double>(log.size())), 1e-3);
    const auto normalized = [&](double score) { return (score - mean) / deviation; };
    cost_model::Observations observations;
    for (const Logged& each : log) observations.Add({each.place, {}}, normalized(each.score));
    std::vector<Logged> run(log.begin(), log.end());
    DomainReduction domain(log.back().place, Box(sites->size()));
    const int steps = Steps();
    for (int step = 0; step < steps; ++step) {
      if (context().check != nullptr) HONE_RETURN_IF_ERROR(context().check());
      cost_model::Kernel kernel = kKernel;
      kernel.length = FittedLength(observations);
      GaussianProcess process(kernel);
      const Logged* best = &run[0];
      for (const Logged& each : run) {
        process.Add({each.place, {}}, normalized(each.score));
        if (each.score > best->score) best = &each;
      }
      if (options_.reduces_domain && step > 0) domain.Reduce(best->place);
      const Place place = Suggested(process, normalized(best->score), domain.box(), call.rng);
      absl::StatusOr<std::vector<int64_t>> decisions =
          Fit(space, DecisionsAt(*sites, place, seed.decisions), call.rng);
      double score = 0;  // stays 0 for illegal decisions
      if (decisions.ok()) {
        const Point point{seed.space, *std::move(decisions)};
        HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored,
                              Score(absl::MakeConstSpan(&point, 1), call));
        if (!scored.empty()) {
          score = scored[0].score;
          met.push_back(std::move(scored[0]));
        }
      }
      observations.Add({place, {}}, normalized(score));
      run.push_back({place, score});
      log.push_back({place, score});
    }
    while (log.size() > kLogged) log.pop_front();
    return met;
  }

  // Returns the place in the box with the highest acquisition: the best of many random ones, after
  // climbs from it and from some others.
  Place Suggested(const GaussianProcess& process, double best_value, const Box& box, Rng& rng) {
    const double pace = history().Told() >= options_.explored ? options_.exploit : 1;
    const auto acquisition = [&](const Place& place) {
      const GaussianProcess::Marginal at = process.At({place, {}});
      if (options_.acquisition == BayesianIndexOptions::Acquisition::kUpperBound)
        return at.mean + pace * options_.kappa * at.deviation;
      const double gain = at.mean - best_value - pace * options_.xi;
      const double deviation = std::max(at.deviation, 1e-12), z = gain / deviation;
      const double probability = 0.5 * std::erfc(-z / std::numbers::sqrt2);
      if (options_.acquisition == BayesianIndexOptions::Acquisition::kProbabilityOfImprovement)
        return probability;
      const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
      return gain * probability + deviation * density;
    };
    const int draws = std::max(1, options_.draws * context().population / 512);
    Place best = box.Draw(rng);
    double highest = acquisition(best);
    const auto offer = [&](Place place) {
      const double value = acquisition(place);
      if (!(value > highest)) return;
      highest = value;
      best = std::move(place);
    };
    for (int i = 1; i < draws; ++i) offer(box.Draw(rng));
    offer(Climb(acquisition, best, box));
    const int climbs = std::max(1, options_.climbs * context().population / 512);
    for (int i = 0; i < climbs; ++i) offer(Climb(acquisition, box.Draw(rng), box));
    return best;
  }

  // PlaceOf maps an index to index / (number of values − 1). DecisionsAt inverts it by truncation.
  std::vector<double> PlaceOf(const std::vector<Site>& sites, absl::Span<const int64_t> decisions) {
    std::vector<double> place;
    for (const Site& site : sites) {
      const size_t last = lists_.Count(site) - 1;
      const size_t index = lists_.IndexOf(site, decisions.subspan(site.begin, site.count));
      place.push_back(last == 0 ? 0 : static_cast<double>(index) / static_cast<double>(last));
    }
    return place;
  }
  std::vector<int64_t> DecisionsAt(const std::vector<Site>& sites, absl::Span<const double> place,
                                   std::vector<int64_t> decisions) {
    for (size_t s = 0; s < sites.size(); ++s) {
      const size_t last = lists_.Count(sites[s]) - 1;
      const auto index = static_cast<size_t>(place[s] * static_cast<double>(last));
      const absl::Span<const int64_t> values = lists_.At(sites[s], index);
      absl::c_copy(values, decisions.begin() + sites[s].begin);
    }
    return decisions;
  }

  const BayesianIndexOptions options_;
  SiteValues lists_;
  std::vector<std::deque<Logged>> logs_;  // per space, oldest first
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeBayesianIndexSearch(SearchContext context,
                                                        const BayesianIndexOptions& options) {
  return std::make_unique<BayesianIndexSearch>(std::move(context), options);
}

}  // namespace hone::search
