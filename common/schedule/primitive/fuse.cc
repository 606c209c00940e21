#include <algorithm>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Index;
using ir::NodeId;

namespace {

// Whether one of these index expressions, written out, is longer than any useful schedule needs.
// Each fusion of loops that a split has divided unevenly may double the length of the previous one.
bool AreTooComplex(const ir::AtomTable& atoms, const std::vector<Index>& indices) {
  constexpr int64_t kMostTerms = 4096;
  std::vector<int64_t> terms(atoms.size(), 1);
  for (ir::AtomId id = 0; id < atoms.size(); ++id) {
    for (const ir::IndexTerm& term : atoms[id].argument.terms()) terms[id] += terms[term.atom];
    terms[id] = std::min(terms[id], kMostTerms + 1);
  }
  return std::any_of(indices.begin(), indices.end(), [&](const Index& index) {
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

}  // namespace

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
      index = program.atoms.Substitute(
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

absl::Status ApplyFuse(Call& call) {
  std::vector<NodeId> loops;
  for (int i = 0; i < call.operands(); ++i) {
    HONE_ASSIGN_OR_RETURN(loops.emplace_back(), call.Loop(i));
  }
  HONE_ASSIGN_OR_RETURN(const NodeId fused, Fuse(call.program(), loops));
  return call.Return({fused});
}

}  // namespace hone::schedule
