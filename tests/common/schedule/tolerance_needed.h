#ifndef HONE_TESTS_COMMON_SCHEDULE_TOLERANCE_NEEDED_H_
#define HONE_TESTS_COMMON_SCHEDULE_TOLERANCE_NEEDED_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// The smallest job tolerance that allows the kernels of a trace: the sum of the tolerances of its
// rewrites (Rewrite::tolerance), 0 without rewrites. Errors are those of ApplyRewriteTo;
// InvalidArgument: the trace takes another number of decisions.
absl::StatusOr<double> ToleranceNeeded(const ir::Workload& workload, const Trace& trace,
                                       absl::Span<const int64_t> decisions);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_TOLERANCE_NEEDED_H_
