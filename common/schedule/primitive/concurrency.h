#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_CONCURRENCY_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_CONCURRENCY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Whether the iterations of a loop may run at once. No block under it reduces over it; and every
// buffer written under it is either written at different places by different iterations, or, with
// `privates`, used only under the loop and then private to each iteration. FailedPrecondition: says
// which block and buffer; `what` begins the message.
absl::Status CheckConcurrent(ir::Program& program, ir::NodeId loop, absl::string_view what,
                             bool privates);

// Applies a change that cannot fail by itself. Refuses it (the program is unchanged) where it takes
// a parallel or bound loop its right to be one: by a use outside of what was private to its
// iterations, or by another place of the loop.
absl::Status KeepConcurrencyLegal(ir::Program& program,
                                  absl::FunctionRef<void(ir::Program&)> change);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_CONCURRENCY_H_
