#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_ALGORITHM_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_ALGORITHM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Replaces the stage that computes a tensor with another algorithm (rewrite/rewrite.h). The program
// becomes the unscheduled program of the rewritten workload, with the stages that depend only on
// constant inputs in the kernel "prepack". Inputs and outputs stay the same; program.workload() is
// now the rewritten workload. Earlier block and loop IDs become invalid. Legal before all other
// primitives that change the program, and after other rewrites and samplings. InvalidArgument:
// unknown rewrite or stage, or an invalid number. FailedPrecondition: the program was already
// changed, or the stage does not have the rewrite's form. On error the program is unchanged.
absl::Status RewriteAlgorithm(ir::Program& program, absl::string_view name, absl::string_view stage,
                              absl::Span<const int64_t> numbers);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_ALGORITHM_H_
