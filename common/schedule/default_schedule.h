#ifndef HONE_COMMON_SCHEDULE_DEFAULT_SCHEDULE_H_
#define HONE_COMMON_SCHEDULE_DEFAULT_SCHEDULE_H_

#include "absl/status/status.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Applies a schedule that needs no tuning to an unscheduled program. In each block, the outer
// spatial loops are fused and parallel and the innermost is vectorized; a reduction keeps a small
// tile of accumulators in registers. For programs that run once, such as references.
absl::Status ApplyDefaultSchedule(ir::Program& program, int lanes);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_DEFAULT_SCHEDULE_H_
