#include "common/schedule/primitive/loops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/program.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/tensorize.h"

namespace hone::schedule {
namespace {

using ir::Extent;
using ir::ExtentTable;
using ir::Index;
using ir::NodeId;

// Whether one of these index expressions, written out, is longer than any useful schedule needs.
// Each fusion of loops that a split has divided unevenly may double the length of the previous one.
bool AreTooComplex(const ir::AtomTable& atoms, const std::vector<Index>& indices) {
  constexpr int64_t kMostTerms = 4096;
  std::vector<int64_t> terms(atoms.size(), 1);
  for (ir::AtomId id = 0; id < atoms.size(); ++id) {
    for (const ir::IndexTerm& term : atoms[id].argument.terms()) terms[id] += terms[term.atom];
    terms[id] = std::min(terms[id], kMostTerms + 1);
  }
  return absl::c_any_of(indices, [&](const Index& index) {
    return std::any_of(index.terms().begin(), index.terms().end(),
                       [&](const ir::IndexTerm& term) { return terms[term.atom] > kMostTerms; });
  });
}

// Calls `visit` with the indices over loop variables of every block under a node.
void VisitIndicesUnder(ir::Program& program, NodeId id, absl::FunctionRef<void(Index&)> visit) {
  for (const NodeId node : program.BlocksUnder(id)) {
    ir::Block& block = program.BlockOf(node);
    for (ir::BlockIter& iter : block.iters) visit(iter.binding);
    for (ir::Condition& predicate : block.predicates) visit(predicate.index);
  }
}

constexpr size_t kMaxRanges = 16;
constexpr size_t kMaxBlocks = 256;

}  // namespace

absl::StatusOr<std::vector<NodeId>> Split(ir::Program& program, NodeId loop,
                                          absl::Span<const Extent> given) {
  absl::InlinedVector<Extent, 8> factors(given.begin(), given.end());
  const Extent extent = program.node(loop).extent;
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "split: the loop is not serial");
  if (!program.node(loop).annotations.empty())
    return Illegal(program, loop, "split: the loop is annotated");
  if (factors.size() < 2) return Illegal(program, loop, "split: needs at least two factors");
  Extent inner = ir::ExtentTable::Constant(1);
  for (size_t i = factors.size() - 1; i > 0; --i) {
    if (factors[i].value < 1 || factors[i].value > extent.value) {
      return Illegal(program, loop,
                     absl::StrCat("split: factor ", factors[i].value,
                                  " is not between 1 and the extent ", extent.value));
    }
    if (inner.value > 4 * extent.value / factors[i].value + 1) {
      return Illegal(program, loop, "split: the inner factors exceed the extent");
    }
    inner = program.extents.Mul(factors[i], inner);
  }
  const int64_t needed = ir::CeilDivInt(extent.value, inner.value);
  if (factors[0].value == 0) factors[0] = program.extents.CeilDiv(extent, inner);
  if (factors[0].value != needed) {
    return Illegal(program, loop,
                   absl::StrCat("split: the outer factor is ", factors[0].value, ", but ", needed,
                                " iterations cover the extent ", extent.value));
  }
  const std::string name = program.atoms[program.node(loop).var].name;
  std::vector<NodeId> loops;
  loops.reserve(factors.size());
  Index value;
  for (size_t i = 0; i < factors.size(); ++i) {
    loops.push_back(program.NewLoop(absl::StrCat(name, "_", i), factors[i]));
    value *= factors[i].value;
    value.AddTerm(program.node(loops.back()).var, 1);
  }
  const ir::AtomId var = program.node(loop).var;
  const NodeId parent = program.node(loop).parent;
  const size_t position = program.PositionInParent(loop);
  program.SubstituteUnder(loop, var, value);
  if (factors[0].value * inner.value > extent.value) {
    for (NodeId block : program.BlocksUnder(loop))
      program.BlockOf(block).predicates.push_back({value, extent.value});
  }
  program.node(loops.back()).children = program.node(loop).children;
  for (NodeId child : program.node(loops.back()).children)
    program.node(child).parent = loops.back();
  for (size_t i = 0; i + 1 < loops.size(); ++i) program.Append(loops[i], loops[i + 1]);
  program.node(parent).children[position] = loops[0];
  program.node(loops[0]).parent = parent;
  program.node(loop).children.clear();
  program.Remove(loop);
  return loops;
}

