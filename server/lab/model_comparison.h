#ifndef HONE_SERVER_LAB_MODEL_COMPARISON_H_
#define HONE_SERVER_LAB_MODEL_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/lab/recorded_set.h"
#include "server/task/model_evaluation.h"

namespace hone::lab {

// Writes recorded sets into a new store at `path`, each the records of a job: what `hone models`
// and task::EvaluateModels work on. Every program once. Errors of the store, and of malformed sets.
absl::Status WriteSetsToStore(const std::vector<RecordedSet>& sets, const std::string& path);

// Trains and judges cost models on recorded sets as `hone models evaluate` does on a store's
// records: `query.records.max_records` of all sets together. Errors of task::EvaluateModels.
absl::StatusOr<task::ModelEvaluation> EvaluateOnSets(const std::vector<RecordedSet>& sets,
                                                     const task::EvaluationQuery& query);

// Markdown: a line per model and per manner of holding out.
std::string EvaluationText(const task::ModelEvaluation& evaluation);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_MODEL_COMPARISON_H_
