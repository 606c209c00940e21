#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/site_values.h"
#include "server/tuner/search/strategies.h"

namespace hone::search {
namespace {

constexpr int kStarts = 32;            // draws from an untried space; the best one is a start
constexpr size_t kCombinedHops = 512;  // maximum number of hops of two decisions
constexpr int kMostSteps = 8;          // maximum number of steps of a hop
constexpr size_t kIncumbents = 16;     // best candidates whose neighbours a batch may use
constexpr double kPValue = 0.05;       // maximum p-value for a faster candidate to be the incumbent
// Assumed relative standard deviation of a latency sample, and assumed number of samples per
// latency. A strategy is told one latency per candidate, without its samples.
constexpr double kNoise = 0.01;
constexpr int kSamples = 3;

class DropletSearch final : public HistorySearch {
 public:
  DropletSearch(SearchContext context, bool draft)
      : HistorySearch("droplet", std::move(context), draft) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/5));
    HONE_ASSIGN_OR_RETURN(const std::vector<Scored> starts, Starts(call));
    call.picker.CoverUntried(starts);
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    for (const Point& incumbent : Incumbents()) {
      if (call.picker.full()) break;
      HONE_RETURN_IF_ERROR(AddNeighbours(incumbent, call));
    }
    if (history().Best(1).empty()) call.picker.PickBest(starts, n);
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    return Commit(call);
  }

 private:
  // Returns draws from untried spaces, or from all spaces before the first successful result, best
  // first.
  absl::StatusOr<std::vector<Scored>> Starts(Call& call) {
    const bool any = history().Best(1).empty();
    std::vector<Point> points;
    for (size_t s = 0; s < context().spaces.size(); ++s) {
      const int space = static_cast<int>(s);
      if (!any && !history().IsUntried(space)) continue;
      const int draws = context().spaces[s]->decision_count() == 0 ? 1 : kStarts;
      for (int i = 0; i < draws; ++i) Sample(space, call.rng, points);
    }
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> starts, Score(points, call));
    SortByScore(starts);
    return starts;
  }

  // Whether `faster_ns` is significantly lower than `slower_ns`, by a two-sided test of the log
  // latencies.
  static bool IsSignificant(double faster_ns, double slower_ns) {
    const double deviation = kNoise * std::sqrt(2.0 / kSamples);
    const double z = std::log(slower_ns / faster_ns) / deviation;
    return z > 0 && std::erfc(z / std::sqrt(2.0)) <= kPValue;
  }

  // Returns the incumbent of the descent, followed by the other best candidates, best first.
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

  // Adds groups of neighbours in this order: single hops, hops of two decisions, single hops of
  // more steps.
  absl::Status AddNeighbours(const Point& incumbent, Call& call) {
    const space::DesignSpace& space = *context().spaces[incumbent.space];
    const std::vector<std::vector<int64_t>> single = Hops(space, incumbent.decisions, /*step=*/1);
    HONE_RETURN_IF_ERROR(AddGroup(incumbent.space, single, call));
    absl::flat_hash_set<std::vector<int64_t>> seen(single.begin(), single.end());
    seen.insert(incumbent.decisions);
    if (call.picker.full()) return absl::OkStatus();
    std::vector<std::vector<int64_t>> combined;
    for (const std::vector<int64_t>& hop : single) {
      if (combined.size() >= kCombinedHops) break;
      for (std::vector<int64_t>& next : Hops(space, hop, /*step=*/1)) {
        if (seen.insert(next).second) combined.push_back(std::move(next));
      }
    }
    HONE_RETURN_IF_ERROR(AddGroup(incumbent.space, combined, call));
    for (int step = 2; step <= kMostSteps && !call.picker.full(); ++step) {
      HONE_RETURN_IF_ERROR(AddGroup(incumbent.space, Hops(space, incumbent.decisions, step), call));
    }
    return absl::OkStatus();
  }

  // Keeps at most `population` neighbours in a space of many parts, evenly. There are hundreds of
  // them, and replaying one takes long.
  void Thin(const space::DesignSpace& space, std::vector<Point>& points) const {
    const auto most = static_cast<size_t>(context().population);
    if (space.part_count() == 1 || points.size() <= most) return;
    std::vector<Point> kept;
    for (size_t i = 0; i < most; ++i) kept.push_back(std::move(points[i * points.size() / most]));
    points = std::move(kept);
  }

  // Adds the new candidates of a group, best first.
  absl::Status AddGroup(int space, const std::vector<std::vector<int64_t>>& group, Call& call) {
    std::vector<Point> points;
    for (const std::vector<int64_t>& decisions : group) {
      if (Point point{space, decisions}; !history().Knows(point)) points.push_back(point);
    }
    Thin(*context().spaces[space], points);
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored, Score(points, call));
    SortByScore(scored);
    for (Scored& each : scored) call.picker.Add(std::move(each));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeDropletSearch(SearchContext context, bool draft) {
  return std::make_unique<DropletSearch>(std::move(context), draft);
}

}  // namespace hone::search
