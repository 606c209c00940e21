#include "common/ir/region.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

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
  const auto inner = [&](AtomId var) {
    return std::find(vars.begin(), vars.end(), var) != vars.end();
  };
  std::vector<Interval> region;
  for (NodeId id : program.BlocksUnder(scope)) {
    const Block block = program.BlockOf(id);
    for (ExprId value : block.values) {
      std::vector<IndexList> accesses;
      program.pool.VisitLoads(value, [&](const Expr& load) {
        if (load.buffer == buffer) accesses.push_back(program.pool.IndicesOf(load));
      });
      for (const IndexList& indices : accesses) Merge(program, region, block, indices, inner);
    }
  }
  return region;
}

std::vector<Interval> RegionWritten(Program& program, BufferId buffer, NodeId scope) {
  const auto vars = InnerVars(program, scope);
  const auto inner = [&](AtomId var) {
    return std::find(vars.begin(), vars.end(), var) != vars.end();
  };
  std::vector<Interval> region;
  for (NodeId id : program.BlocksUnder(scope)) {
    const Block block = program.BlockOf(id);
    if (std::find(block.outputs.begin(), block.outputs.end(), buffer) == block.outputs.end())
      continue;
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

}  // namespace hone::ir
