#include "server/search/published/annealing_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/search/history_search.h"
#include "server/search/site_values.h"

namespace hone::search {
namespace {

using schedule::Site;

constexpr uint32_t kVersion = 1;

// The temperature of a step, falling from options.hottest.
class Thermometer {
 public:
  explicit Thermometer(const AnnealingOptions& options)
      : options_(options), temperature_(options.hottest) {}

  double temperature() const { return temperature_; }
  void Reheat() { temperature_ = options_.hottest; }
  // After a step in which this share of the moves was accepted.
  void Cool(double accepted) {
    const double hottest = options_.hottest, coldest = options_.coldest;
    switch (options_.cooling) {
      case AnnealingOptions::Cooling::kLinear:
        temperature_ -= (hottest - coldest) / (options_.steps + 1);
        break;
      case AnnealingOptions::Cooling::kGeometric:
        temperature_ *= std::pow(std::max(coldest / hottest, 0.01), 1.0 / options_.steps);
        break;
      case AnnealingOptions::Cooling::kAdaptive:  // many accepted: colder; few: warmer
        temperature_ *= accepted > options_.accepted ? 0.9 : 1.05;
        break;
    }
    temperature_ = std::clamp(temperature_, coldest, hottest);
  }

 private:
  const AnnealingOptions& options_;
  double temperature_;
};

// The best distinct unseen candidates that were offered.
class Top {
 public:
  explicit Top(size_t size) : size_(size) {}

