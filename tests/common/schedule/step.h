#ifndef HONE_TESTS_COMMON_SCHEDULE_STEP_H_
#define HONE_TESTS_COMMON_SCHEDULE_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// One use of a primitive. It stays valid when other steps are dropped: it names blocks, and
// identifies loops by their position above a block (outermost first).
struct Step {
  std::string primitive;
  std::string block;   // the block to transform; `loops` counts its loops
  std::string target;  // compute_at and reverse_compute_at: `loops` counts this block's loops
  std::vector<int> loops;
  std::vector<int64_t> numbers;  // factors, tile sizes
  std::string text;              // a buffer, a layout map, an instruction
  std::string scope;
  std::string sampling;  // split: the primitive that draws the factors; "" for literal factors
};

// The name of the first block that reads a block's output, or "".
std::string FirstReader(const ir::Program& program, ir::NodeId block);

// Applies the step to the program. If it is legal, appends it to the trace and its samples to the
// decisions. NotFound: a block or loop of the step does not exist. Other errors: the primitive is
// illegal.
absl::Status TakeStep(const Step& step, ir::Program& program, TraceBuilder& builder,
                      std::vector<int64_t>& decisions);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_STEP_H_
