#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_PARTIAL_REDUCTION_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_PARTIAL_REDUCTION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Checks that the iterations of a loop may compute partial results of a block's reduction, which
// are combined after it. FailedPrecondition: the block does not reduce over the loop, has no init
// or is in a tensor nest; its partial results would be rounded; something else uses its outputs
// before the reduction ends; or a loop or predicate mixes spatial and reduction iterations. `what`
// begins the message.
absl::Status CheckPartialReduction(ir::Program& program, ir::NodeId block, ir::NodeId loop,
                                   absl::string_view what);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_PARTIAL_REDUCTION_H_
