#ifndef HONE_SERVER_JOB_SEARCH_LEARNED_DRAFT_H_
#define HONE_SERVER_JOB_SEARCH_LEARNED_DRAFT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/target.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"

namespace hone::job {

// The model that a server learns from the results of all tasks of a target, and that ranks
// candidates before a task has results of its own (server/tuner/cost_model/models.h).
inline constexpr char kLearnedDraft[] = "residual";

// Returns the row of the learned draft of a target that is in use, which may be imported
// (store::ModelKey), or 0 if the target has none. Errors are those of the store.
absl::StatusOr<int64_t> NewestDraft(store::Store& store, const std::string& target_key);

// Returns the saved draft that comes with the program and that a target begins with, learned from
// the development tasks of a sample (server/research/lab/README.md); "" if there is none. Only
// targets like those on which it was measured to help begin with it: x86-64 CPUs with vectors of
// 256 bits (tests/bench/results/judge.md).
absl::string_view ShippedDraft(const target::Target& target);

// Loads a learned draft by its row; 0: the shipped one. Returns null, which stands for the
// constants of the target, if there is none, and, with a warning in the log, if the row is gone or
// this version of the program cannot read it. `target_text`: of the task. `store` is only needed
// for rows.
std::shared_ptr<const cost_model::CostModel> LoadDraft(store::Store* store,
                                                       const TaskEnvironment& environment,
                                                       int64_t id, const std::string& target_text);

// Returns the saved drafts that were learned from results of other machines, or imported, for the
// architecture of a target: at most four, those of the most similar targets first, and the one that
// is shipped for the architecture. Two targets are similar if the logarithms of what their workers
// measured, and of their cores, vectors and caches, are close. A target with few results may begin
// with one of them (CostModelOptions::foreign).
std::vector<std::string> ForeignDrafts(store::Store& store, const std::string& target_key,
                                       const std::string& target_text);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_LEARNED_DRAFT_H_
