#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/one_to_one.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/tensor_nest.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::AtomId;
using ir::BlockIter;
using ir::Index;
using ir::NodeId;

namespace {

using Replacements = std::vector<std::pair<AtomId, Index>>;

Index Replaced(ir::Program& program, const Index& index, const Replacements& replaced) {
  return program.atoms.Substitute(index, [&](AtomId var) -> const Index* {
    for (const auto& [from, to] : replaced) {
      if (from == var) return &to;
    }
    return nullptr;
  });
}

bool IsSpatial(const ir::Program& program, NodeId loop, const ir::Block& block) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const BlockIter& iter) {
    return !iter.reduce && program.atoms.DependsOn(iter.binding, program.node(loop).var);
  });
}

// The analysis of a legal rfactor, made before anything changes.
struct Plan {
  std::vector<NodeId> reducing;  // loops, outermost first
  std::vector<NodeId> inner;     // spatial loops under the outermost of them
};

bool Mentions(const ir::Program& program, const Index& index, const std::vector<NodeId>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](NodeId loop) {
    return program.atoms.DependsOn(index, program.node(loop).var);
  });
}

absl::StatusOr<Plan> Check(ir::Program& program, NodeId block, NodeId loop) {
  const ir::Block content = program.BlockOf(block);
  if (content.reducer == ir::Reducer::kNone)
    return Illegal(program, block, "rfactor: the block does not reduce");
  if (InTensorNest(program, block))
    return Illegal(program, block, "rfactor: the block is in a tensor nest");
  if (!content.has_init) return Illegal(program, block, "rfactor: the block has no init");
  const ir::DType dtype = program.buffers[content.outputs[0]].dtype;
  if (ir::AccumulatorOf(content.reducer, dtype) != dtype) {
    return Illegal(program, block,
                   absl::StrCat("rfactor: partial results would be rounded to ",
                                ir::DTypeName(dtype), "; after cache_write they are f32"));
  }
  if (program.WritersOf(content.outputs[0]).size() != 1) {
    return Illegal(program, block, "rfactor: another block writes the same buffer");
  }
  if (!program.IsUnder(block, loop))
    return Illegal(program, loop, "rfactor: the loop is not above the block");
  if (!program.IsReductionLoop(loop, content))
    return Illegal(program, loop, "rfactor: the block does not reduce over the loop");
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "rfactor: the loop is not serial");
  Plan plan;
  for (NodeId at : program.LoopsAbove(block)) {
    const bool reduces = program.IsReductionLoop(at, content),
               spatial = IsSpatial(program, at, content);
    if (reduces && spatial)
      return Illegal(program, at, "rfactor: the loop carries spatial and reduction iterations");
    if (reduces) plan.reducing.push_back(at);
    if (spatial && !plan.reducing.empty()) plan.inner.push_back(at);
  }
  for (const ir::Condition& predicate : content.predicates) {
    if (!Mentions(program, predicate.index, plan.reducing)) continue;
    bool spatial = false;
    program.atoms.VisitVars(predicate.index, [&](AtomId var) {
      spatial |= std::none_of(plan.reducing.begin(), plan.reducing.end(),
                              [&](NodeId at) { return program.node(at).var == var; });
    });
    if (spatial)
      return Illegal(program, block,
                     "rfactor: a predicate of the block mixes spatial and reduction loops");
  }
  for (NodeId other : program.BlocksUnder(plan.reducing[0])) {
    if (other == block) continue;
    for (ir::BufferId output : content.outputs) {
      const auto& outputs = program.BlockOf(other).outputs;
      if (program.Reads(program.BlockOf(other), output) ||
          std::find(outputs.begin(), outputs.end(), output) != outputs.end()) {
        return Illegal(program, other,
                       "rfactor: another block under the reduction uses its result");
      }
    }
  }
  if (!OneToOneUnder(program, block, plan.reducing[0])) {
    return Illegal(program, plan.reducing[0],
                   "rfactor: iterations of the loop may compute the same elements");
  }
  return plan;
}

// Creates new iteration variables for the block's spatial ones.
void CopySpatial(ir::Program& program, const ir::Block& content, ir::Block& to, Replacements& vars,
                 const Replacements& loops) {
  for (const BlockIter& iter : content.iters) {
    if (iter.reduce) continue;
    const AtomId var = program.atoms.AddVar(program.atoms[iter.var].name, iter.extent);
    vars.emplace_back(iter.var, Index::Of(var));
    to.iters.push_back({var, iter.extent, false, Replaced(program, iter.binding, loops)});
  }
}

