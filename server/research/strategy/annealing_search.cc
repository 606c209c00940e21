#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/research/strategy/clusters.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/site_values.h"

namespace hone::search {
namespace {

using schedule::Site;

// Parameters of AutoTVM's XGBTuner and SimulatedAnnealingOptimizer.
constexpr int kPlan = 64;       // results until a new plan is made, and minimum size of a plan
constexpr int kSteps = 500;     // maximum number of steps of a chain
constexpr int kPatience = 50;   // steps without a change of the plan after which the chains stop
constexpr double kHottest = 1;  // temperature of the first step
constexpr double kRandomShare =
    0.05;  // share of a plan, at its end, that is replaced by random draws
// Our parameters: the final temperature of geometric cooling, relative to kHottest, and the share
// of accepted moves that adaptive cooling aims at.
constexpr double kLeastOfHottest = 0.01;
constexpr double kAccepted = 0.3;
// Of the diverse selection: how many times as many candidates as a plan has it chooses from (λ),
// and what a new value of a decision is worth in scores (α). The paper varies both.
constexpr size_t kDiversePool = 2;
constexpr double kDiversity = 0.02;
// Chameleon's adaptive sampling: the numbers of clusters that are tried, and, ours, the most
// candidates that are clustered.
constexpr int kLeastClusters = 8, kMostClusters = 64, kClusterStep = 8;
constexpr size_t kClustered = 512;
// The distance of different design spaces in the logarithms of decisions.
constexpr double kSpaceDistance = 8;

// Computes the temperature of each step.
class Thermometer {
 public:
  explicit Thermometer(AnnealingOptions::Cooling cooling) : cooling_(cooling) {}

  double temperature() const { return temperature_; }
  void Reheat() { temperature_ = kHottest; }
  // Called after each step with the share of moves that were accepted.
  void Cool(double accepted) {
    switch (cooling_) {
      case AnnealingOptions::Cooling::kLinear:
        temperature_ -= kHottest / (kSteps + 1);
        break;
      case AnnealingOptions::Cooling::kGeometric:
        temperature_ *= std::pow(kLeastOfHottest, 1.0 / kSteps);
        break;
      case AnnealingOptions::Cooling::kAdaptive:
        temperature_ *= accepted > kAccepted ? 0.9 : 1.05;
        break;
    }
    temperature_ = std::clamp(temperature_, 0.0, kHottest);
  }

 private:
  const AnnealingOptions::Cooling cooling_;
  double temperature_ = kHottest;
};

// Keeps the best candidates with distinct programs.
class Top {
 public:
  // `watched`: how many of the best ones Offer watches.
  Top(size_t size, size_t watched) : size_(size), watched_(watched) {}

  // Returns true if the candidate is now among the watched ones.
  bool Offer(const Scored& candidate) {
    if (best_.size() >= size_ && candidate.score <= best_.back().score) return false;
    if (!programs_.insert(candidate.evaluation->program).second) return false;
    if (best_.size() >= size_) {
      programs_.erase(best_.back().evaluation->program);
      best_.pop_back();
    }
    const auto place = absl::c_upper_bound(best_, candidate, [](const Scored& a, const Scored& b) {
      return a.score != b.score ? a.score > b.score : a.key < b.key;
    });
    const bool is_watched = static_cast<size_t>(place - best_.begin()) < watched_;
    best_.insert(place, candidate);
    return is_watched;
  }
  std::vector<Scored> Take() && { return std::move(best_); }

