#ifndef HONE_SERVER_RESEARCH_LAB_MODEL_COMPARISON_H_
#define HONE_SERVER_RESEARCH_LAB_MODEL_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/job/search/model_evaluation.h"
#include "server/research/lab/recorded_set.h"

namespace hone::lab {

// Writes recorded sets into a new store at `path`, each as the records of one job, as input for
// `hone models` and job::EvaluateModels. Each program is written once. Errors: those of the store,
// and malformed sets.
absl::Status WriteSetsToStore(const std::vector<RecordedSet>& sets, const std::string& path);

// Trains and evaluates cost models on recorded sets, as `hone models evaluate` does on a store's
// records. `query.records.max_records` limits all sets together. Errors are those of
// job::EvaluateModels.
absl::StatusOr<job::ModelEvaluation> EvaluateOnSets(const std::vector<RecordedSet>& sets,
                                                    const job::EvaluationQuery& query);

// Returns Markdown with one line per model and holdout method.
std::string EvaluationText(const job::ModelEvaluation& evaluation);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_MODEL_COMPARISON_H_
