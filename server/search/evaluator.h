#ifndef HONE_SERVER_SEARCH_EVALUATOR_H_
#define HONE_SERVER_SEARCH_EVALUATOR_H_

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/digest.h"
#include "server/cost_model/cost_model.h"
#include "server/feature/feature_set.h"
#include "server/search/point.h"
#include "server/search/stage_groups.h"

namespace hone::search {

// What a replay tells of a candidate.
struct Evaluation {
  bool legal = false;       // it replays; else the rest is empty
  Digest program;           // structural
  double draft = 0;         // the draft's score, in 1 / cycles; 0 without a draft
  std::vector<float> rows;  // of the feature set
  int row_count = 0;
  // Where the evaluator observes stages: the group of each row, and how many groups there are.
  std::vector<int> row_groups;
  int group_count = 0;
};
using EvaluationPtr = std::shared_ptr<const Evaluation>;

// Replays candidates, tells what their programs tell, and keeps it of the last several thousand. An
// evaluation is a pure function of the candidate, so neither the caches nor the number of threads
// change an answer. Used by one thread at a time.
class Evaluator {
 public:
  // `context` and `draft` outlive it. `draft`: the model that scores every candidate before
  // anything is measured; null: there is none.
  explicit Evaluator(const SearchContext* context, const cost_model::CostModel* draft = nullptr);
  ~Evaluator();

  // The rows that evaluations carry from now on: those of the feature set that a model reads; none
  // for "" or null. InvalidArgument: it reads a set that does not exist.
  absl::Status UseFeaturesOf(const cost_model::CostModel* model);

  // Evaluations from now on tell the stage group of each row, in spaces that have more than one and
  // where the feature set has a row per statement. `groups`: one per space; outlives it.
  void ObserveStages(const std::vector<StageGroups>* groups) { groups_ = groups; }

  // One per point, in order. Never null.
  std::vector<EvaluationPtr> Evaluate(absl::Span<const Point> points);

  // The model's scores, one per evaluation; illegal ones and values that are not finite get 0. All
  // 0 without a model. Errors of the model. REQUIRES evaluations since the last
  // UseFeaturesOf(model).
  absl::StatusOr<std::vector<double>> Predict(absl::Span<const EvaluationPtr> evaluations,
                                              const cost_model::CostModel* model) const;

  // What the model says of each evaluation's stage groups: the sum of their rows' scores. Empty for
  // one whose groups are not observed, and for all where the model does not score rows.
  // Errors and REQUIRES as of Predict.
  absl::StatusOr<std::vector<std::vector<double>>> StageScores(
      absl::Span<const EvaluationPtr> evaluations, const cost_model::CostModel* model) const;

 private:
  using Cache = absl::flat_hash_map<Digest, EvaluationPtr>;

  EvaluationPtr Make(const Point& point) const;
  double DraftOf(const ir::Program& program) const;
  void Keep(const Digest& key, EvaluationPtr evaluation);

  const SearchContext* const context_;
  const cost_model::CostModel* const draft_;
  const feature::FeatureSet* features_ = nullptr;
  const std::vector<StageGroups>* groups_ = nullptr;  // null: not observed
  Cache recent_, older_;  // when the first is full it becomes the second
};

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_EVALUATOR_H_
