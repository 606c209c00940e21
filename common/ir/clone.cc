#include "common/ir/clone.h"

#include "absl/strings/str_cat.h"

namespace hone::ir {

NodeId Clone(Program& program, NodeId id, absl::string_view suffix, Replacements& replaced) {
  const Node node = program.node(id);
  const auto replacement = [&](AtomId var) -> const Index* {
    for (const auto& [from, to] : replaced) {
      if (from == var) return &to;
    }
    return nullptr;
  };
  if (node.kind == Node::Kind::kBlock) {
    Block block = program.BlockOf(id);
    block.name = program.FreshBlockName(absl::StrCat(block.name, suffix));
    for (BlockIter& iter : block.iters)
      iter.binding = program.atoms.Substitute(iter.binding, replacement);
    for (Condition& predicate : block.predicates)
      predicate.index = program.atoms.Substitute(predicate.index, replacement);
    const NodeId copy = program.NewBlock(std::move(block));
    program.node(copy).annotations = node.annotations;
    return copy;
  }
  const NodeId copy = program.NewLoop(program.atoms[node.var].name, node.extent);
  program.node(copy).loop = node.loop;
  program.node(copy).axis = node.axis;
  program.node(copy).annotations = node.annotations;
  replaced.emplace_back(node.var, Index::Of(program.node(copy).var));
  for (NodeId child : node.children) program.Append(copy, Clone(program, child, suffix, replaced));
  return copy;
}

}  // namespace hone::ir
