#ifndef HONE_COMMON_SCHEDULE_REWRITES_OF_H_
#define HONE_COMMON_SCHEDULE_REWRITES_OF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/workload.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// A rewrite that a trace begins with, such as rewrite("winograd", "Y", 4).
struct UsedRewrite {
  std::string name;
  std::string stage;
  std::vector<int64_t> numbers;
  double tolerance = 0;  // the smallest job tolerance that allows it (Rewrite::tolerance)
};

// Returns the rewrites of a trace with these decisions, in order. Errors are those of
// ApplyRewriteTo. InvalidArgument: the trace takes another number of decisions.
absl::StatusOr<std::vector<UsedRewrite>> RewritesOf(const ir::Workload& workload,
                                                    const Trace& trace,
                                                    absl::Span<const int64_t> decisions);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_REWRITES_OF_H_