// Builds the block of partial results: the loop is spatial, and every other reducing loop becomes
// an iteration variable.
ir::Block Partial(ir::Program& program, const ir::Block& content, const Plan& plan, NodeId loop,
                  size_t axis, const std::vector<ir::BufferId>& buffers) {
  ir::Block partial{.name = program.FreshBlockName(absl::StrCat(content.name, "_rf")),
                    .reducer = content.reducer,
                    .has_init = true,
                    .exact = content.exact,
                    .outputs = buffers};
  Replacements vars, loops;
  CopySpatial(program, content, partial, vars, {});
  const auto add = [&](NodeId at) {
    const ir::Node& node = program.node(at);
    const AtomId var = program.atoms.AddVar(program.atoms[node.var].name, node.extent.value);
    loops.emplace_back(node.var, Index::Of(var));
    partial.iters.push_back({var, node.extent.value, at != loop, Index::Of(node.var)});
    return var;
  };
  const AtomId factor = add(loop);
  for (NodeId at : plan.reducing) {
    if (at != loop) add(at);
  }
  for (const BlockIter& iter : content.iters) {
    if (iter.reduce) vars.emplace_back(iter.var, Replaced(program, iter.binding, loops));
  }
  for (const Index& index : content.indices)
    partial.indices.push_back(Replaced(program, index, vars));
  partial.indices.insert(partial.indices.begin() + axis, Index::Of(factor));
  for (ir::ExprId value : content.values) {
    partial.values.push_back(program.pool.Rewrite(
        value, [](const ir::Expr&) { return ir::kNoExpr; },
        [&](const Index& index) { return Replaced(program, index, vars); }));
  }
  for (const ir::Condition& guard : content.guards)
    partial.guards.push_back({Replaced(program, guard.index, vars), guard.extent});
  // If the reduction has no iteration in a remainder, the partial result is the neutral element.
  for (const ir::Condition& predicate : content.predicates) {
    if (Mentions(program, predicate.index, plan.reducing)) {
      partial.guards.push_back({Replaced(program, predicate.index, loops), predicate.extent});
    } else {
      partial.predicates.push_back(predicate);
    }
  }
  return partial;
}

}  // namespace

absl::StatusOr<NodeId> Rfactor(ir::Program& program, NodeId block, NodeId loop, int64_t axis) {
  HONE_ASSIGN_OR_RETURN(const Plan plan, Check(program, block, loop));
  const ir::Block content = program.BlockOf(block);
  const auto rank = static_cast<int64_t>(content.indices.size());
  if (axis == -1) axis = rank;
  if (axis < 0 || axis > rank || rank == ir::kMaxRank) {
    return Illegal(program, block,
                   absl::StrCat("rfactor: no dimension ", axis, " can be added to ", rank,
                                "; at most ", ir::kMaxRank));
  }
  NodeId made = ir::kNoNode;
  const auto place = static_cast<size_t>(axis);
  HONE_RETURN_IF_ERROR(KeepConcurrencyLegal(program, [&](ir::Program& p) {
    std::vector<ir::BufferId> buffers;
    for (ir::BufferId output : content.outputs) {
      ir::Buffer buffer{.name = p.FreshBufferName(absl::StrCat(p.buffers[output].name, "_rf")),
                        .dtype = p.buffers[output].dtype,
                        .shape = p.buffers[output].shape,
                        .constant = p.buffers[output].constant,
                        .padded = p.buffers[output].padded};
      buffer.shape.insert(buffer.shape.begin() + place, p.node(loop).extent.value);
      p.buffers.push_back(std::move(buffer));
      buffers.push_back(static_cast<ir::BufferId>(p.buffers.size()) - 1);
    }
    made = p.NewBlock(Partial(p, content, plan, loop, place, buffers));
    p.node(made).annotations = p.node(block).annotations;
    p.node(block).annotations.clear();
    const NodeId parent = p.node(block).parent;
    p.node(parent).children[p.PositionInParent(block)] = made;
    p.node(made).parent = parent;
    p.node(block).parent = ir::kNoNode;

    // The original block combines the partial results after the reduction.
    ir::Block combine{.name = content.name,
                      .reducer = content.reducer,
                      .has_init = true,
                      .exact = content.exact,
                      .outputs = content.outputs};
    NodeId at = p.node(plan.reducing[0]).parent;
    size_t position = p.PositionInParent(plan.reducing[0]) + 1;
    Replacements vars, loops;
    const auto nest = [&](NodeId copied) {
      const NodeId copy = p.NewLoop(p.atoms[p.node(copied).var].name, p.node(copied).extent);
      loops.emplace_back(p.node(copied).var, Index::Of(p.node(copy).var));
      p.Insert(at, position, copy);
      at = copy;
      position = 0;
    };
    for (NodeId inner : plan.inner) nest(inner);
    nest(loop);
    CopySpatial(p, content, combine, vars, loops);
    const AtomId factor = p.atoms.AddVar(p.atoms[p.node(loop).var].name, p.node(loop).extent.value);
    combine.iters.push_back(
        {factor, p.node(loop).extent.value, true, Replaced(p, Index::Of(p.node(loop).var), loops)});
    for (const Index& index : content.indices) combine.indices.push_back(Replaced(p, index, vars));
    ir::IndexList places = combine.indices;
    places.insert(places.begin() + place, Index::Of(factor));
    for (ir::BufferId buffer : buffers)
      combine.values.push_back(p.pool.Load(buffer, p.buffers[buffer].dtype, places));
    for (const ir::Condition& predicate : content.predicates) {
      if (!Mentions(p, predicate.index, plan.reducing))
        combine.predicates.push_back({Replaced(p, predicate.index, loops), predicate.extent});
    }
    p.BlockOf(block) = std::move(combine);
    p.Insert(at, position, block);
  }));
  return made;
}

absl::Status ApplyRfactor(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(1));
  int64_t axis = -1;
  if (call.operands() > 2) {
    HONE_ASSIGN_OR_RETURN(axis, call.IntBetween(2, -1, ir::kMaxRank));
  }
  HONE_ASSIGN_OR_RETURN(const NodeId made, Rfactor(call.program(), block, loop, axis));
  return call.Return({made});
}

}  // namespace hone::schedule
