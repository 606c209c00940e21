#include "server/tuner/search/history.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"

namespace hone::search {

void WritePoint(cost_model::ByteWriter& writer, const Point& point) {
  writer.Add(point.space, static_cast<uint32_t>(point.decisions.size()));
  for (const int64_t decision : point.decisions) writer.Add(decision);
}

void WritePoints(cost_model::ByteWriter& writer, absl::Span<const Point> points) {
  writer.Add<uint64_t>(points.size());
  for (const Point& point : points) WritePoint(writer, point);
}

absl::StatusOr<Point> ReadPoint(cost_model::ByteReader& reader, const SearchContext& context) {
  Point point;
  int32_t decisions = 0;
  HONE_RETURN_IF_ERROR(reader.Read(point.space, decisions));
  if (point.space < 0 || point.space >= static_cast<int>(context.spaces.size()) ||
      decisions != context.spaces[point.space]->decision_count()) {
    return absl::InvalidArgumentError(
        "a candidate of the search state does not fit the design spaces");
  }
  point.decisions.resize(decisions);
  for (int64_t& decision : point.decisions) HONE_RETURN_IF_ERROR(reader.Read(decision));
  return point;
}

absl::StatusOr<std::vector<Point>> ReadPoints(cost_model::ByteReader& reader,
                                              const SearchContext& context) {
  HONE_ASSIGN_OR_RETURN(const uint64_t count, reader.Read<uint64_t>());
  std::vector<Point> points;
  for (uint64_t i = 0; i < count; ++i) {
    HONE_ASSIGN_OR_RETURN(points.emplace_back(), ReadPoint(reader, context));
  }
  return points;
}

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
  entry.proposed = true;
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
  std::stable_sort(best.begin(), best.end(),
                   [](const Entry* a, const Entry* b) { return a->latency_ns < b->latency_ns; });
  if (best.size() > limit) best.resize(limit);
  return best;
}

void History::Save(cost_model::ByteWriter& writer) const {
  writer.Add<uint32_t>(context_->spaces.size());
  for (const space::DesignSpace* space : context_->spaces) writer.Add(space->digest());
  writer.Add<uint64_t>(entries_.size());
  for (const Entry& entry : entries_) {
    WritePoint(writer, entry.point);
    const uint32_t flags = entry.proposed | entry.predicted << 1 | entry.told << 2 | entry.ok << 3;
    writer.Add(flags, entry.event, entry.prediction, entry.latency_ns);
  }
}

absl::Status History::Restore(cost_model::ByteReader& reader) {
  HONE_ASSIGN_OR_RETURN(const uint32_t spaces, reader.Read<uint32_t>());
  bool same = spaces == context_->spaces.size();
  for (uint32_t s = 0; s < spaces && same; ++s) {
    HONE_ASSIGN_OR_RETURN(const absl::string_view digest, reader.Read<absl::string_view>());
    same = digest == context_->spaces[s]->digest();
  }
  if (!same)
    return absl::InvalidArgumentError("the search state was saved for other design spaces");
  HONE_ASSIGN_OR_RETURN(const uint64_t entries, reader.Read<uint64_t>());
  for (uint64_t i = 0; i < entries; ++i) {
    HONE_ASSIGN_OR_RETURN(const Point point, ReadPoint(reader, *context_));
    Entry& entry = At(point);
    uint32_t flags = 0;
    HONE_RETURN_IF_ERROR(reader.Read(flags, entry.event, entry.prediction, entry.latency_ns));
    entry.proposed = flags & 1;
    entry.predicted = flags >> 1 & 1;
    entry.told = flags >> 2 & 1;
    entry.ok = flags >> 3 & 1;
  }
  return absl::OkStatus();
}

}  // namespace hone::search
