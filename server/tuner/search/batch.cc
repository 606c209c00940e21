#include "server/tuner/search/batch.h"

#include <algorithm>
#include <utility>

namespace hone::search {

void SortByScore(std::vector<Scored>& candidates) {
  std::sort(candidates.begin(), candidates.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.key < b.key;
  });
}

BatchPicker::BatchPicker(const SearchContext& context, const History& history, int n)
    : context_(context), history_(history), n_(n), per_space_(context.spaces.size(), 0) {
  for (size_t s = 0; s < context.spaces.size(); ++s)
    any_untried_ |= history.IsUntried(static_cast<int>(s));
}

bool BatchPicker::IsNew(const Scored& candidate) const {
  return candidate.evaluation->legal && !history_.Knows(candidate.point) &&
         !history_.KnowsProgram(*candidate.evaluation) &&
         !programs_.contains(candidate.evaluation->program);
}

bool BatchPicker::Add(Scored candidate) {
  if (full() || !IsNew(candidate)) return false;
  programs_.insert(candidate.evaluation->program);
  ++per_space_[candidate.point.space];
  batch_.push_back(std::move(candidate));
  return true;
}

void BatchPicker::CoverUntried(absl::Span<const Scored> pool) {
  if (!any_untried_) return;
  const int limit = history_.entries().empty() ? n_ : (n_ + 1) / 2;
  for (const Scored& candidate : pool) {
    if (size() >= limit) return;
    if (history_.IsUntried(candidate.point.space) && !Covers(candidate.point.space)) Add(candidate);
  }
}

void BatchPicker::PickBest(absl::Span<const Scored> pool, int size) {
  const int cap = any_untried_ && context_.spaces.size() > 1 ? std::max(1, n_ / 2) : n_;
  for (const Scored& candidate : pool) {
    if (this->size() >= size) return;
    if (per_space_[candidate.point.space] < cap) Add(candidate);
  }
}

void BatchPicker::Sort() { SortByScore(batch_); }

}  // namespace hone::search
