#include "common/ir/region.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace hone::ir {
namespace {

// The extent of a loop, given its variable. The loop's node holds the derivation.
Extent ExtentOfVar(const Program& program, AtomId var) {
  for (const Node& node : program.nodes) {
    if (node.kind == Node::Kind::kLoop && node.var == var) return node.extent;
  }
  return ExtentTable::Constant(program.atoms[var].range.extent());
}

absl::InlinedVector<AtomId, 16> InnerVars(const Program& program, NodeId scope) {
  absl::InlinedVector<AtomId, 16> vars;
  const auto visit = [&](auto&& self, NodeId id) -> void {
    const Node& node = program.node(id);
    if (node.kind == Node::Kind::kLoop && id != scope) vars.push_back(node.var);
    for (NodeId child : node.children) self(self, child);
  };
  visit(visit, scope);
  return vars;
}

// Returns the positive factor f such that `whole` contains every term of `part` multiplied by f; 0
// if there is none, or if a variable of `part` is not an inner one.
int64_t MultipleIn(const AtomTable& atoms, const Index& part, const Index& whole,
                   absl::FunctionRef<bool(AtomId)> inner) {
  if (part.IsConstant()) return 0;
  const IndexTerm& first = part.terms()[0];
  const int64_t factor = whole.CoeffOf(first.atom) / first.coeff;
  if (factor <= 0) return 0;
  bool all_inner = true;
  atoms.VisitVars(part, [&](AtomId var) { all_inner &= inner(var); });
  if (!all_inner) return 0;
  for (const IndexTerm& term : part.terms()) {
    if (whole.CoeffOf(term.atom) != factor * term.coeff) return 0;
  }
  return factor;
}

void Merge(Program& program, std::vector<Interval>& region, const Block& block,
           const IndexList& indices, absl::FunctionRef<bool(AtomId)> inner) {
  const bool first = region.empty();
  for (size_t d = 0; d < indices.size(); ++d) {
    const Interval interval =
        IntervalOf(program, program.OverLoops(block, indices[d]), inner, block.predicates);
    if (first) {
      region.push_back(interval);
    } else {
      region[d] = Union(program, region[d], interval);
    }
  }
}

// Marks the inputs that nodes below `id` read.
void MarkReads(const Program& program, NodeId id, const std::vector<BufferId>& inputs,
               std::vector<bool>& reads) {
  const Node& node = program.node(id);
  if (node.kind == Node::Kind::kBlock) {
    const auto mark = [&](ExprId value) {
      program.pool.VisitLoads(value, [&](const Expr& load) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (program.buffers[load.buffer].tensor == inputs[i]) reads[i] = true;
        }
      });
    };
    for (const ExprId value : program.blocks[node.block].values) mark(value);
  }
  for (const NodeId child : node.children) MarkReads(program, child, inputs, reads);
}

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

Interval IntervalOf(Program& program, const Index& index, absl::FunctionRef<bool(AtomId)> inner,
                    const std::vector<Condition>& predicates) {
  const AtomTable& atoms = program.atoms;
  Index rest = index;
  Interval interval{Index(index.constant()), ExtentTable::Constant(1)};
  for (const Condition& predicate : predicates) {
    const int64_t factor = MultipleIn(atoms, predicate.index, rest, inner);
    if (factor == 0) continue;
    const Range range = atoms.RangeOf(predicate.index);
    const int64_t low = std::max<int64_t>(range.min, 0),
                  high = std::min(range.max, predicate.extent - 1);
    if (low > high || (low == range.min && high == range.max)) continue;
    rest.AddScaled(predicate.index, -factor);
    interval.min += factor * (low - predicate.index.constant());
    interval.extent =
        program.extents.Add(interval.extent, ExtentTable::Constant(factor * (high - low)));
  }
  for (const IndexTerm& term : rest.terms()) {
    bool any_inner = false, any_outer = false;
    atoms.VisitVars(Index::Of(term.atom),
                    [&](AtomId var) { (inner(var) ? any_inner : any_outer) = true; });
    if (!any_inner) {
      interval.min += Index::Of(term.atom, term.coeff);
      continue;
    }
    // Composite terms are bounded over all their variables; `any_outer` only makes the bound wider.
    const Range range = atoms.RangeOf(Index::Of(term.atom, term.coeff));
    interval.min += range.min;
    Extent span = ExtentTable::Constant(range.max - range.min);
    if (atoms[term.atom].kind == Atom::Kind::kVar) {
      const Extent extent = ExtentOfVar(program, term.atom);
      span = program.extents.Mul(program.extents.Add(extent, ExtentTable::Constant(-1)),
                                 ExtentTable::Constant(std::abs(term.coeff)));
    }
    interval.extent = program.extents.Add(interval.extent, span);
  }
  return interval;
}

