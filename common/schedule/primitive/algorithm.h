#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_ALGORITHM_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_ALGORITHM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::schedule {

// Replaces the stage that computes a tensor by another algorithm (rewrite/rewrite.h): the program
// becomes that of the rewritten workload, unscheduled, with the stages that depend on constant
// inputs alone in the kernel "prepack". Its inputs and outputs stay; program.workload() is the
// rewritten one from now on. Blocks and loops named before are gone. Legal before every other
// primitive that changes the program, and after other rewrites and samplings. InvalidArgument: no
// such rewrite or stage, or a number that it does not take. FailedPrecondition: the program was
// changed already, or the stage is not of the rewrite's form. The program is unchanged then.
absl::Status RewriteAlgorithm(ir::Program& program, absl::string_view name, absl::string_view stage,
                              absl::Span<const int64_t> numbers);

// The smallest tolerance of a job that allows the kernels of a trace: the sum of what its rewrites
// need (Rewrite::tolerance); 0 without rewrites. Errors are those of ApplyRewriteTo, and
// InvalidArgument for a decision vector of another length.
absl::StatusOr<double> ToleranceNeeded(const ir::Workload& workload, const Trace& trace,
                                       absl::Span<const int64_t> decisions);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_ALGORITHM_H_
