#ifndef HONE_TESTS_SERVER_JOB_SEARCH_RANDOM_WORKLOAD_H_
#define HONE_TESTS_SERVER_JOB_SEARCH_RANDOM_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/job/actor/task_environment.h"
#include "server/tuner/cost_model/cost_model.h"

namespace hone::job {

// Returns the text of a random workload of about `stages` stages over matrices of f32. They are
// element-wise stages, transposes, reductions of rows, products, windows and convolutions. Some
// read tensors of much earlier stages, so there are diamonds. The same seed gives the same text.
std::string RandomWorkload(uint64_t seed, int stages);

// What a draft took and found.
struct DraftCase {
  double spaces_s = 0;   // time to make the design spaces
  double propose_s = 0;  // time to propose the first candidate
  size_t spaces = 0;
  double cycles = 0;  // the draft's estimate of the first candidate
  std::string trace;  // of the first candidate
};

// Drafts a workload for a preset of the target, as a job does, with a learned draft or, if it is
// null, with the constants of the target. Errors are those of the environment; Internal: the draft
// does not replay, or nothing was proposed.
absl::Status DraftOnce(const TaskEnvironment& environment, const std::string& workload,
                       const std::string& preset, DraftCase& drafted,
                       std::shared_ptr<const cost_model::CostModel> draft = nullptr);

// Returns the draft's estimate, in cycles, of a schedule on a preset of the target. Errors: the
// trace cannot be read, or does not replay.
absl::StatusOr<double> EstimateOf(const std::string& trace, const std::string& preset);

// Interprets the workload and the draft with random inputs. Internal: the results differ.
absl::Status CheckDraft(const std::string& trace, uint64_t seed);

}  // namespace hone::job

#endif  // HONE_TESTS_SERVER_JOB_SEARCH_RANDOM_WORKLOAD_H_
