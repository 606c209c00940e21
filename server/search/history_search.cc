#include "server/search/history_search.h"

#include <utility>

#include "common/base/status_macros.h"

namespace hone::search {

HistorySearch::HistorySearch(StateHeader header, SearchContext context,
                             std::unique_ptr<const cost_model::CostModel> draft)
    : header_(header),
      context_(std::move(context)),
      draft_(std::move(draft)),
      history_(&context_),
      evaluator_(&context_, draft_.get()) {}

std::string HistorySearch::Save() const {
  cost_model::ByteWriter writer;
  history_.Save(writer);
  SaveMore(writer);
  return EncodeState(header_, std::move(writer).Finish());
}

absl::Status HistorySearch::Restore(absl::string_view state) {
  HONE_ASSIGN_OR_RETURN(const absl::string_view payload, DecodeState(header_, state));
  History restored(&context_);
  cost_model::ByteReader reader(payload);
  HONE_RETURN_IF_ERROR(restored.Restore(reader));
  HONE_RETURN_IF_ERROR(RestoreMore(reader));
  history_ = std::move(restored);
  return absl::OkStatus();
}

absl::StatusOr<HistorySearch::Call> HistorySearch::Begin(const cost_model::CostModel* model,
                                                         uint64_t event) {
  HONE_RETURN_IF_ERROR(evaluator_.UseFeaturesOf(model));
  history_.Refresh(evaluator_);
  return Call{.model = model,
              .event = event,
              .ranking = Ranking::Of(context_, history_, draft_ != nullptr)};
}

absl::StatusOr<std::vector<Scored>> HistorySearch::Score(absl::Span<const Point> points,
                                                         Call& call) {
  const std::vector<EvaluationPtr> evaluations = evaluator_.Evaluate(points);
  HONE_ASSIGN_OR_RETURN(const std::vector<double> predictions,
                        evaluator_.Predict(evaluations, call.model));
  for (const double prediction : predictions) call.learnt |= prediction != 0;
  std::vector<Scored> scored;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!evaluations[i]->legal) continue;
    const Digest key = KeyOf(context_, points[i]);
    const History::Entry* known = history_.Find(key);
    const double draft = call.ranking.DraftScore(points[i].space, evaluations[i]->draft);
    const double score = known != nullptr && known->told
                             ? call.ranking.MeasuredScore(*known)
                             : call.ranking.Score(draft, predictions[i], call.learnt);
    scored.push_back({points[i], key, evaluations[i], predictions[i], score});
  }
  return scored;
}

absl::Status HistorySearch::CoverByDraws(Call& call, Rng& rng, UnseenSource& source,
                                         BatchPicker& picker) {
  for (size_t s = 0; s < context_.spaces.size(); ++s) {
    const int space = static_cast<int>(s);
    if (picker.full() || !history_.IsUntried(space) || picker.Covers(space)) continue;
    HONE_RETURN_IF_ERROR(AddDrawn(source.Draw(space, rng), call, source, picker).status());
  }
  return absl::OkStatus();
}

absl::Status HistorySearch::FillByDraws(Call& call, Rng& rng, UnseenSource& source,
                                        BatchPicker& picker) {
  for (const Scored& picked : picker.batch()) source.Skip(picked.evaluation->program);
  while (!picker.full()) {
    HONE_ASSIGN_OR_RETURN(const bool more, AddDrawn(source.DrawAny(rng), call, source, picker));
    if (!more) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> HistorySearch::AddDrawn(std::optional<Unseen> drawn, Call& call,
                                             UnseenSource& source, BatchPicker& picker) {
  if (!drawn.has_value()) return false;
  source.Skip(drawn->evaluation->program);
  HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored,
                        Score(absl::MakeConstSpan(&drawn->point, 1), call));
  picker.Add(std::move(scored[0]));
  return true;
}

std::vector<record::Candidate> HistorySearch::Commit(std::vector<Scored> batch, const Call& call) {
  std::vector<record::Candidate> candidates;
  for (Scored& each : batch) {
    candidates.push_back(CandidateOf(context_, each.point));
    history_.AddProposal(std::move(each.point), std::move(each.evaluation), call.event, call.learnt,
                         each.prediction);
  }
  return candidates;
}

void WritePoints(cost_model::ByteWriter& writer, absl::Span<const Point> points) {
  writer.AddU64(points.size());
  for (const Point& point : points) WritePoint(writer, point);
}

absl::StatusOr<std::vector<Point>> ReadPoints(cost_model::ByteReader& reader,
                                              const SearchContext& context) {
  HONE_ASSIGN_OR_RETURN(const uint64_t count, reader.U64());
  std::vector<Point> points;
  for (uint64_t i = 0; i < count; ++i) {
    HONE_ASSIGN_OR_RETURN(points.emplace_back(), ReadPoint(reader, context));
  }
  return points;
}

}  // namespace hone::search