  // True: it is among the best now.
  bool Offer(const Scored& candidate) {
    if (best_.size() >= size_ && candidate.score <= best_.back().score) return false;
    if (!programs_.insert(candidate.evaluation->program).second) return false;
    if (best_.size() >= size_) {
      programs_.erase(best_.back().evaluation->program);
      best_.pop_back();
    }
    const auto place = std::upper_bound(
        best_.begin(), best_.end(), candidate, [](const Scored& a, const Scored& b) {
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
      : HistorySearch({options.name, kVersion}, std::move(context)), options_(options) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(model, event));
    Rng rng(context().seed, event, /*purpose=*/6);
    uint64_t told = 0;
    for (const History::Entry& entry : history().entries()) told += entry.told;
    const uint64_t age = told - std::min(told, planned_at_);
    if (n > 0 && (LeftToPlan() == 0 || age >= static_cast<uint64_t>(options_.plan))) {
      HONE_RETURN_IF_ERROR(Plan(std::max(n, options_.plan), call, rng));
      planned_at_ = told;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<Scored> rest,
                          Score(absl::MakeConstSpan(plan_).subspan(taken_), call));
    BatchPicker picker(context(), history(), rest, n);
    UnseenSource source(&context(), &history(), &evaluator());
    picker.CoverUntried();
    HONE_RETURN_IF_ERROR(CoverByDraws(call, rng, source, picker));
    const auto random = static_cast<size_t>(options_.random * options_.plan);
    for (size_t i = 0; !picker.full() && plan_.size() - taken_ > random && i < rest.size(); ++i) {
      picker.Add(rest[i]);
      while (plan_[taken_] != rest[i].point) ++taken_;  // illegal ones are left out
      ++taken_;
    }
    if (plan_.size() - taken_ <= random) taken_ = plan_.size();  // draws end the plan
    HONE_RETURN_IF_ERROR(FillByDraws(call, rng, source, picker));
    return Commit(picker.batch(), call);
  }

 private:
  size_t LeftToPlan() const { return plan_.size() - taken_; }

  // Anneals and plans anew.
  absl::Status Plan(int size, Call& call, Rng& rng) {
    Top top(static_cast<size_t>(size * std::max(options_.diversity, 1.0)));
    const size_t chains = std::max(1, context().population / 4);
    if (chains_.size() != chains) chains_ = Drawn(chains, rng);
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> current, Score(chains_, call));
    Offer(current, top);
    Thermometer thermometer(options_);
    int restarts = options_.restarts;
    for (int step = 0, changed = 0; step < options_.steps && step < changed + options_.patience;
         ++step) {
      if (restarts > 0 && step >= changed + options_.patience / 2) {
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
    plan_ = Diverse(std::move(top).Take(), static_cast<size_t>(size));
    taken_ = 0;
    return absl::OkStatus();
  }

  // True: one of the unseen ones is among the best.
  bool Offer(absl::Span<const Scored> candidates, Top& top) {
    bool changed = false;
    for (const Scored& each : candidates) {
      if (!history().Knows(each.point) && !history().KnowsProgram(*each.evaluation))
        changed |= top.Offer(each);
    }
    return changed;
  }

  // In the order of `points`; one that is not legal becomes that of `instead`.
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

  // Over the spaces in turn.
  std::vector<Point> Drawn(size_t count, Rng& rng) {
    std::vector<Point> points;
    const size_t spaces = context().spaces.size(), first = rng.Below(spaces);
    for (size_t i = 0; i < count; ++i) {
      const size_t space = (first + i) % spaces;
      absl::StatusOr<std::vector<int64_t>> drawn = context().spaces[space]->Sample(rng);
      if (drawn.ok()) points.push_back({static_cast<int>(space), *std::move(drawn)});
    }
    return points;
  }

  // One decision drawn anew; the same point where a constraint forbids that.
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

  // Greedy: score plus what a candidate adds to the values that were chosen at each decision.
  std::vector<Point> Diverse(std::vector<Scored> best, size_t size) const {
    std::vector<Point> plan;
    absl::flat_hash_set<std::pair<std::pair<int, size_t>, int64_t>> values;
    const auto added = [&](const Point& point) {
      int count = 0;
      for (size_t i = 0; i < point.decisions.size(); ++i)
        count += !values.contains({{point.space, i}, point.decisions[i]});
      return count;
    };
    while (!best.empty() && plan.size() < size) {
      size_t pick = 0;
      if (options_.diversity > 1) {
        double highest = -1e300;
        for (size_t i = 0; i < best.size(); ++i) {
          const double gain = best[i].score + options_.diversity_weight * added(best[i].point);
          if (gain <= highest) continue;
          highest = gain;
          pick = i;
        }
      }
      plan.push_back(std::move(best[pick].point));
      best.erase(best.begin() + pick);
      for (size_t i = 0; i < plan.back().decisions.size(); ++i)
        values.insert({{plan.back().space, i}, plan.back().decisions[i]});
    }
    return plan;
  }

  void SaveMore(cost_model::ByteWriter& writer) const override {
    WritePoints(writer, chains_);
    WritePoints(writer, plan_);
    writer.AddU64(taken_);
    writer.AddU64(planned_at_);
  }
  absl::Status RestoreMore(cost_model::ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(std::vector<Point> chains, ReadPoints(reader, context()));
    HONE_ASSIGN_OR_RETURN(std::vector<Point> plan, ReadPoints(reader, context()));
    HONE_ASSIGN_OR_RETURN(const uint64_t taken, reader.U64());
    HONE_ASSIGN_OR_RETURN(const uint64_t planned_at, reader.U64());
    HONE_RETURN_IF_ERROR(CheckEnd(reader));
    if (taken > plan.size())
      return absl::InvalidArgumentError("the search state took more of its plan than there is");
    chains_ = std::move(chains);
    plan_ = std::move(plan);
    taken_ = taken;
    planned_at_ = planned_at;
    return absl::OkStatus();
  }

  const AnnealingOptions options_;
  std::vector<Point> chains_;
  std::vector<Point> plan_;  // best first
  size_t taken_ = 0;         // of it
  uint64_t planned_at_ = 0;  // results at that time
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeAnnealingSearch(SearchContext context,
                                                    const AnnealingOptions& options) {
  return std::make_unique<AnnealingSearch>(std::move(context), options);
}

}  // namespace hone::search
