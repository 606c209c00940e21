#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_CONCURRENCY_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_CONCURRENCY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Checks that the iterations of a loop may run concurrently. No block under it may reduce over it.
// Different iterations must write every buffer at different places; with `privates`, a buffer may
// instead be used only under the loop, and is then private to each iteration. With `combines`, the
// iterations are threads of a GPU's block: they may have partial results of a reduction, which
// lowering combines. FailedPrecondition: names the block and buffer; `what` begins the message.
absl::Status CheckConcurrent(ir::Program& program, ir::NodeId loop, absl::string_view what,
                             bool privates, bool combines = false);

// Applies a change that is otherwise legal, unless it makes a parallel or bound loop illegal: by
// moving the loop, or by a use of a private buffer outside its loop. On error the program is
// unchanged. `nodes`: one of each nest that the change edits. Other nests keep their blocks, and
// nothing begins to use their private buffers, so they are not checked again.
absl::Status KeepConcurrencyLegal(ir::Program& program, absl::Span<const ir::NodeId> nodes,
                                  absl::FunctionRef<void(ir::Program&)> change);

// Checks that the iterations of a loop may compute partial results of a block's reduction, which
// are combined after it. FailedPrecondition: the block does not reduce over the loop, has no init
// or is in a tensor nest; its partial results would be rounded; something else uses its outputs
// before the reduction ends; or a loop or predicate mixes spatial and reduction iterations. `what`
// begins the message.
absl::Status CheckPartialReduction(ir::Program& program, ir::NodeId block, ir::NodeId loop,
                                   absl::string_view what);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_CONCURRENCY_H_
