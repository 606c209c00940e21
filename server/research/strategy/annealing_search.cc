#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
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
  explicit Top(size_t size) : size_(size) {}

  // Returns true if the candidate is now among the best.
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
    best_.insert(place, candidate);
    return true;
  }
  std::vector<Scored> Take() && { return std::move(best_); }

 private:
  const size_t size_;
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
    if (n > 0 && (taken_ == plan_.size() || age >= kPlan)) {
      HONE_RETURN_IF_ERROR(Plan(std::max(n, kPlan), call));
      planned_at_ = told;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<Scored> rest,
                          Score(absl::MakeConstSpan(plan_).subspan(taken_), call));
    call.picker.CoverUntried(rest);
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    constexpr auto kDrawn = static_cast<size_t>(kRandomShare * kPlan);
    for (size_t i = 0; !call.picker.full() && plan_.size() - taken_ > kDrawn && i < rest.size();
         ++i) {
      call.picker.Add(rest[i]);
      while (plan_[taken_] != rest[i].point) ++taken_;  // skips illegal points, absent from `rest`
      ++taken_;
    }
    if (plan_.size() - taken_ <= kDrawn) taken_ = plan_.size();  // draws replace the rest
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    return Commit(call);
  }

 private:
  // Runs the chains and makes a new plan.
  absl::Status Plan(int size, Call& call) {
    Rng& rng = call.rng;
    Top top(static_cast<size_t>(size));
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
    plan_.clear();
    for (Scored& each : std::move(top).Take()) plan_.push_back(std::move(each.point));
    taken_ = 0;
    return absl::OkStatus();
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
