#ifndef HONE_WORKER_COMPILE_LOWER_BUFFER_USES_H_
#define HONE_WORKER_COMPILE_LOWER_BUFFER_USES_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

// Finds the blocks of a program that use a buffer, for the passes before BuildTree.
namespace hone::lower {

// The innermost node that contains all of them. REQUIRES a node.
ir::NodeId CommonAncestor(const ir::Program& program, const std::vector<ir::NodeId>& nodes);

// The buffers that blocks write together with the given one, which is among them. A block has one
// list of indices for all of its outputs, so these buffers keep equal shapes.
std::vector<ir::BufferId> WrittenTogether(const ir::Program& program, ir::BufferId buffer);

// The blocks that use the buffers, each once.
std::vector<ir::NodeId> UsersOf(const ir::Program& program, absl::Span<const ir::BufferId> buffers);

// Replaces the indices with which a block accesses the buffers for which `in` returns true.
// `rewrite` may add iteration variables to the block that it gets.
void RewriteIndices(ir::Program& program, ir::NodeId block,
                    absl::FunctionRef<bool(ir::BufferId)> in,
                    absl::FunctionRef<ir::IndexList(ir::Block&, const ir::IndexList&)> rewrite);

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_BUFFER_USES_H_
