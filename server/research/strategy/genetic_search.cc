#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/random_draw.h"
#include "server/tuner/search/site_values.h"

namespace hone::search {
namespace {

using schedule::Site;

// Parameters of AutoTVM's GATuner.
constexpr size_t kPopulation = 100;  // size of a generation; every member is measured
constexpr int kElites = 3;           // best candidates that remain parents
constexpr double kMutation = 0.1;    // probability that a child's site is redrawn
constexpr int kMutations = 64;       // mutations of a known child before a draw replaces it

class GeneticSearch final : public HistorySearch {
 public:
  explicit GeneticSearch(SearchContext context) : HistorySearch("genetic", std::move(context)) {}

  absl::StatusOr<std::vector<record::Candidate>> Propose(int n, uint64_t event,
                                                         const cost_model::CostModel*) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, /*model=*/nullptr, /*purpose=*/4));
    BatchPicker& picker = call.picker;
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    for (const Scored& covering : picker.batch()) generation_.push_back(covering.point);
    proposed_ += picker.batch().size();
    int size_when_bred = -1;
    while (!picker.full()) {
      // If no child has a new program, the next generation would most likely have none either.
      if (proposed_ >= generation_.size() && generation_.size() >= kPopulation &&
          picker.size() > size_when_bred) {
        size_when_bred = picker.size();
        Breed(call.rng);
      }
      if (proposed_ < generation_.size()) {
        HONE_RETURN_IF_ERROR(Add(generation_[proposed_++], call).status());
        continue;
      }
      // Draws members of the first generation, and replaces children that were known.
      const int before = picker.size();
      for (const Scored& picked : picker.batch()) call.source.Skip(picked.evaluation->program);
      HONE_RETURN_IF_ERROR(AddDrawn(call.source.DrawAny(call.rng), call).status());
      if (picker.size() == before) break;
      generation_.push_back(picker.batch().back().point);
      proposed_ = generation_.size();
    }
    return Commit(call);
  }

 private:
  // Makes the next generation from the measured members of this generation and the best results.
  void Breed(Rng& rng) {
    std::vector<const History::Entry*> parents;
    absl::flat_hash_set<const History::Entry*> seen;
    for (const Point& point : generation_) {
      const History::Entry* entry = history().Find(KeyOf(context(), point));
      if (entry != nullptr && entry->told && seen.insert(entry).second) parents.push_back(entry);
    }
    const std::vector<const History::Entry*> best = history().Best(kElites);
    for (const History::Entry* elite : best) {
      if (seen.insert(elite).second) parents.push_back(elite);
    }
    generation_.clear();
    proposed_ = 0;
    if (best.empty()) return;
    std::vector<double> fitness;
    for (const History::Entry* parent : parents)
      fitness.push_back(parent->ok ? best[0]->latency_ns / parent->latency_ns : 0);
    const Roulette roulette(fitness);
    absl::flat_hash_set<Digest> children;
    for (size_t c = 0; c < kPopulation; ++c) {
      const Point& first = parents[roulette.Spin(rng)]->point;
      const Point* second = &first;
      for (int attempt = 0; attempt < 8 && (second == &first || second->space != first.space);
           ++attempt) {
        second = &parents[roulette.Spin(rng)]->point;
      }
      Point child = first;
      if (second->space == first.space) child = Cross(first, *second, rng);
      child = Mutated(child, kMutation, rng);
      for (int m = 0; m < kMutations && IsKnown(child, children); ++m) {
        child = Mutated(child, /*share=*/0, rng);
      }
      if (IsKnown(child, children)) continue;
      children.insert(KeyOf(context(), child));
      generation_.push_back(std::move(child));
    }
  }

  bool IsKnown(const Point& point, const absl::flat_hash_set<Digest>& children) {
    return history().Knows(point) || children.contains(KeyOf(context(), point));
  }

  Point Cross(const Point& first, const Point& second, Rng& rng) {
    const space::DesignSpace& space = *context().spaces[first.space];
    const absl::StatusOr<std::vector<Site>> sites = space.Sites(first.decisions);
    if (!sites.ok() || sites->empty()) return first;
    const int begin = (*sites)[rng.Below(sites->size())].begin;
    std::vector<int64_t> child = first.decisions;
    std::copy(second.decisions.begin() + begin, second.decisions.end(), child.begin() + begin);
    absl::StatusOr<std::vector<int64_t>> fitted = Fit(space, child, rng);
    return fitted.ok() ? Point{first.space, *std::move(fitted)} : first;
  }

  // Redraws each site with probability `share`, or exactly one site if `share` is 0.
  Point Mutated(const Point& point, double share, Rng& rng) {
    const space::DesignSpace& space = *context().spaces[point.space];
    const absl::StatusOr<std::vector<Site>> sites = space.Sites(point.decisions);
    if (!sites.ok() || sites->empty()) return point;
    const size_t one = share > 0 ? sites->size() : rng.Below(sites->size());
    std::vector<int64_t> wanted = point.decisions;
    for (size_t i = 0; i < sites->size(); ++i) {
      if (i != one && rng.Uniform() >= share) continue;
      (*sites)[i].Sample(rng, absl::MakeSpan(wanted).subspan((*sites)[i].begin, (*sites)[i].count));
    }
    absl::StatusOr<std::vector<int64_t>> fitted = Fit(space, wanted, rng);
    return fitted.ok() ? Point{point.space, *std::move(fitted)} : point;
  }

  std::vector<Point> generation_;  // the first generation grows while it is drawn
  size_t proposed_ = 0;            // number of members that were proposed
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeGeneticSearch(SearchContext context) {
  return std::make_unique<GeneticSearch>(std::move(context));
}

}  // namespace hone::search