Interval Union(Program& program, const Interval& a, const Interval& b) {
  const Index difference = b.min - a.min;
  if (difference.IsConstant()) {
    const int64_t shift = difference.constant();
    const Interval& low = shift >= 0 ? a : b;
    const Interval& high = shift >= 0 ? b : a;
    const int64_t distance = std::abs(shift);
    if (low.extent.value >= high.extent.value + distance) return low;
    return {low.min, program.extents.Add(high.extent, ExtentTable::Constant(distance))};
  }
  const Range ra = program.atoms.RangeOf(a.min), rb = program.atoms.RangeOf(b.min);
  const int64_t min = std::min(ra.min, rb.min);
  const int64_t max = std::max(ra.max + a.extent.value, rb.max + b.extent.value) - 1;
  return {Index(min), ExtentTable::Constant(max - min + 1)};
}

std::vector<Interval> RegionRead(Program& program, BufferId buffer, NodeId scope) {
  const auto vars = InnerVars(program, scope);
  const auto inner = [&](AtomId var) { return absl::c_linear_search(vars, var); };
  std::vector<Interval> region;
  for (NodeId id : program.BlocksUnder(scope)) {
    std::vector<IndexList> accesses;
    for (ExprId value : program.BlockOf(id).values) {
      program.pool.VisitLoads(value, [&](const Expr& load) {
        if (load.buffer == buffer) accesses.push_back(program.pool.IndicesOf(load));
      });
    }
    if (accesses.empty()) continue;
    const Block block = program.BlockOf(id);
    for (const IndexList& indices : accesses) Merge(program, region, block, indices, inner);
  }
  return region;
}

std::vector<Interval> RegionWritten(Program& program, BufferId buffer, NodeId scope) {
  const auto vars = InnerVars(program, scope);
  const auto inner = [&](AtomId var) { return absl::c_linear_search(vars, var); };
  std::vector<Interval> region;
  for (NodeId id : program.BlocksUnder(scope)) {
    if (!absl::c_linear_search(program.BlockOf(id).outputs, buffer)) continue;
    const Block block = program.BlockOf(id);
    Merge(program, region, block, block.indices, inner);
  }
  return region;
}

std::vector<bool> InputsThatRunReads(const Program& program) {
  const Workload& workload = program.workload();
  const std::vector<BufferId> inputs = workload.Inputs();
  std::vector<bool> reads;
  for (const BufferId id : inputs) reads.push_back(!workload.tensors[id].constant);
  for (const NodeId kernel : program.kernels) {
    if (program.node(kernel).name != kPrepackKernel) MarkReads(program, kernel, inputs, reads);
  }
  return reads;
}

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
  return absl::c_any_of(
      loops, [&](NodeId loop) { return program.atoms.DependsOn(index, program.node(loop).var); });
}

bool HasMixedPredicate(const Program& program, const Block& block,
                       const std::vector<NodeId>& reducing) {
  return absl::c_any_of(block.predicates, [&](const Condition& predicate) {
    if (!DependsOnLoops(program, predicate.index, reducing)) return false;
    bool spatial = false;
    program.atoms.VisitVars(predicate.index, [&](AtomId var) {
      spatial |= absl::c_none_of(reducing, [&](NodeId at) { return program.node(at).var == var; });
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
