#include "server/tuner/search/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/search/run_in_threads.h"

namespace hone::search {
namespace {

constexpr size_t kCacheSize = 4096;       // size of each of the two caches
constexpr size_t kPointsPerThread = 16;   // minimum for which a thread is started
constexpr size_t kPointsPerPortion = 64;  // per thread; takes a few milliseconds

std::shared_ptr<const cost_model::CostModel> DraftOf(const SearchContext& context) {
  if (context.draft != nullptr) return context.draft;
  return cost_model::MakeModel(cost_model::kDraftModel);
}

// Returns this thread's description, begun with a program.
feature::Description& DescriptionOf(const ir::Program& program, const target::Target& target) {
  thread_local feature::Description description;  // static to reuse its memory
  description.Begin(program, target);
  return description;
}

// `features`: those that the draft reads.
double DraftScoreOf(const cost_model::CostModel& draft, const feature::FeatureSet& features,
                    feature::Description& program) {
  constexpr double kHopeless = 1e-30;  // score of programs for which extraction fails
  thread_local cost_model::FeatureMatrix matrix;
  matrix.columns = features.Columns();
  matrix.values.clear();
  matrix.row_begin.assign(1, 0);
  int rows = 0;
  if (!features.Extract(program, matrix.values, rows).ok()) return kHopeless;
  matrix.row_begin.push_back(rows);
  const absl::StatusOr<cost_model::Prediction> prediction = draft.Predict(matrix);
  return prediction.ok() ? std::max(prediction->mean[0], kHopeless) : kHopeless;
}

}  // namespace

double DraftScoreOf(const cost_model::CostModel& draft, const ir::Program& program,
                    const target::Target& target) {
  return DraftScoreOf(draft, *feature::FindFeatureSet(draft.feature_set()).value(),
                      DescriptionOf(program, target));
}

absl::Status AppendRowsOf(const feature::FeatureSet& features, const space::DesignSpace& space,
                          const feature::Chosen& chosen, const target::Target& target,
                          std::vector<float>& rows, int& row_count) {
  row_count = 0;
  if (space.parts().empty() || features.MaxDecisions() != std::numeric_limits<int>::max()) {
    HONE_ASSIGN_OR_RETURN(const ir::Program program, space.Replay(chosen.decisions));
    return features.ExtractCandidate(program, chosen, target, rows, row_count);
  }
  for (const space::DesignSpace::Part& part : space.parts()) {
    int count = 0;
    const feature::Chosen own{chosen.space, chosen.decisions.subspan(part.begin, part.count()),
                              &part.space->trace()};
    HONE_RETURN_IF_ERROR(AppendRowsOf(features, *part.space, own, target, rows, count));
    row_count += count;
  }
  return absl::OkStatus();
}

Evaluator::Evaluator(SearchContext context, bool draft)
    : context_(std::move(context)),
      draft_(draft ? DraftOf(context_) : nullptr),
      draft_features_(draft ? *feature::FindFeatureSet(draft_->feature_set()) : nullptr) {}

absl::Status Evaluator::UseFeaturesOf(const cost_model::CostModel* model) {
  predictions_.clear();
  const feature::FeatureSet* features = nullptr;
  if (model != nullptr && !model->feature_set().empty()) {
    const absl::StatusOr<const feature::FeatureSet*> found =
        feature::FindFeatureSet(model->feature_set());
    if (!found.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("model ", model->name(), ": ", found.status().message()));
    features = *found;
  }
  if (features == features_) return absl::OkStatus();
  features_ = features;
  recent_.clear();
  older_.clear();
  const absl::MutexLock lock(&parts_mutex_);
  parts_.clear();
  return absl::OkStatus();
}

void Evaluator::Make(absl::Span<const Point> points, absl::Span<const size_t> which,
                     std::vector<EvaluationPtr>& evaluations) {
  const bool by_parts =
      features_ == nullptr || features_->MaxDecisions() == std::numeric_limits<int>::max();
  std::vector<absl::Span<const int64_t>> group;
  for (; !which.empty(); which.remove_prefix(group.size())) {
    const int index = points[which[0]].space;
    const space::DesignSpace& space = *context_.spaces[index];
    group.clear();
    for (const size_t i : which) {
      if (points[i].space != index) break;
      group.push_back(points[i].decisions);
    }
    if (by_parts && !space.parts().empty()) {
      for (const size_t i : which.first(group.size()))
        evaluations[i] = MakeOfParts(space, points[i]);
    } else {
      space.ReplayAll(
          group, [&](size_t position, const absl::Status& status, const ir::Program& program) {
            const size_t i = which[position];
            evaluations[i] = Describe(status.ok() ? &program : nullptr, points[i], space.trace());
          });
    }
  }
}

EvaluationPtr Evaluator::Describe(const ir::Program* program, const Point& point,
                                  const schedule::Trace& trace) const {
  auto evaluation = std::make_shared<Evaluation>();
  if (program == nullptr) return evaluation;
  feature::Description& described = DescriptionOf(*program, context_.target);
  if (features_ != nullptr &&
      !features_
           ->ExtractCandidate(described, {point.space, point.decisions, &trace}, evaluation->rows,
                              evaluation->row_count)
           .ok()) {
    return evaluation;
  }
  evaluation->program = program->StructuralDigest();
  if (draft_ != nullptr) evaluation->draft = DraftScoreOf(*draft_, *draft_features_, described);
  evaluation->legal = true;
  return evaluation;
}

EvaluationPtr Evaluator::MakeOfParts(const space::DesignSpace& space, const Point& point) {
  auto whole = std::make_shared<Evaluation>();
  DigestBuilder program;
  double cycles = 0;
  for (const space::DesignSpace::Part& part : space.parts()) {
    const Point own{point.space,
                    {point.decisions.begin() + part.begin,
                     point.decisions.begin() + part.begin + part.count()}};
    DigestBuilder key;
    key.Add(absl::string_view(part.space->digest()));
    for (const int64_t decision : own.decisions) key.Add(decision);
    const Digest digest = key.Finish();
    EvaluationPtr evaluation;
    {
      const absl::MutexLock lock(&parts_mutex_);
      if (const auto found = parts_.find(digest); found != parts_.end()) evaluation = found->second;
    }
    if (evaluation == nullptr) {
      const absl::StatusOr<ir::Program> replayed = part.space->Replay(own.decisions);
      evaluation = Describe(replayed.ok() ? &*replayed : nullptr, own, part.space->trace());
      const absl::MutexLock lock(&parts_mutex_);
      if (parts_.size() >= kCacheSize) parts_.clear();
      parts_[digest] = evaluation;
    }
    if (!evaluation->legal) return std::make_shared<Evaluation>();
    program.Add(evaluation->program);
    cycles += 1 / evaluation->draft;
    whole->rows.insert(whole->rows.end(), evaluation->rows.begin(), evaluation->rows.end());
    whole->row_count += evaluation->row_count;
  }
  whole->program = program.Finish();
  if (draft_ != nullptr) whole->draft = 1 / cycles;
  whole->legal = true;
  return whole;
}

void Evaluator::Keep(const Digest& key, EvaluationPtr evaluation) {
  if (recent_.size() >= kCacheSize) {
    older_ = std::move(recent_);
    recent_.clear();
  }
  recent_[key] = std::move(evaluation);
}

absl::StatusOr<std::vector<EvaluationPtr>> Evaluator::Evaluate(absl::Span<const Point> points) {
  std::vector<EvaluationPtr> evaluations(points.size());
  std::vector<Digest> keys(points.size());
  std::vector<size_t> missing;
  absl::flat_hash_map<Digest, size_t> first;  // `points` may contain duplicates
  for (size_t i = 0; i < points.size(); ++i) {
    keys[i] = KeyOf(context_, points[i]);
    if (const auto found = recent_.find(keys[i]); found != recent_.end()) {
      evaluations[i] = found->second;
    } else if (const auto old = older_.find(keys[i]); old != older_.end()) {
      evaluations[i] = old->second;
    } else if (first.emplace(keys[i], i).second) {
      missing.push_back(i);
    }
  }
  // Sorted because replays share the state before the first decision that differs.
  absl::c_sort(missing, [&](size_t a, size_t b) {
    return std::tie(points[a].space, points[a].decisions) <
           std::tie(points[b].space, points[b].decisions);
  });
  // Works in portions so that a kernel can be timed between them.
  int parts = 1;
  for (const space::DesignSpace* space : context_.spaces)
    parts = std::max(parts, space->part_count());
  const size_t portion = std::max<size_t>(1, kPointsPerPortion / parts) * context_.threads;
  for (size_t begin = 0; begin < missing.size(); begin += portion) {
    const size_t end = std::min(begin + portion, missing.size());
    const size_t threads = std::clamp<size_t>((end - begin) * parts / kPointsPerThread, 1,
                                              std::min<size_t>(context_.threads, end - begin));
    const auto work = [&](size_t thread) {
      const size_t first = begin + (end - begin) * thread / threads;
      const size_t last = begin + (end - begin) * (thread + 1) / threads;
      Make(points, absl::MakeConstSpan(missing).subspan(first, last - first), evaluations);
    };
    if (context_.check != nullptr) HONE_RETURN_IF_ERROR(context_.check());
    YieldToTimers();
    RunInThreads(threads, work);
  }
  for (size_t i = 0; i < points.size(); ++i) {
    if (evaluations[i] == nullptr) evaluations[i] = evaluations[first.at(keys[i])];
  }
  for (size_t i = 0; i < points.size(); ++i) Keep(keys[i], evaluations[i]);
  return evaluations;
}

absl::StatusOr<std::vector<double>> Evaluator::Predict(absl::Span<const EvaluationPtr> evaluations,
                                                       const cost_model::CostModel* model) {
  std::vector<double> scores(evaluations.size(), 0.0);
  if (model == nullptr) return scores;
  if (predictions_.size() >= kCacheSize) predictions_.clear();
  cost_model::FeatureMatrix matrix{.columns = features_ == nullptr ? 0 : features_->Columns()};
  std::vector<size_t> asked;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    if (!evaluations[i]->legal) continue;
    // Without features, the score depends on the position in the matrix.
    if (features_ != nullptr && !predictions_.try_emplace(evaluations[i]).second) continue;
    matrix.Append(evaluations[i]->rows, evaluations[i]->row_count);
    asked.push_back(i);
  }
  if (!asked.empty()) {
    HONE_ASSIGN_OR_RETURN(const cost_model::Prediction prediction, model->Predict(matrix));
    for (size_t a = 0; a < asked.size() && a < prediction.mean.size(); ++a) {
      if (std::isfinite(prediction.mean[a])) scores[asked[a]] = prediction.mean[a];
    }
  }
  if (features_ == nullptr) return scores;
  for (const size_t i : asked) predictions_[evaluations[i]] = scores[i];
  for (size_t i = 0; i < evaluations.size(); ++i) {
    if (evaluations[i]->legal) scores[i] = predictions_[evaluations[i]];
  }
  return scores;
}

}  // namespace hone::search
