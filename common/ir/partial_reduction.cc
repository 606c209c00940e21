#include "common/ir/partial_reduction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hone::ir {
namespace {

using Replacements = std::vector<std::pair<AtomId, Index>>;

// Creates new iteration variables for the block's spatial ones.
void CopySpatial(Program& program, const Block& content, Block& to, Replacements& vars,
                 const Replacements& loops) {
  for (const BlockIter& iter : content.iters) {
    if (iter.reduce) continue;
    const AtomId var = program.atoms.AddVar(program.atoms[iter.var].name, iter.extent);
    vars.emplace_back(iter.var, Index::Of(var));
    to.iters.push_back({var, iter.extent, false, program.atoms.Substitute(iter.binding, loops)});
  }
}

// Builds the block of partial results: the loop is spatial, and every other reducing loop becomes
// an iteration variable.
Block Partial(Program& program, const Block& content, const std::vector<NodeId>& reducing,
              NodeId loop, size_t axis, const std::vector<BufferId>& buffers) {
  Block partial{.name = program.FreshBlockName(absl::StrCat(content.name, "_rf")),
                .reducer = content.reducer,
                .has_init = true,
                .exact = content.exact,
                .outputs = buffers};
  Replacements vars, loops;
  CopySpatial(program, content, partial, vars, {});
  const auto add = [&](NodeId at) {
    const Node& node = program.node(at);
    const AtomId var = program.atoms.AddVar(program.atoms[node.var].name, node.extent.value);
    loops.emplace_back(node.var, Index::Of(var));
    partial.iters.push_back({var, node.extent.value, at != loop, Index::Of(node.var)});
    return var;
  };
  const AtomId factor = add(loop);
  for (NodeId at : reducing) {
    if (at != loop) add(at);
  }
  for (const BlockIter& iter : content.iters) {
    if (iter.reduce) vars.emplace_back(iter.var, program.atoms.Substitute(iter.binding, loops));
  }
  for (const Index& index : content.indices)
    partial.indices.push_back(program.atoms.Substitute(index, vars));
  partial.indices.insert(partial.indices.begin() + static_cast<ptrdiff_t>(axis), Index::Of(factor));
  for (ExprId value : content.values) {
    partial.values.push_back(program.pool.Rewrite(
        value, [](const Expr&) { return kNoExpr; },
        [&](const Index& index) { return program.atoms.Substitute(index, vars); }));
  }
  for (const Condition& guard : content.guards)
    partial.guards.push_back({program.atoms.Substitute(guard.index, vars), guard.extent});
  // If the reduction has no iteration in a remainder, the partial result is the neutral element.
  for (const Condition& predicate : content.predicates) {
    if (DependsOnLoops(program, predicate.index, reducing)) {
      partial.guards.push_back(
          {program.atoms.Substitute(predicate.index, loops), predicate.extent});
    } else {
      partial.predicates.push_back(predicate);
    }
  }
  return partial;
}

// Creates buffers of partial results for the outputs of a block.
std::vector<BufferId> AddBuffers(Program& program, const Block& content, int64_t parts,
                                 size_t axis) {
  std::vector<BufferId> buffers;
  for (BufferId output : content.outputs) {
    Buffer buffer{
        .name = program.FreshBufferName(absl::StrCat(program.buffers[output].name, "_rf")),
        .dtype = program.buffers[output].dtype,
        .shape = program.buffers[output].shape,
        .constant = program.buffers[output].constant,
        .padded = program.buffers[output].padded};
    buffer.shape.insert(buffer.shape.begin() + static_cast<ptrdiff_t>(axis), parts);
    program.buffers.push_back(std::move(buffer));
    buffers.push_back(static_cast<BufferId>(program.buffers.size()) - 1);
  }
  return buffers;
}

}  // namespace

