#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/copy_nest.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::StatusOr<NodeId> CacheWrite(ir::Program& program, NodeId block, ir::Scope scope) {
  if (program.BlockOf(block).outputs.size() != 1)
    return Illegal(program, block, "cache_write: the block writes several buffers");
  const ir::BufferId buffer = program.BlockOf(block).outputs[0];
  if (program.WritersOf(buffer).size() != 1)
    return Illegal(program, block, "cache_write: another block writes the same buffer");
  NodeId nest = block;
  while (program.node(program.node(nest).parent).kind != ir::Node::Kind::kKernel)
    nest = program.node(nest).parent;
  if (program.BlocksUnder(nest).size() != 1)
    return Illegal(program, nest, "cache_write: other blocks share the block's nest");
  // After compute_at, the copy would read elements that are not computed.
  if (!program.BlockOf(block).exact)
    return Illegal(program, block, "cache_write: the block computes only what other blocks need");
  const ir::Buffer target = program.buffers[buffer];
  if (target.padded)
    return Illegal(program, block,
                   absl::StrCat("cache_write: ", target.name, " is stored with padding"));
  // Partial sums of short floats are kept in f32; the copy rounds them once.
  const ir::DType dtype = ir::AccumulatorOf(program.BlockOf(block).reducer, target.dtype);
  if (dtype != target.dtype) {
    const ir::ExprId widened = program.pool.Widened(program.BlockOf(block).values[0]);
    program.BlockOf(block).values[0] = widened;
  }
  program.buffers.push_back({.name = program.FreshBufferName(absl::StrCat(target.name, "_cache")),
                             .dtype = dtype,
                             .shape = target.shape,
                             .scope = scope,
                             .constant = target.constant});
  const auto cache = static_cast<ir::BufferId>(program.buffers.size()) - 1;
  program.BlockOf(block).outputs[0] = cache;
  return AddCopyNest(program, cache, buffer, program.node(nest).parent,
                     program.PositionInParent(nest) + 1);
}

absl::Status ApplyCacheWrite(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const std::string scope_name, call.Text(1));
  HONE_ASSIGN_OR_RETURN(const ir::Scope scope, ScopeFromName(scope_name));
  HONE_ASSIGN_OR_RETURN(const NodeId copy, CacheWrite(call.program(), block, scope));
  return call.Return({copy});
}

}  // namespace hone::schedule