absl::StatusOr<NodeId> Fuse(ir::Program& program, absl::Span<const NodeId> loops) {
  if (loops.empty()) return absl::InvalidArgumentError("fuse: needs a loop");
  std::string name;
  ir::Extent extent = ir::ExtentTable::Constant(1);
  for (size_t i = 0; i < loops.size(); ++i) {
    const ir::Node& node = program.node(loops[i]);
    if (node.loop != ir::LoopKind::kSerial)
      return Illegal(program, loops[i], "fuse: the loop is not serial");
    if (loops.size() > 1 && !node.annotations.empty())
      return Illegal(program, loops[i], "fuse: the loop is annotated");
    if (i > 0 && (node.parent != loops[i - 1] || program.node(loops[i - 1]).children.size() != 1)) {
      return Illegal(program, loops[i], "fuse: the loop is not the only content of the one before");
    }
    if (node.extent.value > ir::kMaxDomain / extent.value)
      return Illegal(program, loops[i], "fuse: the extent overflows");
    extent = program.extents.Mul(extent, node.extent);
    absl::StrAppend(&name, i ? "." : "", program.atoms[node.var].name);
  }
  if (loops.size() == 1) return loops[0];
  const NodeId fused = program.NewLoop(
      name.size() > 40 ? absl::StrCat("fused", program.atoms.size()) : name, extent);
  const Index value = Index::Of(program.node(fused).var);
  std::vector<Index> indices;
  VisitIndicesUnder(program, loops[0], [&](const Index& index) { indices.push_back(index); });
  int64_t inner = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    const ir::Node& node = program.node(loops[i]);
    const Index part = program.atoms.FloorDiv(value, inner);
    const Index digit = i == 0 ? part : program.atoms.Mod(part, node.extent.value);
    for (Index& index : indices) {
      program.atoms.SubstituteIn(
          index, [&](ir::AtomId var) { return var == node.var ? &digit : nullptr; });
    }
    inner *= node.extent.value;
  }
  if (AreTooComplex(program.atoms, indices)) {
    program.Remove(fused);
    return Illegal(program, loops[0], "fuse: the index expressions would become too long");
  }
  size_t next = 0;
  VisitIndicesUnder(program, loops[0], [&](Index& index) { index = std::move(indices[next++]); });
  const NodeId parent = program.node(loops[0]).parent;
  const size_t position = program.PositionInParent(loops[0]);
  program.node(fused).children = program.node(loops.back()).children;
  for (NodeId child : program.node(fused).children) program.node(child).parent = fused;
  program.node(parent).children[position] = fused;
  program.node(fused).parent = parent;
  for (NodeId loop : loops) {
    program.node(loop).children.clear();
    program.Remove(loop);
  }
  return fused;
}

absl::StatusOr<std::vector<NodeId>> LoopPartition(ir::Program& program, NodeId loop,
                                                  absl::Span<const Extent> at) {
  const Extent extent = program.node(loop).extent;
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "loop_partition: the loop is not serial");
  if (at.empty()) return Illegal(program, loop, "loop_partition: needs at least one point");
  int64_t last = 0;
  for (const Extent& point : at) {
    if (point.value <= last || point.value >= extent.value) {
      return Illegal(program, loop,
                     absl::StrCat("loop_partition: ", point.value, " is not between ", last,
                                  " and the extent ", extent.value));
    }
    last = point.value;
  }
  const std::vector<NodeId> blocks = program.BlocksUnder(loop);
  if (at.size() >= kMaxRanges || blocks.size() * (at.size() + 1) > kMaxBlocks) {
    return Illegal(
        program, loop,
        absl::StrCat("loop_partition: ", at.size() + 1, " ranges of ", blocks.size(),
                     " blocks; at most ", kMaxRanges, " ranges and ", kMaxBlocks, " blocks"));
  }
  for (NodeId block : blocks) {
    if (program.IsReductionLoop(loop, program.BlockOf(block)) &&
        program.IsSpatialLoop(loop, program.BlockOf(block))) {
      return Illegal(
          program, loop,
          "loop_partition: the loop carries spatial and reduction iterations of a block");
    }
  }
  std::vector<NodeId> parts;
  HONE_RETURN_IF_ERROR(KeepConcurrencyLegal(program, {loop}, [&](ir::Program& p) {
    const ir::Node original = p.node(loop);
    const std::string name = p.atoms[original.var].name;
    const size_t position = p.PositionInParent(loop);
    const auto size_of = [&](size_t part) {
      const Extent end = part < at.size() ? at[part] : extent;
      if (part == 0) return end;
      return p.extents.Add(end, p.extents.Mul(at[part - 1], ExtentTable::Constant(-1)));
    };
    for (size_t part = 0; part <= at.size(); ++part) {
      const NodeId range = p.NewLoop(absl::StrCat(name, "_", part), size_of(part));
      p.node(range).annotations = original.annotations;
      parts.push_back(range);
      if (part == 0) continue;
      ir::Replacements replaced = {
          {original.var, Index::Of(p.node(range).var) + at[part - 1].value}};
      for (NodeId child : original.children)
        p.Append(range, ir::Clone(p, child, "_part", replaced));
      // The first iteration of a reduction, which stores the neutral element, is in the first
      // range.
      for (NodeId block : p.BlocksUnder(range)) {
        if (p.IsReductionLoop(range, p.BlockOf(block))) p.BlockOf(block).has_init = false;
      }
      p.Insert(original.parent, position + part, range);
    }
    p.SubstituteUnder(loop, original.var, Index::Of(p.node(parts[0]).var));
    p.node(parts[0]).children = original.children;
    for (NodeId child : original.children) p.node(child).parent = parts[0];
    p.node(original.parent).children[position] = parts[0];
    p.node(parts[0]).parent = original.parent;
    p.node(loop).children.clear();
    p.Remove(loop);
  }));
  return parts;
}

absl::StatusOr<NodeId> AddUnitLoop(ir::Program& program, NodeId node) {
  const NodeId parent = program.node(node).parent;
  if (InTensorNest(program, parent))
    return Illegal(program, node, "add_unit_loop: the place is in a tensor nest");
  if (program.IsLoop(parent) && program.node(parent).loop == ir::LoopKind::kVectorized) {
    return Illegal(program, parent, "add_unit_loop: the loop around is vectorized");
  }
  const size_t position = program.PositionInParent(node);
  const NodeId unit = program.NewLoop("unit", ir::ExtentTable::Constant(1));
  program.node(parent).children[position] = unit;
  program.node(unit).parent = parent;
  program.node(node).parent = ir::kNoNode;
  program.Append(unit, node);
  return unit;
}

}  // namespace hone::schedule