ReducingLoops ReducingLoopsOf(const Program& program, const Block& block, NodeId id) {
  ReducingLoops loops;
  for (NodeId at : program.LoopsAbove(id)) {
    const bool reduces = program.IsReductionLoop(at, block),
               spatial = program.IsSpatialLoop(at, block);
    if (reduces && spatial && loops.mixed == kNoNode) loops.mixed = at;
    if (reduces) loops.reducing.push_back(at);
    if (spatial && !loops.reducing.empty()) loops.inner.push_back(at);
  }
  return loops;
}

bool DependsOnLoops(const Program& program, const Index& index, const std::vector<NodeId>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](NodeId loop) {
    return program.atoms.DependsOn(index, program.node(loop).var);
  });
}

bool HasMixedPredicate(const Program& program, const Block& block,
                       const std::vector<NodeId>& reducing) {
  return std::any_of(
      block.predicates.begin(), block.predicates.end(), [&](const Condition& predicate) {
        if (!DependsOnLoops(program, predicate.index, reducing)) return false;
        bool spatial = false;
        program.atoms.VisitVars(predicate.index, [&](AtomId var) {
          spatial |= std::none_of(reducing.begin(), reducing.end(),
                                  [&](NodeId at) { return program.node(at).var == var; });
        });
        return spatial;
      });
}

PartialReduction DivideReduction(Program& program, NodeId block, NodeId loop, size_t axis) {
  const Block content = program.BlockOf(block);
  const ReducingLoops plan = ReducingLoopsOf(program, content, block);
  const int64_t parts = program.node(loop).extent.value;
  const std::vector<BufferId> buffers = AddBuffers(program, content, parts, axis);
  PartialReduction made{.combine = block};
  made.partial = program.NewBlock(Partial(program, content, plan.reducing, loop, axis, buffers));
  program.node(made.partial).annotations = program.node(block).annotations;
  program.node(block).annotations.clear();
  const NodeId parent = program.node(block).parent;
  program.node(parent).children[program.PositionInParent(block)] = made.partial;
  program.node(made.partial).parent = parent;
  program.node(block).parent = kNoNode;

  // The original block combines the partial results after the reduction.
  Block combine{.name = content.name,
                .reducer = content.reducer,
                .has_init = true,
                .exact = content.exact,
                .outputs = content.outputs};
  NodeId at = program.node(plan.reducing[0]).parent;
  size_t position = program.PositionInParent(plan.reducing[0]) + 1;
  Replacements vars, loops;
  const auto nest = [&](NodeId copied) {
    const NodeId copy =
        program.NewLoop(program.atoms[program.node(copied).var].name, program.node(copied).extent);
    loops.emplace_back(program.node(copied).var, Index::Of(program.node(copy).var));
    program.Insert(at, position, copy);
    made.loops.push_back(copy);
    at = copy;
    position = 0;
  };
  for (NodeId inner : plan.inner) nest(inner);
  nest(loop);
  CopySpatial(program, content, combine, vars, loops);
  const AtomId factor = program.atoms.AddVar(program.atoms[program.node(loop).var].name, parts);
  combine.iters.push_back(
      {factor, parts, true, program.atoms.Substitute(Index::Of(program.node(loop).var), loops)});
  for (const Index& index : content.indices)
    combine.indices.push_back(program.atoms.Substitute(index, vars));
  IndexList places = combine.indices;
  places.insert(places.begin() + static_cast<ptrdiff_t>(axis), Index::Of(factor));
  for (BufferId buffer : buffers)
    combine.values.push_back(program.pool.Load(buffer, program.buffers[buffer].dtype, places));
  for (const Condition& predicate : content.predicates) {
    if (!DependsOnLoops(program, predicate.index, plan.reducing))
      combine.predicates.push_back(
          {program.atoms.Substitute(predicate.index, loops), predicate.extent});
  }
  program.BlockOf(block) = std::move(combine);
  program.Insert(at, position, block);
  return made;
}

}  // namespace hone::ir
