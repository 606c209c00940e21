#include "server/search/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/host_share.h"
#include "common/base/status_macros.h"
#include "server/search/run_in_threads.h"

namespace hone::search {
namespace {

constexpr size_t kCacheSize = 4096;       // size of each of the two caches
constexpr size_t kPointsPerThread = 16;   // minimum for which a thread is started
constexpr size_t kPointsPerPortion = 64;  // per thread; takes a few milliseconds

}  // namespace

Evaluator::Evaluator(const SearchContext* context, const cost_model::CostModel* draft)
    : context_(context), draft_(draft) {}
Evaluator::~Evaluator() = default;

absl::Status Evaluator::UseFeaturesOf(const cost_model::CostModel* model) {
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
  return absl::OkStatus();
}

EvaluationPtr Evaluator::Make(const Point& point) const {
  auto evaluation = std::make_shared<Evaluation>();
  const auto program = context_->spaces[point.space]->Replay(point.decisions);
  if (!program.ok()) return evaluation;
  if (features_ != nullptr &&
      !features_
           ->ExtractCandidate(*program, {point.space, point.decisions}, context_->target,
                              evaluation->rows, evaluation->row_count)
           .ok()) {
    return evaluation;
  }
  evaluation->program = program->StructuralDigest();
  if (draft_ != nullptr) evaluation->draft = DraftOf(*program);
  evaluation->legal = true;
  return evaluation;
}

double Evaluator::DraftOf(const ir::Program& program) const {
  constexpr double kHopeless = 1e-30;  // score of programs for which extraction fails
  const feature::FeatureSet& features = **feature::FindFeatureSet(draft_->feature_set());
  cost_model::FeatureMatrix matrix{.columns = features.Columns()};
  int rows = 0;
  if (!features.Extract(program, context_->target, matrix.values, rows).ok()) return kHopeless;
  matrix.row_begin.push_back(rows);
  const absl::StatusOr<cost_model::Prediction> prediction = draft_->Predict(matrix);
  return prediction.ok() ? std::max(prediction->mean[0], kHopeless) : kHopeless;
}

void Evaluator::Keep(const Digest& key, EvaluationPtr evaluation) {
  if (recent_.size() >= kCacheSize) {
    older_ = std::move(recent_);
    recent_.clear();
  }
  recent_[key] = std::move(evaluation);
}

std::vector<EvaluationPtr> Evaluator::Evaluate(absl::Span<const Point> points) {
  std::vector<EvaluationPtr> evaluations(points.size());
  std::vector<Digest> keys(points.size());
  std::vector<size_t> missing;
  absl::flat_hash_map<Digest, size_t> first;  // `points` may contain duplicates
  for (size_t i = 0; i < points.size(); ++i) {
    keys[i] = KeyOf(*context_, points[i]);
    if (const auto found = recent_.find(keys[i]); found != recent_.end()) {
      evaluations[i] = found->second;
    } else if (const auto old = older_.find(keys[i]); old != older_.end()) {
      evaluations[i] = old->second;
    } else if (first.emplace(keys[i], i).second) {
      missing.push_back(i);
    }
  }
  // Sorted by space because replays of one space share the state after its first instructions.
  std::stable_sort(missing.begin(), missing.end(),
                   [&](size_t a, size_t b) { return points[a].space < points[b].space; });
  // Works in portions so that a kernel can be timed between them.
  const size_t portion = kPointsPerPortion * context_->threads;
  for (size_t begin = 0; begin < missing.size(); begin += portion) {
    const size_t end = std::min(begin + portion, missing.size());
    const size_t threads =
        std::clamp<size_t>((end - begin) / kPointsPerThread, 1, context_->threads);
    const auto work = [&](size_t thread) {
      for (size_t m = begin + thread; m < end; m += threads) {
        evaluations[missing[m]] = Make(points[missing[m]]);
      }
    };
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
                                                       const cost_model::CostModel* model) const {
  std::vector<double> scores(evaluations.size(), 0.0);
  if (model == nullptr) return scores;
  cost_model::FeatureMatrix matrix{.columns = features_ == nullptr ? 0 : features_->Columns()};
  std::vector<size_t> asked;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    if (!evaluations[i]->legal) continue;
    matrix.Append(evaluations[i]->rows, evaluations[i]->row_count);
    asked.push_back(i);
  }
  if (asked.empty()) return scores;
  HONE_ASSIGN_OR_RETURN(const cost_model::Prediction prediction, model->Predict(matrix));
  for (size_t a = 0; a < asked.size() && a < prediction.mean.size(); ++a) {
    if (std::isfinite(prediction.mean[a])) scores[asked[a]] = prediction.mean[a];
  }
  return scores;
}

}  // namespace hone::search
