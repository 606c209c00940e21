#include "server/tuner/search/history_search.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"

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

void SortByScore(std::vector<Scored>& candidates) {
  absl::c_sort(candidates, [](const Scored& a, const Scored& b) {
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

HistorySearch::HistorySearch(absl::string_view name, SearchContext context, bool draft)
    : name_(name),
      evaluator_(context.evaluator != nullptr
                     ? std::move(context.evaluator)
                     : std::make_shared<Evaluator>(std::move(context), draft)),
      history_(&this->context()) {}

absl::StatusOr<HistorySearch::Call> HistorySearch::Begin(int n, uint64_t event,
                                                         const cost_model::CostModel* model,
                                                         uint64_t purpose) {
  HONE_RETURN_IF_ERROR(evaluator_->UseFeaturesOf(model));
  HONE_RETURN_IF_ERROR(history_.Refresh(*evaluator_));
  return Call{.model = model,
              .event = event,
              .ranking = Ranking::Of(context(), history_, evaluator_->has_draft()),
              .rng = Rng(context().seed, event, purpose),
              .source = UnseenSource(&context(), &history_, evaluator_.get()),
              .picker = BatchPicker(context(), history_, n)};
}

absl::StatusOr<std::vector<Scored>> HistorySearch::Score(absl::Span<const Point> points,
                                                         Call& call) {
  HONE_ASSIGN_OR_RETURN(const std::vector<EvaluationPtr> evaluations, evaluator_->Evaluate(points));
  HONE_ASSIGN_OR_RETURN(const std::vector<double> predictions,
                        evaluator_->Predict(evaluations, call.model));
  for (const double prediction : predictions) call.learnt |= prediction != 0;
  std::vector<Scored> scored;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!evaluations[i]->legal) continue;
    const Digest key = KeyOf(context(), points[i]);
    const History::Entry* known = history_.Find(key);
    const double draft = call.ranking.DraftScore(points[i].space, evaluations[i]->draft);
    const double score = known != nullptr && known->told
                             ? call.ranking.MeasuredScore(*known)
                             : call.ranking.Score(draft, predictions[i], call.learnt);
    scored.push_back({points[i], key, evaluations[i], predictions[i], score});
  }
  return scored;
}

absl::StatusOr<bool> HistorySearch::Add(const Point& point, Call& call) {
  HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored, Score(absl::MakeConstSpan(&point, 1), call));
  return !scored.empty() && call.picker.Add(std::move(scored[0]));
}

absl::Status HistorySearch::CoverByDraws(Call& call) {
  for (size_t s = 0; s < context().spaces.size(); ++s) {
    const int space = static_cast<int>(s);
    if (call.picker.full() || !history_.IsUntried(space) || call.picker.Covers(space)) continue;
    HONE_RETURN_IF_ERROR(AddDrawn(call.source.Draw(space, call.rng), call).status());
  }
  return absl::OkStatus();
}

absl::Status HistorySearch::FillByDraws(Call& call) {
  for (const Scored& picked : call.picker.batch()) call.source.Skip(picked.evaluation->program);
  while (!call.picker.full()) {
    HONE_ASSIGN_OR_RETURN(const bool more, AddDrawn(call.source.DrawAny(call.rng), call));
    if (!more) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> HistorySearch::AddDrawn(std::optional<Unseen> drawn, Call& call) {
  if (!drawn.has_value()) return false;
  call.source.Skip(drawn->evaluation->program);
  HONE_RETURN_IF_ERROR(Add(drawn->point, call).status());
  return true;
}

std::vector<record::Candidate> HistorySearch::Commit(Call& call) {
  std::vector<record::Candidate> candidates;
  for (Scored& each : call.picker.batch()) {
    candidates.push_back(CandidateOf(context(), each.point));
    history_.AddProposal(std::move(each.point), std::move(each.evaluation), call.event, call.learnt,
                         each.prediction);
  }
  return candidates;
}

bool HistorySearch::Sample(int space, Rng& rng, std::vector<Point>& points) const {
  absl::StatusOr<std::vector<int64_t>> drawn = context().spaces[space]->Sample(rng);
  if (drawn.ok()) points.push_back({space, *std::move(drawn)});
  return drawn.ok();
}

}  // namespace hone::search
