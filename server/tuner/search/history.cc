#include "server/tuner/search/history.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"

namespace hone::search {

History::History(const SearchContext* context)
    : context_(context), tried_(context->spaces.size(), 0) {
  for (size_t s = 0; s < context->spaces.size(); ++s)
    spaces_.emplace(context->spaces[s]->digest(), static_cast<int>(s));
}

History::Entry& History::At(const Point& point) {
  const auto [found, fresh] = index_.emplace(KeyOf(*context_, point), entries_.size());
  if (fresh) {
    entries_.push_back({.point = point});
    ++tried_[point.space];
  }
  return entries_[found->second];
}

void History::Tell(absl::Span<const Measured> results) {
  for (const Measured& result : results) {
    const auto space = spaces_.find(result.candidate.space_digest);
    if (space == spaces_.end()) continue;
    const Point point{space->second, result.candidate.decisions};
    if (!index_.contains(KeyOf(*context_, point)) &&
        !context_->spaces[point.space]->Sites(point.decisions).ok())
      continue;
    Entry& entry = At(point);
    entry.told = true;
    entry.ok = result.outcome == record::Outcome::kOk && std::isfinite(result.latency_ns) &&
               result.latency_ns > 0;
    entry.latency_ns = entry.ok ? result.latency_ns : 0;
  }
}

absl::Status History::Refresh(Evaluator& evaluator) {
  std::vector<Point> points;
  std::vector<size_t> at;
  for (size_t i = fresh_; i < entries_.size(); ++i) {
    if (entries_[i].evaluation != nullptr) continue;
    points.push_back(entries_[i].point);
    at.push_back(i);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<EvaluationPtr> evaluations, evaluator.Evaluate(points));
  for (size_t i = 0; i < at.size(); ++i) {
    entries_[at[i]].evaluation = evaluations[i];
    if (evaluations[i]->legal) programs_.insert(evaluations[i]->program);
  }
  fresh_ = entries_.size();
  return absl::OkStatus();
}

void History::AddProposal(Point point, EvaluationPtr evaluation, uint64_t event, bool predicted,
                          double prediction) {
  programs_.insert(evaluation->program);
  Entry& entry = At(point);
  entry.event = event;
  entry.predicted = predicted;
  entry.prediction = prediction;
  entry.evaluation = std::move(evaluation);
}

std::vector<const History::Entry*> History::Best(size_t limit) const {
  std::vector<const Entry*> best;
  for (const Entry& entry : entries_) {
    if (entry.told && entry.ok) best.push_back(&entry);
  }
  absl::c_stable_sort(best,
                      [](const Entry* a, const Entry* b) { return a->latency_ns < b->latency_ns; });
  if (best.size() > limit) best.resize(limit);
  return best;
}

}  // namespace hone::search
