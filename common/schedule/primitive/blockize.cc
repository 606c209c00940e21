#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/tensor_nest.h"
#include "common/schedule/primitive/tensorize.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::LoopKind;
using ir::NodeId;

absl::Status Blockize(ir::Program& program, NodeId loop) {
  const NodeId parent = program.node(loop).parent;
  if (InTensorNest(program, parent))
    return Illegal(program, loop, "blockize: the loop is in a tensor nest");
  std::vector<NodeId> chain;
  for (NodeId at = loop;; at = program.node(at).children[0]) {
    if (program.IsBlock(at)) break;
    const ir::Node& node = program.node(at);
    if (node.loop != LoopKind::kSerial)
      return Illegal(program, at, "blockize: the loop is not serial");
    if (!node.annotations.empty()) return Illegal(program, at, "blockize: the loop is annotated");
    if (node.children.size() != 1)
      return Illegal(program, at, "blockize: the loop contains more than one nest");
    chain.push_back(at);
  }
  for (NodeId at : chain) program.node(at).loop = LoopKind::kTensor;
  return absl::OkStatus();
}

absl::Status ApplyBlockize(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  return Blockize(call.program(), loop);
}

}  // namespace hone::schedule
