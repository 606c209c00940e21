#include "server/tuner/search/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::search {
namespace {

// Results that a space needs for its own factor to weigh as much as the factor of all spaces.
constexpr double kShrinkage = 4;
constexpr size_t kWindow = 128;  // latest predicted results that determine the model's weight
constexpr double kClearlyApart = 0.05;  // in log latency; the order of closer pairs is noise
// Prior of the pairwise accuracy of the model and of the draft, and the number of pairs that the
// prior is worth.
constexpr double kPriorPairs = 40, kPriorModel = 0.6, kPriorDraft = 0.7;
constexpr double kHighestScore = 2;  // limit of the draft's score; the best result has score 1

// Counts how often a predictor orders pairs in the same way as their latencies.
struct Accuracy {
  double right = 0, pairs = 0;
  void Add(double better_score, double worse_score) {
    right += better_score > worse_score ? 1 : better_score == worse_score ? 0.5 : 0;
    ++pairs;
  }
  // How much better the accuracy is than guessing, with a prior.
  double Edge(double prior) const {
    const double accuracy = (prior * kPriorPairs + right) / (kPriorPairs + pairs);
    return std::max(accuracy - 0.5, 0.02);
  }
};

double LatencyOrInfinity(const History::Entry& entry) {
  return entry.ok ? entry.latency_ns : std::numeric_limits<double>::infinity();
}

}  // namespace

Ranking Ranking::Of(const SearchContext& context, const History& history, bool has_draft) {
  Ranking ranking;
  ranking.has_draft_ = has_draft;
  const size_t spaces = context.spaces.size();
  std::vector<double> sum(spaces, 0), count(spaces, 0);
  double total = 0, results = 0, best = std::numeric_limits<double>::infinity();
  for (const History::Entry& entry : history.entries()) {
    if (!entry.ok || entry.evaluation == nullptr || !entry.evaluation->legal) continue;
    const double residual = std::log(entry.latency_ns * entry.evaluation->draft);
    sum[entry.point.space] += residual;
    ++count[entry.point.space];
    total += residual;
    ++results;
    best = std::min(best, entry.latency_ns);
  }
  const double mean = results > 0 ? total / results : 0;
  ranking.calibrated_ = results > 0;
  if (results > 0) ranking.best_latency_ns_ = best;
  for (size_t s = 0; s < spaces; ++s) {
    ranking.ns_per_cycle_.push_back(
        std::exp((sum[s] + kShrinkage * mean) / (count[s] + kShrinkage)));
  }

  std::vector<const History::Entry*> ranked;
  for (const History::Entry& entry : history.entries()) {
    if (entry.predicted && entry.told && entry.evaluation != nullptr && entry.evaluation->legal)
      ranked.push_back(&entry);
  }
  if (ranked.size() > kWindow) ranked.erase(ranked.begin(), ranked.end() - kWindow);
  Accuracy model, draft;
  for (size_t i = 0; i < ranked.size(); ++i) {
    for (size_t j = i + 1; j < ranked.size() && ranked[j]->event == ranked[i]->event; ++j) {
      const History::Entry *better = ranked[i], *worse = ranked[j];
      if (LatencyOrInfinity(*better) > LatencyOrInfinity(*worse)) std::swap(better, worse);
      if (!better->ok || std::log(LatencyOrInfinity(*worse) / better->latency_ns) < kClearlyApart)
        continue;
      model.Add(better->prediction, worse->prediction);
      draft.Add(ranking.DraftScore(better->point.space, better->evaluation->draft),
                ranking.DraftScore(worse->point.space, worse->evaluation->draft));
    }
  }
  if (!has_draft) {
    ranking.model_weight_ = 1;
    return ranking;
  }
  const double model_edge = model.Edge(kPriorModel), draft_edge = draft.Edge(kPriorDraft);
  ranking.model_weight_ =
      model_edge * model_edge / (model_edge * model_edge + draft_edge * draft_edge);
  return ranking;
}

double Ranking::DraftScore(int space, double draft) const {
  const double score = best_latency_ns_ * draft / ns_per_cycle_[space];
  return calibrated_ ? std::min(score, kHighestScore) : score;
}

}  // namespace hone::search
