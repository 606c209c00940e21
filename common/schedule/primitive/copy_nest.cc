#include "common/schedule/primitive/copy_nest.h"

#include "absl/strings/str_cat.h"

namespace hone::schedule {

using ir::Index;
using ir::NodeId;

CopyPlace PlaceOfCopy(ir::Program& program, NodeId reader_nest, bool ahead) {
  const NodeId kernel = program.node(reader_nest).parent;
  if (!ahead || program.node(kernel).name == ir::kPrepackKernel)
    return {kernel, program.PositionInParent(reader_nest)};
  if (program.node(program.kernels[0]).name != ir::kPrepackKernel) {
    program.nodes.push_back({.kind = ir::Node::Kind::kKernel, .name = ir::kPrepackKernel});
    program.kernels.insert(program.kernels.begin(), static_cast<NodeId>(program.nodes.size()) - 1);
  }
  return {program.kernels[0], program.node(program.kernels[0]).children.size()};
}

NodeId AddCopyNest(ir::Program& program, ir::BufferId from, ir::BufferId to, NodeId parent,
                   size_t position) {
  ir::Block block{.name = program.FreshBlockName(program.buffers[to].name), .outputs = {to}};
  ir::IndexList indices;
  NodeId at = parent;
  const ir::Shape shape = program.buffers[to].shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const NodeId loop =
        program.NewLoop(absl::StrCat(block.name, ".a", d), ir::ExtentTable::Constant(shape[d]));
    const ir::AtomId var = program.atoms.AddVar(absl::StrCat("a", d), shape[d]);
    block.iters.push_back({var, shape[d], false, Index::Of(program.node(loop).var)});
    indices.push_back(Index::Of(var));
    program.Insert(at, d == 0 ? position : 0, loop);
    at = loop;
  }
  block.indices = indices;
  const ir::ExprId load = program.pool.Load(from, program.buffers[from].dtype, indices);
  block.values = {program.pool.Cast(program.buffers[to].dtype, load)};
  const NodeId node = program.NewBlock(std::move(block));
  program.Append(at, node);
  return node;
}

absl::StatusOr<ir::Scope> ScopeFromName(absl::string_view name) {
  for (const ir::Scope scope :
       {ir::Scope::kGlobal, ir::Scope::kShared, ir::Scope::kLocal, ir::Scope::kFragment}) {
    if (ir::ScopeName(scope) == name) return scope;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown scope '", name.substr(0, 64),
                                                 "'; known: global, shared, local, fragment"));
}

}  // namespace hone::schedule
