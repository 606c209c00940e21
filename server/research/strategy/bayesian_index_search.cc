#include <algorithm>
#include <cmath>
#include <deque>
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

// As in bayes_opt's regressor: unit variance after normalization, unit length scale, noise variance
// 1e-6 (alpha).
constexpr cost_model::Kernel kKernel = {.deviation = 1, .length = 1, .noise = 1e-3};

constexpr int kSchedules = 1024;   // draws per Propose if context.population is 512
constexpr double kRandom = 0.2;    // share of a batch that is drawn without optimization
constexpr double kMeasured = 0.6;  // share of the seeds that are measured; the others are drawn
constexpr double kKappa = 5;       // weight of the deviation in the upper confidence bound
// The number of steps of a run is kEarlySteps below kEarly results, kMiddleSteps below kLate
// results, and kLateSteps from then on.
constexpr int kEarlySteps = 1, kMiddleSteps = 10, kLateSteps = 20, kEarly = 64, kLate = 256;
// Our parameters: the number of random vectors from which a step takes the one with the highest
// bound (the original draws 10,000 and then climbs), and the number of scores, the latest ones,
// that the process of a design space observes.
constexpr int kSuggested = 64;
constexpr size_t kLogged = 128;

// An observation of a process.
struct Logged {
  std::vector<double> place;  // the point in the box
  double score;
};

class BayesianIndexSearch final : public HistorySearch {
 public:
  explicit BayesianIndexSearch(SearchContext given)
      : HistorySearch("bayesian-index", std::move(given)), logs_(context().spaces.size()) {}

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
    GaussianProcess process(kKernel);
    for (const Logged& each : log) process.Add({each.place, {}}, (each.score - mean) / deviation);
    const int steps = Steps();
    for (int step = 0; step < steps; ++step) {
      const std::vector<double> place = Suggested(process, sites->size(), call.rng);
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
      process.Add({place, {}}, (score - mean) / deviation);
      log.push_back({place, score});
    }
    while (log.size() > kLogged) log.pop_front();
    return met;
  }

  // Returns the random place with the highest upper confidence bound.
  std::vector<double> Suggested(const GaussianProcess& process, size_t sites, Rng& rng) const {
    std::vector<double> best;
    double highest = 0;
    for (int i = 0; i < kSuggested; ++i) {
      KernelInput input;
      for (size_t site = 0; site < sites; ++site) input.numbers.push_back(rng.Uniform());
      const GaussianProcess::Marginal marginal = process.At(input);
      const double bound = marginal.mean + kKappa * marginal.deviation;
      if (!best.empty() && bound <= highest) continue;
      best = std::move(input.numbers);
      highest = bound;
    }
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

  SiteValues lists_;
  std::vector<std::deque<Logged>> logs_;  // per space, oldest first
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeBayesianIndexSearch(SearchContext context) {
  return std::make_unique<BayesianIndexSearch>(std::move(context));
}

}  // namespace hone::search
