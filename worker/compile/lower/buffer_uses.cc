#include "worker/compile/lower/buffer_uses.h"

#include <algorithm>
#include <utility>

namespace hone::lower {

using ir::BufferId;
using ir::NodeId;

NodeId CommonAncestor(const ir::Program& program, const std::vector<NodeId>& nodes) {
  NodeId at = program.node(nodes[0]).parent;
  while (at != ir::kNoNode && !std::all_of(nodes.begin(), nodes.end(),
                                           [&](NodeId id) { return program.IsUnder(id, at); })) {
    at = program.node(at).parent;
  }
  return at;
}

std::vector<BufferId> WrittenTogether(const ir::Program& program, BufferId buffer) {
  std::vector<BufferId> together = {buffer};
  for (size_t t = 0; t < together.size(); ++t) {
    for (const NodeId writer : program.WritersOf(together[t])) {
      for (const BufferId output : program.BlockOf(writer).outputs) {
        if (std::find(together.begin(), together.end(), output) == together.end())
          together.push_back(output);
      }
    }
  }
  return together;
}

std::vector<NodeId> UsersOf(const ir::Program& program, absl::Span<const BufferId> buffers) {
  std::vector<NodeId> users;
  for (const BufferId buffer : buffers) {
    for (const auto& list : {program.WritersOf(buffer), program.ReadersOf(buffer)}) {
      for (const NodeId user : list) {
        if (std::find(users.begin(), users.end(), user) == users.end()) users.push_back(user);
      }
    }
  }
  return users;
}

void RewriteIndices(ir::Program& program, NodeId at, absl::FunctionRef<bool(BufferId)> in,
                    absl::FunctionRef<ir::IndexList(ir::Block&, const ir::IndexList&)> rewrite) {
  ir::Block block = program.BlockOf(at);
  if (in(block.outputs[0])) block.indices = rewrite(block, block.indices);
  for (ir::ExprId& value : block.values) {
    value = program.pool.Rewrite(
        value,
        [&](const ir::Expr& load) {
          if (!in(load.buffer)) return ir::kNoExpr;
          const ir::IndexList indices = program.pool.IndicesOf(load);
          return program.pool.Load(load.buffer, load.dtype, rewrite(block, indices));
        },
        [](const ir::Index& index) { return index; });
  }
  program.BlockOf(at) = std::move(block);
}

}  // namespace hone::lower
