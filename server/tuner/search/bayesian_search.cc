#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/random_draw.h"
#include "server/tuner/search/residual_model.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

using cost_model::GaussianProcess;
using cost_model::KernelInput;

constexpr int kFitted = 128;        // maximum number of results in the process of a design space
constexpr int kPool = 128;          // candidates per design space from which a batch is picked
constexpr int kCentres = 4;         // best results per design space that are centres of its region
constexpr int kWidest = 8;          // maximum width of a trust region, in moves from a centre
constexpr int kFirstWidth = 4;      // width of a trust region at first and after a restart
constexpr int kSuccesses = 3;       // batches in a row with a better result that double a region
constexpr int kFailures = 3;        // batches in a row without a better result that halve a region
constexpr double kDeviation = 0.4;  // of log latency from the estimate, before there are results

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
      : HistorySearch("bayesian", std::move(context),
                      cost_model::MakeModel(cost_model::kAnalyticModel)) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/7));
    const ResidualModel residual =
        ResidualModel::Of(context(), history(), call.ranking, kFitted, kDeviation);
    HONE_ASSIGN_OR_RETURN(std::vector<std::vector<Member>> pools, Pools(residual, call));
    std::vector<Scored> pool;
    for (const std::vector<Member>& members : pools) {
      for (const Member& member : members) pool.push_back(member.scored);
    }
    SortByScore(pool);
    call.picker.CoverUntried(pool);
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    call.picker.PickBest(pool, std::min(n, call.picker.size() + 1));
    PickByThompson(residual, pools, call);
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    call.picker.Sort();
    return Commit(call);
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
      std::sort(members.begin(), members.end(), IsMorePromising);
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
    std::sort(members.begin(), members.end(),
              [](const Member* a, const Member* b) { return IsMorePromising(*a, *b); });
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
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeBayesianSearch(SearchContext context) {
  return std::make_unique<BayesianSearch>(std::move(context));
}

}  // namespace hone::search
