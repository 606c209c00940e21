// Loop-invariant floats, such as a row's maximum or the reciprocal root of its variance, are
// computed before the loop.
#include <algorithm>

#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::AtomId;
using ir::Op;
using llvm::Value;
using lower::Storage;

void FunctionEmitter::EnterLoop(llvm::Instruction* preheader, lower::StmtId body) {
  Scope& scope = scopes_.back();
  scope.preheader = preheader;
  const auto visit = [&](auto&& self, lower::StmtId id) -> void {
    if (id == lower::kNoStmt) return;
    const lower::Stmt& stmt = state_.program.stmts[id];
    scope.written.insert(stmt.outputs.begin(), stmt.outputs.end());
    for (const lower::StmtId child : stmt.children) self(self, child);
  };
  visit(visit, body);
}

const FunctionEmitter::Uses& FunctionEmitter::UsesOf(ir::ExprId id) {
  const auto [found, inserted] = uses_.try_emplace(id);
  Uses& uses = found->second;
  if (!inserted) return uses;
  const lower::LoweredProgram& program = state_.program;
  program.pool.Visit(id, [&](const ir::Expr& expr) {
    uses.floating &= ir::IsFloat(expr.dtype);
    if (expr.op == Op::kIndex) return;
    if (expr.op != Op::kLoad) return;
    uses.buffers.push_back(expr.buffer);
    // No condition has been checked before the loop, so the address must always be valid.
    const ir::Index& offset = program.pool.IndicesOf(expr)[0];
    const ir::Range range = program.atoms.RangeOf(offset);
    const Storage& storage = program.storage[expr.buffer];
    uses.floating &=
        storage.kind != Storage::Kind::kRegister && range.min >= 0 && range.max < storage.elements;
    program.atoms.VisitVars(offset, [&](AtomId var) {
      if (std::find(uses.vars.begin(), uses.vars.end(), var) == uses.vars.end()) {
        uses.vars.push_back(var);
      }
    });
  });
  uses.floating &= !uses.buffers.empty();
  return uses;
}

int FunctionEmitter::InvariantScope(ir::ExprId id) {
  const Uses& uses = UsesOf(id);
  if (!uses.floating) return -1;
  int depth = 0;
  for (const AtomId var : uses.vars) {
    const Variable& variable = variables_[var];
    if (variable.kind == Variable::Kind::kLane || variable.kind == Variable::Kind::kUnset)
      return -1;
    if (variable.kind == Variable::Kind::kRuntime) depth = std::max(depth, variable.depth);
  }
  int outermost = -1;
  for (int s = static_cast<int>(scopes_.size()) - 1; s > depth; --s) {
    if (scopes_[s].preheader == nullptr) continue;
    const bool changes = std::any_of(uses.buffers.begin(), uses.buffers.end(), [&](ir::BufferId b) {
      return scopes_[s].written.contains(b);
    });
    if (changes) break;
    outermost = s;
  }
  return outermost;
}

absl::StatusOr<Value*> FunctionEmitter::EmitInvariant(ir::ExprId id, int scope) {
  std::vector<int64_t> constants;
  for (const AtomId var : UsesOf(id).vars) {
    if (variables_[var].kind == Variable::Kind::kConstant) {
      constants.push_back(variables_[var].constant);
    }
  }
  const auto key = std::make_pair(id, std::move(constants));
  if (const auto known = scopes_[scope].invariants.find(key);
      known != scopes_[scope].invariants.end()) {
    return known->second;
  }
  const auto saved = builder_.saveIP();
  builder_.SetInsertPoint(scopes_[scope].preheader);
  const int64_t lanes = std::exchange(lanes_, 0);
  auto emitted = std::exchange(emitted_, {});
  const absl::StatusOr<Value*> value = EmitNewExpr(id, nullptr);
  emitted_ = std::move(emitted);
  lanes_ = lanes;
  builder_.restoreIP(saved);
  if (value.ok()) scopes_[scope].invariants.emplace(key, *value);
  return value;
}

}  // namespace hone::codegen
