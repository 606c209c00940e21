#include "tests/common/schedule/tolerance_needed.h"

#include <vector>

#include "common/base/status_macros.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

absl::StatusOr<double> ToleranceNeeded(const ir::Workload& workload, const Trace& trace,
                                       absl::Span<const int64_t> decisions) {
  HONE_ASSIGN_OR_RETURN(const std::vector<UsedRewrite> used,
                        RewritesOf(workload, trace, decisions));
  double total = 0;
  for (const UsedRewrite& rewrite : used) total += rewrite.tolerance;
  return total;
}

}  // namespace hone::schedule
