#include <vector>

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

// Whether an index expression, written out, is longer than any useful schedule needs. Each fusion
// of loops that a split has divided unevenly may double the length of the previous one.
bool IsTooComplex(const ir::AtomTable& atoms) {
  constexpr int64_t kMostTerms = 4096;
  std::vector<int64_t> terms(atoms.size(), 1);
  for (ir::AtomId id = 0; id < atoms.size(); ++id) {
    for (const ir::IndexTerm& term : atoms[id].argument.terms()) terms[id] += terms[term.atom];
    if (terms[id] > kMostTerms) return true;
  }
  return false;
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
  int64_t inner = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    const ir::Node& node = program.node(loops[i]);
    const Index part = program.atoms.FloorDiv(value, inner);
    program.SubstituteUnder(loops[0], node.var,
                            i == 0 ? part : program.atoms.Mod(part, node.extent.value));
    inner *= node.extent.value;
  }
  if (IsTooComplex(program.atoms)) {
    return absl::FailedPreconditionError("fuse: the index expressions would become too long");
  }
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
