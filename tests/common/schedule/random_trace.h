#ifndef HONE_TESTS_COMMON_SCHEDULE_RANDOM_TRACE_H_
#define HONE_TESTS_COMMON_SCHEDULE_RANDOM_TRACE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/common/schedule/step.h"

namespace hone::schedule {

// A workload, the steps taken on it, and the result.
struct RandomTrace {
  uint64_t seed = 0;
  std::shared_ptr<const ir::Workload> workload;
  std::optional<RandomWorkload> drawn;  // the drawn workload, if it was drawn
  std::vector<Step> steps;              // the legal ones
  Trace trace;                          // the same steps as a trace
  std::vector<int64_t> decisions;
  ir::Program program;
  int refused = 0;  // number of steps that a primitive rejected
  // An error if a rejected primitive changed the program.
  absl::Status refusals = absl::OkStatus();
};

// Takes the legal steps, in order.
RandomTrace TakeSteps(std::shared_ptr<const ir::Workload> workload, const std::vector<Step>& steps);

// Draws a workload, then `attempts` steps. The same seed gives the same trace on every machine.
RandomTrace MakeRandomTrace(uint64_t seed, int attempts = 16, int64_t max_extent = 9);
// The same for a given workload.
RandomTrace MakeRandomTrace(std::shared_ptr<const ir::Workload> workload, uint64_t seed,
                            int attempts);

// A text that `hone schedule` reads: the workload and the trace, with the seed and the program as
// comments.
std::string Describe(const RandomTrace& random);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RANDOM_TRACE_H_
