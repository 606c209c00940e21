#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/gaussian_process.h"
#include "server/tuner/search/history.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/random_draw.h"
#include "server/tuner/search/ranking.h"
#include "server/tuner/search/strategies.h"
#include "server/tuner/space/design_space.h"

namespace hone::search {
namespace {

// Models log(latency / best latency) of a candidate as a multiple of the ranking's estimate, plus
// an offset and a Gaussian process per design space. Immutable.
class ResidualModel {
 public:
  // Fits the model to all results. REQUIRES: history.Refresh was called after the last Tell.
  static ResidualModel Of(const SearchContext& context, const History& history,
                          const Ranking& ranking);

  // The estimate from a score of the ranking, without the process.
  double Estimate(int space, double score) const;
  const cost_model::GaussianProcess& process(int space) const { return processes_[space]; }
  // The probability that a candidate with this input does not fail, in (0, 1), estimated from the
  // outcomes of similar candidates.
  double Feasibility(int space, const cost_model::KernelInput& input) const;

 private:
  struct Outcome {
    cost_model::KernelInput input;
    bool ok;
  };

  double slope_ = 1;
  std::vector<double> offsets_;
  std::vector<cost_model::GaussianProcess> processes_;
  std::vector<std::vector<Outcome>> outcomes_;  // per space; empty if nothing failed there
};

using cost_model::GaussianProcess;
using cost_model::Kernel;
using cost_model::KernelInput;

constexpr double kLowestScore = 0.01;  // lower scores are raised to it; the best result has score 1
constexpr double kSlopeEvidence = 1;   // prior sum of squares of log estimates, with slope 1
constexpr double kOffsetShrinkage = 2;  // number of results at which an offset is halved
// Maximum number of results in the process of a design space; half are the best, half the latest.
constexpr size_t kFitted = 128;
constexpr int kFewResults = 8;      // results of all spaces that are needed to fit the kernel
constexpr double kDeviation = 0.4;  // of log latency from the estimate, while there are fewer
constexpr double kOutcomeLength = 2, kOutcomeHamming = 3, kOutcomePrior = 19, kPriorWeight = 0.5;

struct Observation {
  KernelInput input;
  double estimate;  // −log score
  double value;     // log(latency / best)
};

// Returns the indices of at most `most` observations: all of them, or else the best and the latest,
// half of each.
std::vector<size_t> Chosen(const std::vector<Observation>& all, size_t most) {
  std::vector<size_t> order(all.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (order.size() <= most) return order;
  const size_t latest = most / 2;
  std::stable_sort(order.begin(), order.end() - latest,
                   [&](size_t a, size_t b) { return all[a].value < all[b].value; });
  order.erase(order.begin() + (most - latest), order.end() - latest);
  return order;
}

// Returns the kernel with the highest likelihood over the residuals of all spaces, from a grid of
// parameters.
Kernel LikeliestKernel(const std::vector<cost_model::Observations>& residuals) {
  Kernel likeliest;
  double most = -std::numeric_limits<double>::infinity();
  for (const double length : {2.0, 4.0, 8.0, 16.0}) {
    for (const double hamming : {0.3, 1.0, 3.0}) {
      YieldToTimers();
      std::vector<std::vector<double>> covariances;
      for (const cost_model::Observations& of_space : residuals)
        covariances.push_back(of_space.Covariances({.length = length, .hamming = hamming}));
      for (const double deviation : {0.1, 0.2, 0.4, 0.8, 1.6}) {
        for (const double noise : {0.02, 0.1}) {
          double likelihood = 0;
          for (size_t s = 0; s < residuals.size(); ++s) {
            const auto evidence = residuals[s].EvidenceOf(covariances[s], deviation, noise);
            likelihood -= 0.5 * (evidence.squares + evidence.log_determinant);
          }
          if (likelihood <= most) continue;
          most = likelihood;
          likeliest = {
              .deviation = deviation, .length = length, .hamming = hamming, .noise = noise};
        }
      }
    }
  }
  return likeliest;
}

// The score of an entry from the draft and the prediction that was made before its measurement. The
// prediction is relative to the best latency at that time, `best_then`.
double ScoreBefore(const History::Entry& entry, const Ranking& ranking, double best_then,
                   double best_now) {
  const double draft = ranking.DraftScore(entry.point.space, entry.evaluation->draft);
  if (!entry.predicted || !std::isfinite(best_then)) return draft;
  return ranking.Score(draft, entry.prediction * best_now / best_then, /*learnt=*/true);
}

// Converts decisions to a kernel input. A tile gives the log2 of its sizes. A choice gives the
// index of its row and the log2 of the row's numbers, or zeros if some row of the choice has a
// number that is not positive. Returns an empty input if the decisions are illegal.
KernelInput EmbedDecisions(const space::DesignSpace& space, absl::Span<const int64_t> decisions) {
  KernelInput input;
  const absl::StatusOr<std::vector<schedule::Site>> sites = space.Sites(decisions);
  if (!sites.ok()) return input;
  for (const schedule::Site& site : *sites) {
    const absl::Span<const int64_t> values = decisions.subspan(site.begin, site.count);
    bool numbers = true;
    if (site.kind == schedule::Site::Kind::kChoice) {
      input.choices.push_back(site.RowOf(values));
      numbers = *absl::c_min_element(site.rows) > 0;
    }
    for (const int64_t value : values)
      input.numbers.push_back(numbers ? std::log2(static_cast<double>(value)) : 0);
  }
  return input;
}

ResidualModel ResidualModel::Of(const SearchContext& context, const History& history,
                                const Ranking& ranking) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const size_t spaces = context.spaces.size();
  ResidualModel model;
  model.offsets_.assign(spaces, 0);
  model.outcomes_.resize(spaces);
  double best = kNone;
  for (const History::Entry& entry : history.entries()) {
    if (entry.told && entry.ok) best = std::min(best, entry.latency_ns);
  }
  std::vector<std::vector<Observation>> observed(spaces);
  double best_of_earlier = kNone, best_then = kNone;
  uint64_t event = 0;
  std::vector<bool> failed(spaces, false);
  for (const History::Entry& entry : history.entries()) {
    if (entry.event != event) best_then = best_of_earlier;
    event = entry.event;
    if (!entry.told || entry.evaluation == nullptr || !entry.evaluation->legal) continue;
    const int space = entry.point.space;
    KernelInput input = EmbedDecisions(*context.spaces[space], entry.point.decisions);
    model.outcomes_[space].push_back({input, entry.ok});
    failed[space] = failed[space] || !entry.ok;
    if (!entry.ok) continue;
    best_of_earlier = std::min(best_of_earlier, entry.latency_ns);
    const double score = ScoreBefore(entry, ranking, best_then, best);
    observed[space].push_back({std::move(input), -std::log(std::max(score, kLowestScore)),
                               std::log(entry.latency_ns / best)});
  }
  double across = kSlopeEvidence, along = kSlopeEvidence;
  size_t results = 0;
  for (size_t s = 0; s < spaces; ++s) {
    if (!failed[s]) model.outcomes_[s].clear();
    double x = 0, y = 0;
    const auto n = static_cast<double>(observed[s].size());
    for (const Observation& each : observed[s]) x += each.estimate / n, y += each.value / n;
    for (const Observation& each : observed[s]) {
      across += (each.estimate - x) * (each.value - y);
      along += (each.estimate - x) * (each.estimate - x);
    }
    results += observed[s].size();
  }
  model.slope_ = std::clamp(across / along, 0.0, 1.0);
  std::vector<std::vector<size_t>> chosen;
  for (size_t s = 0; s < spaces; ++s) {
    double sum = 0;
    for (const Observation& each : observed[s]) sum += each.value - model.slope_ * each.estimate;
    model.offsets_[s] = sum / (static_cast<double>(observed[s].size()) + kOffsetShrinkage);
    chosen.push_back(Chosen(observed[s], kFitted));
  }
  const auto residual = [&](size_t space, size_t i) {
    const Observation& each = observed[space][i];
    return each.value - model.slope_ * each.estimate - model.offsets_[space];
  };
  Kernel kernel{.deviation = kDeviation, .length = 4, .hamming = 1};
  if (results >= kFewResults) {
    std::vector<cost_model::Observations> residuals(spaces);
    for (size_t s = 0; s < spaces; ++s) {
      for (const size_t i : chosen[s]) residuals[s].Add(observed[s][i].input, residual(s, i));
    }
    kernel = LikeliestKernel(residuals);
  }
  for (size_t s = 0; s < spaces; ++s) {
    GaussianProcess& process = model.processes_.emplace_back(kernel);
    for (const size_t i : chosen[s]) process.Add(observed[s][i].input, residual(s, i));
  }
  return model;
}

double ResidualModel::Estimate(int space, double score) const {
  return offsets_[space] - slope_ * std::log(std::max(score, kLowestScore));
}

double ResidualModel::Feasibility(int space, const KernelInput& input) const {
  const Kernel kernel{.length = kOutcomeLength, .hamming = kOutcomeHamming};
  double ok = kPriorWeight * kOutcomePrior / (kOutcomePrior + 1), all = kPriorWeight;
  for (const Outcome& outcome : outcomes_[space]) {
    const double weight = kernel(input, outcome.input);
    all += weight;
    ok += outcome.ok ? weight : 0;
  }
  return ok / all;
}

constexpr int kPool = 128;      // candidates per design space from which a batch is picked
constexpr int kCentres = 4;     // best results per design space that are centres of its region
constexpr int kWidest = 8;      // maximum width of a trust region, in moves from a centre
constexpr int kFirstWidth = 4;  // width of a trust region at first and after a restart
constexpr int kSuccesses = 3;   // batches in a row with a better result that double a region
constexpr int kFailures = 3;    // batches in a row without a better result that halve a region

// A candidate of the pool. Its estimate and bound are in log(latency / best).
struct Member {
  Scored scored;
  KernelInput input;
  double estimate = 0;  // without the process
  double bound = 0;     // lower confidence bound
  double feasible = 1;  // probability that the candidate does not fail
};

bool IsMorePromising(const Member& a, const Member& b) {
  return a.bound != b.bound ? a.bound < b.bound : a.scored.key < b.scored.key;
}

class BayesianSearch final : public HistorySearch {
 public:
  explicit BayesianSearch(SearchContext context)
      : HistorySearch("bayesian", std::move(context), /*draft=*/true) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/7));
    // A portfolio asks several times between results.
    if (!residual_) residual_ = ResidualModel::Of(context(), history(), call.ranking);
    HONE_ASSIGN_OR_RETURN(std::vector<std::vector<Member>> pools, Pools(*residual_, call));
    std::vector<Scored> pool;
    for (const std::vector<Member>& members : pools) {
      for (const Member& member : members) pool.push_back(member.scored);
    }
    SortByScore(pool);
    call.picker.CoverUntried(pool);
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    call.picker.PickBest(pool, std::min(n, call.picker.size() + 1));
    PickByThompson(*residual_, pools, call);
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    call.picker.Sort();
    return Commit(call);
  }

  void Tell(absl::Span<const Measured> results) override {
    HistorySearch::Tell(results);
    residual_.reset();
  }

 private:
  // Returns the most promising unseen candidates of each space, with the score e^(−posterior mean).
  absl::StatusOr<std::vector<std::vector<Member>>> Pools(const ResidualModel& residual,
                                                         Call& call) {
    const int half = std::max(1, context().population / 2);
    std::vector<std::vector<Member>> pools(context().spaces.size());
    absl::flat_hash_set<Digest> programs;
    std::vector<Point> points;
    for (int i = 0; i < half; ++i)
      Sample(i % static_cast<int>(context().spaces.size()), call.rng, points);
    const std::vector<Point> near = NearTheBest(half, call.rng);
    points.insert(points.end(), near.begin(), near.end());
    HONE_RETURN_IF_ERROR(Judge(points, residual, programs, pools, call));
    HONE_RETURN_IF_ERROR(
        Judge(NearThePromising(half, pools, call.rng), residual, programs, pools, call));
    for (std::vector<Member>& members : pools) {
      absl::c_sort(members, IsMorePromising);
      if (members.size() > kPool) members.resize(kPool);
    }
    return pools;
  }

  absl::Status Judge(absl::Span<const Point> points, const ResidualModel& residual,
                     absl::flat_hash_set<Digest>& programs, std::vector<std::vector<Member>>& pools,
                     Call& call) {
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored, Score(points, call));
    for (Scored& each : scored) {
      if (history().Knows(each.point) || history().KnowsProgram(*each.evaluation) ||
          !programs.insert(each.evaluation->program).second)
        continue;
      const int space = each.point.space;
      Member member{.input = EmbedDecisions(*context().spaces[space], each.point.decisions),
                    .estimate = residual.Estimate(space, each.score)};
      const GaussianProcess::Marginal marginal = residual.process(space).At(member.input);
      member.bound = member.estimate + marginal.mean - marginal.deviation;
      member.feasible = residual.Feasibility(space, member.input);
      each.score = std::exp(-member.estimate - marginal.mean);
      member.scored = std::move(each);
      pools[space].push_back(std::move(member));
    }
    return absl::OkStatus();
  }

  Point Moved(Point point, int moves, Rng& rng) {
    for (int i = 0; i < moves; ++i) {
      absl::StatusOr<std::vector<int64_t>> moved =
          context().spaces[point.space]->Mutate(point.decisions, rng);
      if (!moved.ok()) break;
      point.decisions = *std::move(moved);
    }
    return point;
  }

  // Returns moves from the best results. Half of them start from the best results of all spaces,
  // the others from the best results of each space in turn.
  std::vector<Point> NearTheBest(int count, Rng& rng) {
    const std::vector<const History::Entry*> best = history().Best(history().entries().size());
    std::vector<std::vector<Point>> centres(context().spaces.size());
    std::vector<Point> all;
    for (const History::Entry* entry : best) {
      std::vector<Point>& of_space = centres[entry->point.space];
      if (of_space.size() >= kCentres) continue;
      of_space.push_back(entry->point);
      if (all.size() < 2 * kCentres) all.push_back(entry->point);
    }
    std::erase_if(centres, [](const std::vector<Point>& points) { return points.empty(); });
    std::vector<Point> points;
    if (all.empty()) return points;
    const std::vector<int> widths = Widths();
    for (int i = 0; i < count; ++i) {
      const std::vector<Point>& from = i % 2 == 0 ? all : centres[i / 2 % centres.size()];
      const Point& centre = from[rng.Below(from.size())];
      points.push_back(Moved(centre, 1 + static_cast<int>(rng.Below(widths[centre.space])), rng));
    }
    return points;
  }

  // Returns single moves from the members with the lowest bounds.
  std::vector<Point> NearThePromising(int count, const std::vector<std::vector<Member>>& pools,
                                      Rng& rng) {
    std::vector<const Member*> members;
    for (const std::vector<Member>& of_space : pools) {
      for (const Member& member : of_space) members.push_back(&member);
    }
    absl::c_sort(members, [](const Member* a, const Member* b) { return IsMorePromising(*a, *b); });
    members.resize(std::min<size_t>(members.size(), std::max(1, count / 4)));
    std::vector<Point> points;
    for (int i = 0; i < count && !members.empty(); ++i)
      points.push_back(Moved(members[i % members.size()]->scored.point, 1, rng));
    return points;
  }

  // Computes the widths of the trust regions, in moves, from the results of all batches.
  std::vector<int> Widths() {
    struct Region {
      int width, successes = 0, failures = 0;
      double best = 0, best_before = 0;
      uint64_t event = 0;
      bool tried = false;  // the space has a result
    };
    std::vector<Region> regions(context().spaces.size(), {.width = kFirstWidth});
    const auto close = [&](Region& region) {
      if (!region.tried || region.best_before == 0) {
        region.best_before = region.best;
        return;
      }
      const bool better = region.best < 0.999 * region.best_before;
      region.successes = better ? region.successes + 1 : 0;
      region.failures = better ? 0 : region.failures + 1;
      if (region.successes >= kSuccesses) {
        region.width = std::min(2 * region.width, kWidest);
        region.successes = 0;
      }
      if (region.failures >= kFailures) {
        region.width = region.width > 1 ? region.width / 2 : kFirstWidth;  // a restart
        region.failures = 0;
      }
      region.best_before = region.best;
    };
    for (const History::Entry& entry : history().entries()) {
      if (!entry.told) continue;
      Region& region = regions[entry.point.space];
      if (region.event != entry.event) {
        close(region);
        region.event = entry.event;
      }
      region.tried = true;
      if (entry.ok && (region.best == 0 || entry.latency_ns < region.best))
        region.best = entry.latency_ns;
    }
    std::vector<int> widths;
    for (Region& region : regions) {
      close(region);
      widths.push_back(region.width);
    }
    return widths;
  }

  // Fills the batch. Each candidate is the best one in a new draw from the joint posterior.
  void PickByThompson(const ResidualModel& residual, const std::vector<std::vector<Member>>& pools,
                      Call& call) {
    std::vector<GaussianProcess::Joint> joints;
    for (size_t s = 0; s < pools.size(); ++s) {
      std::vector<KernelInput> inputs;
      for (const Member& member : pools[s]) inputs.push_back(member.input);
      joints.push_back(residual.process(static_cast<int>(s)).At(inputs));
    }
    absl::flat_hash_set<const Member*> out;
    while (!call.picker.full()) {
      const Member* best = nullptr;
      double lowest = 0;
      for (size_t s = 0; s < pools.size(); ++s) {
        std::vector<double> normal(pools[s].size());
        for (double& each : normal) each = StandardNormal(call.rng);
        const std::vector<double> deviation = joints[s].factor.Product(normal);
        for (size_t i = 0; i < pools[s].size(); ++i) {
          const Member& member = pools[s][i];
          const bool feasible = call.rng.Uniform() < member.feasible;
          const double value = member.estimate + joints[s].mean[i] + deviation[i];
          if (!feasible || out.contains(&member) || (best != nullptr && value >= lowest)) continue;
          best = &member;
          lowest = value;
        }
      }
      if (best == nullptr) return;
      out.insert(best);
      call.picker.Add(best->scored);
    }
  }

  std::optional<ResidualModel> residual_;  // of the results so far
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeBayesianSearch(SearchContext context) {
  return std::make_unique<BayesianSearch>(std::move(context));
}

}  // namespace hone::search
