#ifndef HONE_SERVER_TUNER_SEARCH_EVALUATOR_H_
#define HONE_SERVER_TUNER_SEARCH_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/digest.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/feature/feature_set.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/design_space.h"

namespace hone::search {

// A candidate inside one search.
struct Point {
  int space = 0;  // index in SearchContext::spaces
  std::vector<int64_t> decisions;
  friend bool operator==(const Point&, const Point&) = default;
};

// The digest of a candidate. It is the same on every machine and for every order of the spaces.
inline Digest KeyOf(const SearchContext& context, const Point& point) {
  DigestBuilder builder;
  builder.Add(absl::string_view(context.spaces[point.space]->digest()));
  for (int64_t decision : point.decisions) builder.Add(decision);
  return builder.Finish();
}

inline record::Candidate CandidateOf(const SearchContext& context, const Point& point) {
  return {context.spaces[point.space]->digest(), point.decisions};
}

// Returns the draft's score of a program, in 1 / cycles; higher is faster. It is tiny if the
// features cannot be extracted. `draft`: SearchContext::draft.
double DraftScoreOf(const cost_model::CostModel& draft, const ir::Program& program,
                    const target::Target& target);

// The results of replaying a candidate.
struct Evaluation {
  // Whether the candidate replays and its features can be extracted. If not, the other fields keep
  // their defaults.
  bool legal = false;
  Digest program;           // structural digest of the program
  double draft = 0;         // score by the draft, in 1 / cycles; 0 without a draft
  std::vector<float> rows;  // rows of the feature set
  int row_count = 0;
};
using EvaluationPtr = std::shared_ptr<const Evaluation>;

// Replays a candidate and appends its rows. The rows of a space of parts are those of its parts,
// one after the other, for sets that describe statements. InvalidArgument: the candidate does not
// replay, or as for FeatureSet::ExtractCandidate.
absl::Status AppendRowsOf(const feature::FeatureSet& features, const space::DesignSpace& space,
                          const feature::Chosen& chosen, const target::Target& target,
                          std::vector<float>& rows, int& row_count);

// Replays candidates, extracts their digests, draft scores and feature rows, and caches the last
// several thousand evaluations. An evaluation depends only on the candidate, the draft and the
// feature set, not on the cache or the number of threads. Strategies that run in turn share one.
// Used by one thread at a time.
class Evaluator {
 public:
  // `draft`: whether the draft scores candidates.
  explicit Evaluator(SearchContext context, bool draft = false);

  const SearchContext& context() const { return context_; }
  bool has_draft() const { return draft_ != nullptr; }

  // Makes later evaluations contain the rows of the feature set that `model` reads, or no rows if
  // the model is null or its feature set is "". Forgets the predictions. InvalidArgument: the
  // feature set does not exist.
  absl::Status UseFeaturesOf(const cost_model::CostModel* model);

  // Returns one evaluation per point, in order. None is null. Errors are those of the context's
  // check.
  absl::StatusOr<std::vector<EvaluationPtr>> Evaluate(absl::Span<const Point> points);

  // Returns the model's scores, one per evaluation. The score is 0 if the candidate is illegal,
  // if the model's prediction is not finite, or if the model is null. Asks a model that reads
  // features once for most evaluations. Returns the model's errors. REQUIRES: the evaluations were
  // made after the last UseFeaturesOf(model), and the model has not changed since.
  absl::StatusOr<std::vector<double>> Predict(absl::Span<const EvaluationPtr> evaluations,
                                              const cost_model::CostModel* model);

 private:
  using Cache = absl::flat_hash_map<Digest, EvaluationPtr>;

  // Evaluates some of the points, which are sorted.
  void Make(absl::Span<const Point> points, absl::Span<const size_t> which,
            std::vector<EvaluationPtr>& evaluations);
  // `program`: what the point replays to; null if it does not replay. `trace`: of its space.
  EvaluationPtr Describe(const ir::Program* program, const Point& point,
                         const schedule::Trace& trace) const;
  // Most parts of a candidate are those of others, and a replay of the whole takes long.
  EvaluationPtr MakeOfParts(const space::DesignSpace& space, const Point& point);
  void Keep(const Digest& key, EvaluationPtr evaluation);

  const SearchContext context_;
  const std::shared_ptr<const cost_model::CostModel> draft_;
  const feature::FeatureSet* const draft_features_;
  const feature::FeatureSet* features_ = nullptr;
  Cache recent_, older_;  // when recent_ is full, it replaces older_
  absl::flat_hash_map<EvaluationPtr, double> predictions_;  // cleared when it is full
  absl::Mutex parts_mutex_;
  Cache parts_ ABSL_GUARDED_BY(parts_mutex_);  // of parts; cleared when it is full
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_EVALUATOR_H_