 private:
  const size_t size_, watched_;
  std::vector<Scored> best_;  // sorted
  absl::flat_hash_set<Digest> programs_;
};

class AnnealingSearch final : public HistorySearch {
 public:
  AnnealingSearch(SearchContext context, const AnnealingOptions& options)
      : HistorySearch(options.name, std::move(context)), options_(options) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/6));
    const auto told = static_cast<uint64_t>(history().Told());
    const uint64_t age = told - std::min(told, planned_at_);
    if (age >= kPlan) taken_ = plan_.size();
    // A plan of the centers of clusters may be shorter than a batch.
    const int plans = IsClustering() ? 3 : 1;
    for (int i = 0; i < plans && !call.picker.full(); ++i) {
      if (taken_ == plan_.size()) {
        HONE_RETURN_IF_ERROR(Plan(std::max(n, kPlan), call));
        planned_at_ = told;
      }
      HONE_RETURN_IF_ERROR(TakeFromPlan(call));
    }
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    return Commit(call);
  }

 private:
  bool IsClustering() const { return options_.selection == AnnealingOptions::Selection::kClusters; }

  absl::Status TakeFromPlan(Call& call) {
    HONE_ASSIGN_OR_RETURN(const std::vector<Scored> rest,
                          Score(absl::MakeConstSpan(plan_).subspan(taken_), call));
    call.picker.CoverUntried(rest);
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    const auto drawn = IsClustering() ? 0 : static_cast<size_t>(kRandomShare * kPlan);
    for (size_t i = 0; !call.picker.full() && plan_.size() - taken_ > drawn && i < rest.size();
         ++i) {
      call.picker.Add(rest[i]);
      while (plan_[taken_] != rest[i].point) ++taken_;  // skips illegal points, absent from `rest`
      ++taken_;
    }
    if (plan_.size() - taken_ <= drawn) taken_ = plan_.size();  // draws replace the rest
    return absl::OkStatus();
  }

  // Runs the chains and makes a new plan.
  absl::Status Plan(int size, Call& call) {
    Rng& rng = call.rng;
    using Selection = AnnealingOptions::Selection;
    const auto plan = static_cast<size_t>(size);
    Top top(IsClustering()                              ? kClustered
            : options_.selection == Selection::kDiverse ? kDiversePool * plan
                                                        : plan,
            /*watched=*/plan);
    const size_t chains = std::max(1, context().population / 4);
    if (chains_.size() != chains) chains_ = Drawn(chains, rng);
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> current, Score(chains_, call));
    Offer(current, top);
    Thermometer thermometer(options_.cooling);
    int restarts = options_.restarts;
    for (int step = 0, changed = 0; step < kSteps && step < changed + kPatience; ++step) {
      if (restarts > 0 && step >= changed + kPatience / 2) {
        --restarts;
        changed = step;
        thermometer.Reheat();
        HONE_ASSIGN_OR_RETURN(current, Score(Drawn(chains, rng), call));
        if (Offer(current, top)) changed = step;
      }
      if (current.empty()) break;
      std::vector<Point> moved;
      for (const Scored& each : current) moved.push_back(Moved(each.point, rng));
      HONE_ASSIGN_OR_RETURN(std::vector<Scored> next, ScoreOrKeep(moved, current, call));
      size_t accepted = 0;
      for (size_t i = 0; i < current.size(); ++i) {
        const double gain = next[i].score - current[i].score;
        const double chance = std::exp(std::min(gain / (thermometer.temperature() + 1e-5), 1.0));
        if (rng.Uniform() >= chance) continue;
        ++accepted;
        current[i] = next[i];
      }
      if (Offer(next, top)) changed = step;
      thermometer.Cool(static_cast<double>(accepted) / static_cast<double>(current.size()));
    }
    chains_.clear();
    for (const Scored& each : current) chains_.push_back(each.point);
    std::vector<Scored> visited = std::move(top).Take();
    plan_.clear();
    taken_ = 0;
    switch (options_.selection) {
      case Selection::kBest:
        for (Scored& each : visited) plan_.push_back(std::move(each.point));
        break;
      case Selection::kDiverse:
        plan_ = Diverse(visited, plan);
        break;
      case Selection::kClusters:
        HONE_ASSIGN_OR_RETURN(plan_, Representatives(visited, call));
        break;
    }
    return absl::OkStatus();
  }

  // Returns up to `size` candidates. Each next one maximizes its score plus the weight of the
  // values that no chosen one has at the same decision: L(S) = −Σ f(s) + α Σ_j |∪ {s_j}| is
  // submodular, so this greedy choice is near the optimum.
  static std::vector<Point> Diverse(const std::vector<Scored>& visited, size_t size) {
    std::vector<Point> chosen;
    std::vector<bool> taken(visited.size(), false);
    absl::flat_hash_set<std::tuple<int, size_t, int64_t>> values;  // space, decision, value
    while (chosen.size() < std::min(size, visited.size())) {
      size_t best = visited.size();
      double most = 0;
      for (size_t v = 0; v < visited.size(); ++v) {
        if (taken[v]) continue;
        const Point& point = visited[v].point;
        double gain = visited[v].score;
        for (size_t d = 0; d < point.decisions.size(); ++d)
          gain += kDiversity * !values.contains({point.space, d, point.decisions[d]});
        if (best < visited.size() && gain <= most) continue;
        best = v;
        most = gain;
      }
      taken[best] = true;
      const Point& point = visited[best].point;
      for (size_t d = 0; d < point.decisions.size(); ++d)
        values.insert({point.space, d, point.decisions[d]});
      chosen.push_back(point);
    }
    return chosen;
  }

  // Chameleon's adaptive sampling of the visited candidates, which are sorted: the candidates
  // nearest to the centers of their clusters, best first. Those below the mean score are replaced
  // by the most frequent decisions of their design space, and once these are taken, by their
  // neighbours.
  absl::StatusOr<std::vector<Point>> Representatives(const std::vector<Scored>& visited,
                                                     Call& call) {
    std::vector<Point> plan;
    if (visited.empty()) return plan;
    size_t decisions = 0;
    for (const space::DesignSpace* space : context().spaces)
      decisions = std::max(decisions, static_cast<size_t>(space->decision_count()));
    std::vector<std::vector<double>> places;
    double mean = 0;
    for (const Scored& each : visited) {
      mean += each.score / static_cast<double>(visited.size());
      std::vector<double>& place = places.emplace_back(decisions + context().spaces.size(), 0.0);
      for (size_t d = 0; d < each.point.decisions.size(); ++d)
        place[d] =
            std::log2(1.0 + static_cast<double>(std::max<int64_t>(each.point.decisions[d], 0)));
      place[decisions + each.point.space] = kSpaceDistance;
    }
    const Clusters clusters =
        ClustersAtKnee(places, kLeastClusters, kMostClusters, kClusterStep, call.rng);
    std::vector<int> nearest(clusters.centers.size(), -1);
    std::vector<double> least(clusters.centers.size(), 0);
    for (size_t v = 0; v < visited.size(); ++v) {
      const int center = clusters.members[v];
      double distance = 0;
      for (size_t i = 0; i < places[v].size(); ++i)
        distance += std::pow(places[v][i] - clusters.centers[center][i], 2);
      if (nearest[center] >= 0 && distance >= least[center]) continue;
      nearest[center] = static_cast<int>(v);
      least[center] = distance;
    }
    std::erase(nearest, -1);
    absl::c_sort(nearest);  // visited is sorted by score
    absl::flat_hash_set<Digest> planned;
    for (const int v : nearest) {
      Point point = visited[v].point;
      if (visited[v].score < mean) point = ModeOf(visited, point.space, call.rng);
      for (int move = 0; move < kPatience &&
                         (history().Knows(point) || planned.contains(KeyOf(context(), point)));
           ++move) {
        point = Moved(point, call.rng);
      }
      if (planned.insert(KeyOf(context(), point)).second) plan.push_back(std::move(point));
    }
    return plan;
  }

  // Returns the most frequent value of each site among the candidates of a space, made legal. If
  // that fails, one of the candidates.
  Point ModeOf(const std::vector<Scored>& visited, int space, Rng& rng) const {
    const Point* first = nullptr;
    std::vector<std::map<std::vector<int64_t>, int>> counts;
    std::vector<int64_t> wanted;
    for (const Scored& each : visited) {
      if (each.point.space != space) continue;
      if (first == nullptr) first = &each.point;
      const absl::StatusOr<std::vector<Site>> sites =
          context().spaces[space]->Sites(each.point.decisions);
      if (!sites.ok()) continue;
      counts.resize(std::max(counts.size(), sites->size()));
      for (size_t s = 0; s < sites->size(); ++s) {
        const auto begin = each.point.decisions.begin() + (*sites)[s].begin;
        ++counts[s][{begin, begin + (*sites)[s].count}];
      }
    }
    for (const auto& values : counts) {
      const auto most =
          std::ranges::max_element(values, {}, [](const auto& v) { return v.second; });
      wanted.insert(wanted.end(), most->first.begin(), most->first.end());
    }
    absl::StatusOr<std::vector<int64_t>> fitted = Fit(*context().spaces[space], wanted, rng);
    return fitted.ok() ? Point{space, *std::move(fitted)} : *first;
  }

  // Offers the unseen candidates to `top`. Returns true if one of them is now among the best.
  bool Offer(absl::Span<const Scored> candidates, Top& top) {
    bool changed = false;
    for (const Scored& each : candidates) {
      if (!history().Knows(each.point) && !history().KnowsProgram(*each.evaluation))
        changed |= top.Offer(each);
    }
    return changed;
  }

  // Scores the points, in order. An illegal point is replaced by the element of `instead` with the
  // same index.
  absl::StatusOr<std::vector<Scored>> ScoreOrKeep(const std::vector<Point>& points,
                                                  const std::vector<Scored>& instead, Call& call) {
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> legal, Score(points, call));
    std::vector<Scored> scored;
    for (size_t i = 0, next = 0; i < points.size(); ++i) {
      const bool found = next < legal.size() && legal[next].point == points[i];
      scored.push_back(found ? std::move(legal[next++]) : instead[i]);
    }
    return scored;
  }

  // Draws points, taking turns between the spaces.
  std::vector<Point> Drawn(size_t count, Rng& rng) {
    std::vector<Point> points;
    const size_t spaces = context().spaces.size(), first = rng.Below(spaces);
    for (size_t i = 0; i < count; ++i) Sample(static_cast<int>((first + i) % spaces), rng, points);
    return points;
  }

  // Redraws one decision. Returns the same point if a constraint rejects the result.
  Point Moved(const Point& point, Rng& rng) {
    const space::DesignSpace& space = *context().spaces[point.space];
    const absl::StatusOr<std::vector<Site>> sites = space.Sites(point.decisions);
    if (!sites.ok() || sites->empty()) return point;
    const Site& site = (*sites)[rng.Below(sites->size())];
    std::vector<int64_t> wanted = point.decisions;
    site.Sample(rng, absl::MakeSpan(wanted).subspan(site.begin, site.count));
    absl::StatusOr<std::vector<int64_t>> fitted = Fit(space, wanted, rng);
    return fitted.ok() ? Point{point.space, *std::move(fitted)} : point;
  }

  const AnnealingOptions options_;
  std::vector<Point> chains_;
  std::vector<Point> plan_;  // best first
  size_t taken_ = 0;         // number of points of the plan that were used
  uint64_t planned_at_ = 0;  // number of results when the plan was made
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeAnnealingSearch(SearchContext context,
                                                    const AnnealingOptions& options) {
  return std::make_unique<AnnealingSearch>(std::move(context), options);
}

}  // namespace hone::search
