#ifndef HONE_TESTS_COMMON_SCHEDULE_RANDOM_TRACE_H_
#define HONE_TESTS_COMMON_SCHEDULE_RANDOM_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/rng.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// One use of a primitive, in terms that survive when other steps are dropped: blocks by name, loops
// by their position above a block (outermost first).
struct Step {
  std::string primitive;
  std::string block;   // the block that it is about, and whose loops `loops` counts
  std::string target;  // compute_at and reverse_compute_at: `loops` counts this block's loops
  std::vector<int> loops;
  std::vector<int64_t> numbers;  // factors, tile sizes
  std::string text;              // a buffer or a layout map
  std::string scope;
  std::string sampling;  // split: the primitive that draws the factors; "" for literal ones
};

// A workload with steps that were taken one after the other, and what they made of it.
struct RandomTrace {
  uint64_t seed = 0;
  std::shared_ptr<const ir::Workload> workload;
  std::vector<Step> steps;  // the legal ones
  Trace trace;              // the same steps as a trace
  std::vector<int64_t> decisions;
  ir::Program program;
  int refused = 0;  // steps that a primitive refused
  // Not OK: a refused primitive changed the program.
  absl::Status refusals = absl::OkStatus();
};

// Takes the steps that are legal, in order.
RandomTrace TakeSteps(std::shared_ptr<const ir::Workload> workload, const std::vector<Step>& steps);

// Draws a workload, then `attempts` steps. The same seed gives the same trace on every machine.
RandomTrace MakeRandomTrace(uint64_t seed, int attempts = 16, int64_t max_extent = 9);
// The same on a given workload.
RandomTrace MakeRandomTrace(std::shared_ptr<const ir::Workload> workload, uint64_t seed,
                            int attempts);

// Drops steps as long as `fails` stays true.
RandomTrace Shrink(RandomTrace failing, absl::FunctionRef<bool(const RandomTrace&)> fails);

// Workload, trace, program: enough to repeat it.
std::string Describe(const RandomTrace& random);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RANDOM_TRACE_H_
