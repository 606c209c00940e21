#include "common/schedule/rewrite/rewrite.h"

#include "absl/strings/str_cat.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/algorithm.h"
#include "common/schedule/primitive/data.h"

namespace hone::schedule {

using ir::NodeId;

namespace {

// Moves stages that depend only on constant inputs into the kernel that runs ahead of time.
void MoveConstantStages(ir::Program& program) {
  for (NodeId id : program.AllBlocks()) {
    const ir::Block& block = program.BlockOf(id);
    bool reads = false, constant = true;
    for (ir::ExprId value : block.values) {
      program.pool.VisitLoads(value, [&](const ir::Expr& load) {
        reads = true;
        constant &= program.buffers[load.buffer].constant;
      });
    }
    for (ir::BufferId output : block.outputs) constant &= !program.buffers[output].output;
    if (!reads || !constant) continue;
    for (ir::BufferId output : block.outputs) program.buffers[output].constant = true;
    const NodeId nest = program.NestOf(id);
    if (program.node(program.kernels[0]).name != ir::kPrepackKernel) {
      program.nodes.push_back({.kind = ir::Node::Kind::kKernel, .name = ir::kPrepackKernel});
      program.kernels.insert(program.kernels.begin(),
                             static_cast<NodeId>(program.nodes.size()) - 1);
    }
    program.Detach(nest);
    program.Append(program.kernels[0], nest);
  }
}

ir::Program Fresh(std::shared_ptr<const ir::Workload> workload) {
  ir::Program program = ir::Program::FromWorkload(std::move(workload));
  MoveConstantStages(program);
  return program;
}

}  // namespace

absl::Status RewriteAlgorithm(ir::Program& program, absl::string_view name, absl::string_view stage,
                              absl::Span<const int64_t> numbers) {
  const Digest state = program.StructuralDigest();
  if (state != ir::Program::FromWorkload(program.shared_workload()).StructuralDigest() &&
      state != Fresh(program.shared_workload()).StructuralDigest()) {
    return Illegal(program, program.kernels[0],
                   "rewrite: the program has already been changed; rewrites must come before all "
                   "other primitives");
  }
  auto rewritten = ApplyRewriteTo(program.workload(), name, stage, numbers);
  if (!rewritten.ok()) {
    const NodeId block = program.FindBlock(stage);
    if (!absl::IsFailedPrecondition(rewritten.status()) || block == ir::kNoNode)
      return rewritten.status();
    return Illegal(program, block, absl::StrCat("rewrite: ", rewritten.status().message()));
  }
  ir::Program fresh = Fresh(std::make_shared<const ir::Workload>(*std::move(rewritten)));
  // Keep the old nodes, marked as removed, so that a register that refers to one of them does not
  // refer to a new node.
  const auto offset = static_cast<NodeId>(program.nodes.size());
  std::vector<ir::Node> nodes(program.nodes.size());
  for (ir::Node& node : nodes) node.kind = ir::Node::Kind::kRemoved;
  for (ir::Node& node : fresh.nodes) {
    if (node.parent != ir::kNoNode) node.parent += offset;
    for (NodeId& child : node.children) child += offset;
    nodes.push_back(std::move(node));
  }
  for (NodeId& kernel : fresh.kernels) kernel += offset;
  fresh.nodes = std::move(nodes);
  fresh.extents = std::move(program.extents);  // earlier samplings refer to them
  program = std::move(fresh);
  return absl::OkStatus();
}

}  // namespace hone::schedule
