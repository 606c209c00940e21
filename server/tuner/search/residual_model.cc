#include "server/tuner/search/residual_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/host_share.h"

namespace hone::search {
namespace {

using cost_model::GaussianProcess;
using cost_model::Kernel;
using cost_model::KernelInput;

constexpr double kLowestScore = 0.01;  // lower scores are raised to it; the best result has score 1
constexpr double kSlopeEvidence = 1;   // prior sum of squares of log estimates, with slope 1
constexpr double kOffsetShrinkage = 2;  // number of results at which an offset is halved
constexpr int kFewResults = 8;          // results of all spaces that are needed to fit the kernel
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

}  // namespace

KernelInput EmbedDecisions(const space::DesignSpace& space, absl::Span<const int64_t> decisions) {
  KernelInput input;
  const absl::StatusOr<std::vector<schedule::Site>> sites = space.Sites(decisions);
  if (!sites.ok()) return input;
  for (const schedule::Site& site : *sites) {
    const absl::Span<const int64_t> values = decisions.subspan(site.begin, site.count);
    bool numbers = true;
    if (site.kind == schedule::Site::Kind::kChoice) {
      input.choices.push_back(site.RowOf(values));
      numbers = *std::min_element(site.rows.begin(), site.rows.end()) > 0;
    }
    for (const int64_t value : values)
      input.numbers.push_back(numbers ? std::log2(static_cast<double>(value)) : 0);
  }
  return input;
}

ResidualModel ResidualModel::Of(const SearchContext& context, const History& history,
                                const Ranking& ranking, int fitted, double deviation) {
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
    chosen.push_back(Chosen(observed[s], static_cast<size_t>(fitted)));
  }
  const auto residual = [&](size_t space, size_t i) {
    const Observation& each = observed[space][i];
    return each.value - model.slope_ * each.estimate - model.offsets_[space];
  };
  Kernel kernel{.deviation = deviation, .length = 4, .hamming = 1};
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

}  // namespace hone::search
