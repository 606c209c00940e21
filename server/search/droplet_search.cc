#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/cost_model/models.h"
#include "server/search/droplet_search.h"
#include "server/search/history_search.h"
#include "server/search/site_values.h"

namespace hone::search {
namespace {

constexpr StateHeader kState = {"droplet", 1};
constexpr int kStarts = 32;         // draws of an untried space, of which the best is a start
constexpr size_t kCombined = 512;   // combined hops of a group
constexpr size_t kIncumbents = 16;  // best candidates whose neighbours a batch may use

class DropletSearch final : public HistorySearch {
 public:
  DropletSearch(SearchContext context, const DropletOptions& options)
      : HistorySearch(kState, std::move(context),
                      options.draft ? cost_model::MakeModel(cost_model::kAnalyticModel) : nullptr),
        options_(options) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(model, event));
    Rng rng(context().seed, event, /*purpose=*/5);
    UnseenSource source(&context(), &history(), &evaluator());
    HONE_ASSIGN_OR_RETURN(const std::vector<Scored> starts, Starts(call, rng));
    BatchPicker picker(context(), history(), starts, n);
    picker.CoverUntried();
    HONE_RETURN_IF_ERROR(CoverByDraws(call, rng, source, picker));
    for (const Point& incumbent : Incumbents()) {
      if (picker.full()) break;
      HONE_RETURN_IF_ERROR(AddNeighbours(incumbent, call, picker));
    }
    if (history().Best(1).empty()) picker.PickBest(n);  // nothing to descend from yet
    HONE_RETURN_IF_ERROR(FillByDraws(call, rng, source, picker));
    return Commit(picker.batch(), call);
  }

 private:
  // Candidates of untried spaces, and of all of them before the first result; best first.
  absl::StatusOr<std::vector<Scored>> Starts(Call& call, Rng& rng) {
    const bool any = history().Best(1).empty();
    std::vector<Point> points;
    for (size_t s = 0; s < context().spaces.size(); ++s) {
      const int space = static_cast<int>(s);
      if (!any && !history().IsUntried(space)) continue;
      const int draws = context().spaces[s]->decision_count() == 0 ? 1 : kStarts;
      for (int i = 0; i < draws; ++i) {
        absl::StatusOr<std::vector<int64_t>> drawn = context().spaces[s]->Sample(rng);
        if (drawn.ok()) points.push_back({space, *std::move(drawn)});
      }
    }
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> starts, Score(points, call));
    SortByScore(starts);
    return starts;
  }

  // Whether `faster` beats `slower` by more than noise: a two-sided test of their log latencies.
  bool IsSignificant(double faster_ns, double slower_ns) const {
    const double deviation = options_.noise * std::sqrt(2.0 / options_.samples);
    const double z = std::log(slower_ns / faster_ns) / deviation;
    return z > 0 && std::erfc(z / std::sqrt(2.0)) <= options_.p_value;
  }

  // The incumbent of the descent, then the best others in their order.
  std::vector<Point> Incumbents() {
    const History::Entry* incumbent = nullptr;
    for (const History::Entry& entry : history().entries()) {
      if (!entry.told || !entry.ok) continue;
      if (incumbent == nullptr || IsSignificant(entry.latency_ns, incumbent->latency_ns))
        incumbent = &entry;
    }
    std::vector<Point> points;
    if (incumbent != nullptr) points.push_back(incumbent->point);
    for (const History::Entry* best : history().Best(kIncumbents)) {
      if (best != incumbent) points.push_back(best->point);
    }
    return points;
  }

  // One group after the other: single hops, combined ones, single hops of more steps.
  absl::Status AddNeighbours(const Point& incumbent, Call& call, BatchPicker& picker) {
    const space::DesignSpace& space = *context().spaces[incumbent.space];
    std::vector<std::vector<int64_t>> group = Hops(space, incumbent.decisions, /*step=*/1);
    HONE_RETURN_IF_ERROR(AddGroup(incumbent.space, group, call, picker));
    absl::flat_hash_set<std::vector<int64_t>> seen(group.begin(), group.end());
    seen.insert(incumbent.decisions);
    for (int moved = 2; moved <= options_.combined && !picker.full(); ++moved) {
      std::vector<std::vector<int64_t>> combined;
      for (const std::vector<int64_t>& hop : group) {
        if (combined.size() >= kCombined) break;
        for (std::vector<int64_t>& next : Hops(space, hop, /*step=*/1)) {
          if (seen.insert(next).second) combined.push_back(std::move(next));
        }
      }
      group = std::move(combined);
      HONE_RETURN_IF_ERROR(AddGroup(incumbent.space, group, call, picker));
    }
    for (int step = 2; step <= options_.most_steps && !picker.full(); ++step) {
      HONE_RETURN_IF_ERROR(
          AddGroup(incumbent.space, Hops(space, incumbent.decisions, step), call, picker));
    }
    return absl::OkStatus();
  }

  // The new ones, best first.
  absl::Status AddGroup(int space, const std::vector<std::vector<int64_t>>& group, Call& call,
                        BatchPicker& picker) {
    std::vector<Point> points;
    for (const std::vector<int64_t>& decisions : group) {
      if (Point point{space, decisions}; !history().Knows(point)) points.push_back(point);
    }
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored, Score(points, call));
    SortByScore(scored);
    for (Scored& each : scored) picker.Add(std::move(each));
    return absl::OkStatus();
  }

  const DropletOptions options_;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeDropletSearch(SearchContext context,
                                                  const DropletOptions& options) {
  return std::make_unique<DropletSearch>(std::move(context), options);
}

}  // namespace hone::search
