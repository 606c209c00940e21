#include <algorithm>

#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status Reorder(ir::Program& program, absl::Span<const NodeId> loops) {
  if (loops.size() < 2) return absl::InvalidArgumentError("reorder: needs two loops");
  const auto named = [&](NodeId id) { return std::find(loops.begin(), loops.end(), id) != loops.end(); };
  for (size_t i = 0; i < loops.size(); ++i) {
    if (std::count(loops.begin(), loops.end(), loops[i]) != 1) return Illegal(program, loops[i], "reorder: the loop is named twice");
    const ir::LoopKind kind = program.node(loops[i]).loop;
    if (kind == ir::LoopKind::kParallel || kind == ir::LoopKind::kVectorized) {
      return Illegal(program, loops[i], "reorder: the loop is parallel or vectorized already");
    }
  }
  // The chain from the outermost named loop down to the innermost.
  NodeId top = loops[0], bottom = loops[0];
  for (NodeId loop : loops) {
    if (program.IsUnder(top, loop)) top = loop;
    if (program.IsUnder(loop, bottom)) bottom = loop;
  }
  std::vector<NodeId> chain;
  for (NodeId at = bottom;; at = program.node(at).parent) {
    if (at == ir::kNoNode || program.node(at).kind != ir::Node::Kind::kLoop) {
      return Illegal(program, bottom, "reorder: the loops are not on one path");
    }
    if (at != bottom && program.node(at).children.size() != 1) {
      return Illegal(program, at, "reorder: the loop has other content beside the nest");
    }
    chain.push_back(at);
    if (at == top) break;
  }
  std::reverse(chain.begin(), chain.end());
  for (NodeId loop : loops) {
    if (std::find(chain.begin(), chain.end(), loop) == chain.end()) return Illegal(program, loop, "reorder: the loops are not on one path");
  }
  // Below a loop over which a block reduces nothing else may use the block's result: it would see unfinished sums.
  const std::vector<NodeId> below = program.BlocksUnder(bottom);
  for (NodeId loop : loops) {
    for (NodeId block : below) {
      const ir::Block& reducing = program.BlockOf(block);
      if (!program.IsReductionLoop(loop, reducing)) continue;
      for (NodeId other : below) {
        if (other == block) continue;
        const auto& outputs = program.BlockOf(other).outputs;
        if (program.Reads(program.BlockOf(other), reducing.outputs[0]) ||
            std::find(outputs.begin(), outputs.end(), reducing.outputs[0]) != outputs.end()) {
          return Illegal(program, loop, "reorder: a block reduces over this loop and another one below uses its result");
        }
      }
    }
  }
  const NodeId parent = program.node(top).parent;
  const size_t position = program.PositionInParent(top);
  const auto content = program.node(bottom).children;
  size_t next = 0;
  std::vector<NodeId> order;
  for (NodeId loop : chain) order.push_back(named(loop) ? loops[next++] : loop);
  for (size_t i = 0; i < order.size(); ++i) {
    ir::Node& node = program.node(order[i]);
    node.parent = i == 0 ? parent : order[i - 1];
    node.children.clear();
    if (i + 1 < order.size()) node.children.push_back(order[i + 1]);
  }
  program.node(order.back()).children = content;
  for (NodeId child : content) program.node(child).parent = order.back();
  program.node(parent).children[position] = order[0];
  return absl::OkStatus();
}

absl::Status ApplyReorder(Call& call) {
  std::vector<NodeId> loops;
  for (int i = 0; i < call.operands(); ++i) {
    HONE_ASSIGN_OR_RETURN(loops.emplace_back(), call.Loop(i));
  }
  return Reorder(call.program(), loops);
}

}  // namespace hone::schedule
