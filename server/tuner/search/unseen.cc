#include "server/tuner/search/unseen.h"

#include <utility>

namespace hone::search {
namespace {

// If one candidate in a hundred is unseen, the probability that all draws miss it is 1 in 170.
constexpr int kTries = 512;

}  // namespace

std::optional<Unseen> UnseenSource::Draw(int space, Rng& rng) {
  if (exhausted_[space]) return std::nullopt;
  const int tries = context_->spaces[space]->decision_count() == 0 ? 1 : kTries;
  for (int attempt = 0; attempt < tries; ++attempt) {
    absl::StatusOr<std::vector<int64_t>> drawn = context_->spaces[space]->Sample(rng);
    if (!drawn.ok()) continue;
    Point point{space, *std::move(drawn)};
    if (history_->Knows(point)) continue;
    const auto evaluated = evaluator_->Evaluate(absl::MakeConstSpan(&point, 1));
    if (!evaluated.ok()) break;  // the search is being stopped
    EvaluationPtr evaluation = (*evaluated)[0];
    if (!evaluation->legal || history_->KnowsProgram(*evaluation) ||
        skipped_.contains(evaluation->program))
      continue;
    return Unseen{std::move(point), std::move(evaluation)};
  }
  exhausted_[space] = true;
  return std::nullopt;
}

std::optional<Unseen> UnseenSource::DrawAny(Rng& rng) {
  while (true) {
    std::vector<int> open;
    for (size_t s = 0; s < exhausted_.size(); ++s) {
      if (!exhausted_[s]) open.push_back(static_cast<int>(s));
    }
    if (open.empty()) return std::nullopt;
    if (std::optional<Unseen> drawn = Draw(open[rng.Below(open.size())], rng)) return drawn;
  }
}

}  // namespace hone::search
