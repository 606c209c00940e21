#include "worker/compile/lower/static_parts.h"

#include <algorithm>
#include <numeric>

namespace hone::lower {

using ir::AtomId;
using ir::Index;

StaticParts::StaticParts(const LoweredProgram& program)
    : p_(program), kind_(program.atoms.size(), Kind::kUnknown) {
  for (const Stmt& stmt : p_.stmts) {
    if (stmt.kind != Stmt::Kind::kFor) continue;
    kind_[stmt.var] = stmt.loop == ir::LoopKind::kVectorized ? Kind::kLane
                      : LoweredProgram::IsStatic(stmt.loop)  ? Kind::kUnrolled
                                                             : Kind::kRuntime;
  }
}

StaticParts::Kind StaticParts::KindOf(AtomId var) const {
  return var < static_cast<AtomId>(kind_.size()) ? kind_[var] : Kind::kRuntime;
}

bool StaticParts::IsStatic(AtomId var) const {
  return KindOf(var) == Kind::kUnrolled || KindOf(var) == Kind::kLane;
}

StaticParts::Parts StaticParts::Of(const Index& index) const {
  Parts parts;
  parts.runtime += index.constant();
  for (const ir::IndexTerm& term : index.terms()) {
    bool any_static = false, any_runtime = false;
    p_.atoms.VisitVars(Index::Of(term.atom),
                       [&](AtomId var) { (IsStatic(var) ? any_static : any_runtime) = true; });
    parts.mixed |= any_static && any_runtime;
    (any_static ? parts.fixed : parts.runtime) += Index::Of(term.atom, term.coeff);
  }
  return parts;
}

TileCondition StaticParts::Of(const ir::Condition& condition) const {
  const Parts parts = Of(condition.index);
  int64_t step = 0;
  for (const ir::IndexTerm& term : parts.fixed.terms()) step = std::gcd(step, term.coeff);
  return {parts.runtime, p_.atoms.RangeOf(parts.fixed), std::max<int64_t>(step, 1),
          condition.extent, LanesOf(parts.fixed)};
}

int64_t StaticParts::LanesOf(const Index& index) const {
  int64_t lanes = 1;
  p_.atoms.VisitVars(index, [&](AtomId var) {
    if (KindOf(var) == Kind::kLane) lanes = p_.atoms[var].range.extent();
  });
  return lanes;
}

double StaticParts::StoresIn(StmtId id) const {
  if (id == kNoStmt) return 0;
  const Stmt& stmt = p_.stmts[id];
  if (stmt.kind == Stmt::Kind::kStore) {
    double stores = 1;
    for (const auto* list : {&stmt.conditions, &stmt.guards}) {
      for (const ir::Condition& condition : *list) {
        if (HasRuntimePart(condition.index)) continue;
        const ir::Range range = p_.atoms.RangeOf(condition.index);
        const int64_t inside =
            std::min(range.max, condition.extent - 1) - std::max<int64_t>(range.min, 0) + 1;
        const int64_t lanes = LanesOf(condition.index);
        stores *= static_cast<double>(ir::CeilDivInt(std::max<int64_t>(inside, 0), lanes)) /
                  static_cast<double>(ir::CeilDivInt(range.extent(), lanes));
      }
    }
    return stores;
  }
  double stores = 0;
  for (StmtId child : stmt.children) stores += StoresIn(child);
  const bool unrolled = stmt.kind == Stmt::Kind::kFor && stmt.loop == ir::LoopKind::kUnrolled;
  return unrolled ? stores * static_cast<double>(stmt.extent) : stores;
}

}  // namespace hone::lower
