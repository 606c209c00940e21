#include "worker/compile/llvm/expr_emitter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {

using ir::AtomId;
using ir::DType;
using ir::Index;
using ir::Op;
using llvm::Value;
using lower::Storage;

namespace {

// Whether two expressions are equal.
bool Same(const ir::ExprPool& pool, ir::ExprId left, ir::ExprId right) {
  if (left == right) return true;
  if (left == ir::kNoExpr || right == ir::kNoExpr) return false;
  const ir::Expr &a = pool[left], &b = pool[right];
  return a.op == b.op && a.dtype == b.dtype && a.gathered == b.gathered && a.buffer == b.buffer &&
         a.value == b.value && (a.indices < 0) == (b.indices < 0) &&
         (a.indices < 0 || pool.IndicesOf(a) == pool.IndicesOf(b)) && Same(pool, a.a, b.a) &&
         Same(pool, a.b, b.b) && Same(pool, a.c, b.c);
}

// Returns x if a quotient is the formula of silu(x) in common/operator/row_operators.cc, else
// kNoExpr. Its terms underflow for large |x|.
ir::ExprId ArgumentOfSilu(const ir::ExprPool& pool, const ir::Expr& quotient) {
  const auto is_number = [&](ir::ExprId id, double value) {
    return pool[id].op == Op::kConst && ir::IsFloat(pool[id].dtype) &&
           pool[id].value.real() == value;
  };
  const ir::Expr choice = pool[quotient.a], sum = pool[quotient.b];
  if (choice.op != Op::kSelect || sum.op != Op::kAdd || !is_number(sum.b, 1)) return ir::kNoExpr;
  const ir::Expr square = pool[sum.a], below = pool[choice.a], product = pool[choice.b];
  const ir::ExprId x = choice.c;
  if (square.op != Op::kMul || below.op != Op::kLess || product.op != Op::kMul ||
      pool[product.a].op != Op::kMul || pool[square.a].op != Op::kExp) {
    return ir::kNoExpr;
  }
  const ir::ExprId root = square.a;
  const ir::Expr half = pool[pool[root].a];
  const bool found = half.op == Op::kMul && pool[half.a].op == Op::kAbs &&
                     is_number(half.b, -0.5) && is_number(below.b, 0) &&
                     Same(pool, pool[half.a].a, x) && Same(pool, below.a, x) &&
                     Same(pool, pool[product.a].a, x) && Same(pool, pool[product.a].b, root) &&
                     Same(pool, product.b, root) && Same(pool, square.b, root);
  return found ? x : ir::kNoExpr;
}

}  // namespace

void ExprEmitter::Unify(std::initializer_list<Value**> values) {
  const bool vector = std::any_of(values.begin(), values.end(),
                                  [](Value** value) { return (*value)->getType()->isVectorTy(); });
  if (!vector) return;
  for (Value** value : values) *value = Widen(*value);
}

Value* ExprEmitter::Widen(Value* value) {
  if (f_.lanes == 0 || value->getType()->isVectorTy()) return value;
  for (Loop& loop : loops_) {
    const bool invariant = std::any_of(loop.invariants.begin(), loop.invariants.end(),
                                       [&](const auto& known) { return known.second == value; });
    if (!invariant) continue;
    Value*& splat = loop.splats[value];
    if (splat == nullptr || splat->getType() != Conversion::Lanes(value->getType(), f_.lanes)) {
      const llvm::IRBuilderBase::InsertPointGuard guard(f_.b);
      f_.b.SetInsertPoint(loop.preheader);
      splat = f_.Widen(value);
    }
    return splat;
  }
  return f_.Widen(value);
}

absl::StatusOr<Value*> ExprEmitter::Emit(ir::ExprId id, Value* mask) {
  for (const auto& [known, value] : emitted_) {
    if (known == id) return value;
  }
  if (Loop* const loop = InvariantLoop(id)) {
    absl::StatusOr<Value*> invariant = EmitInvariant(id, *loop);
    math_.set_is_masked(mask != nullptr);
    return invariant;
  }
  math_.set_is_masked(mask != nullptr);
  HONE_ASSIGN_OR_RETURN(Value* const value, EmitNew(id, mask));
  emitted_.emplace_back(id, value);
  return value;
}

absl::StatusOr<Value*> ExprEmitter::EmitNew(ir::ExprId id, Value* mask) {
  llvm::IRBuilder<>& b = f_.b;
  const ir::ExprPool& pool = f_.state.program.pool;
  const ir::Expr expr = pool[id];
  switch (expr.op) {
    case Op::kConst:
      if (ir::IsFloat(expr.dtype)) {
        return llvm::ConstantFP::get(f_.convert.ValueType(expr.dtype), expr.value.real());
      }
      return llvm::ConstantInt::get(f_.convert.ValueType(expr.dtype),
                                    static_cast<uint64_t>(expr.value.whole()), true);
    case Op::kIndex: {
      const Index index = pool.IndicesOf(expr)[0];
      if (index_.SplitOf(index).is_uniform()) return index_.Scalar(index);
      return b.CreateSExt(index_.Vector(index), f_.ValueType(DType::kI64));
    }
    case Op::kLoad: {
      const Index& offset = pool.IndicesOf(expr)[0];
      if (expr.gathered < 0) return memory_.Load(expr.buffer, offset, mask);
      HONE_ASSIGN_OR_RETURN(Value * gathered, Emit(expr.a, mask));
      return memory_.Gather(expr.buffer, offset, gathered, mask);
    }
    case Op::kSelect: {
      HONE_ASSIGN_OR_RETURN(Value * holds, Emit(expr.a, mask));
      // If unrolling has decided the condition, only the selected operand is emitted. Tables of
      // constants and expressions are chains of selects.
      if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(holds)) {
        return Emit(known->isZero() ? expr.c : expr.b, mask);
      }
      HONE_ASSIGN_OR_RETURN(Value * x, Emit(expr.b, mask));
      HONE_ASSIGN_OR_RETURN(Value * y, Emit(expr.c, mask));
      Unify({&y, &x, &holds});
      return b.CreateSelect(holds, x, y);
    }
    case Op::kAdd:
    case Op::kSub: {
      // A product and a sum contract to one instruction, as in libraries' fused reductions.
      if (!ir::IsFloat(expr.dtype)) break;
      for (const bool swapped : {false, true}) {
        const ir::Expr product = pool[swapped ? expr.a : expr.b];
        if (product.op != Op::kMul) continue;
        HONE_ASSIGN_OR_RETURN(Value * z, Emit(swapped ? expr.b : expr.a, mask));
        HONE_ASSIGN_OR_RETURN(Value * x, Emit(product.a, mask));
        HONE_ASSIGN_OR_RETURN(Value * y, Emit(product.b, mask));
        Unify({&x, &y, &z});
        if (expr.op == Op::kSub) (swapped ? z : x) = b.CreateFNeg(swapped ? z : x);
        return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
      }
      break;
    }
    case Op::kMul:
      for (const bool swapped : {false, true}) {
        const ir::ExprId factor = swapped ? expr.b : expr.a;
        const ir::Expr function = pool[swapped ? expr.a : expr.b];
        const bool normal = function.op == Op::kNormalCdf;
        if (!normal && function.op != Op::kSigmoid) continue;
        const bool same = Same(pool, factor, function.a);
        if (normal && !same) continue;
        HONE_ASSIGN_OR_RETURN(Value * x, Emit(function.a, mask));
        if (same) return math_.InParts(x, normal ? Gelu : Silu);
        HONE_ASSIGN_OR_RETURN(Value * y, Emit(factor, mask));
        Unify({&x, &y});
        return math_.InParts(y, x, TimesSigmoid);
      }
      break;
    case Op::kDiv:
      if (const ir::ExprId argument = ArgumentOfSilu(pool, expr); argument != ir::kNoExpr) {
        HONE_ASSIGN_OR_RETURN(Value * x, Emit(argument, mask));
        return math_.InParts(x, Silu);
      }
      break;
    default:
      break;
  }
  HONE_ASSIGN_OR_RETURN(Value * x, Emit(expr.a, mask));
  Value* y = nullptr;
  if (expr.b != ir::kNoExpr) {
    HONE_ASSIGN_OR_RETURN(y, Emit(expr.b, mask));
    const bool uniform = x->getType()->isVectorTy() && !y->getType()->isVectorTy();
    if (expr.op == Op::kDiv && uniform &&
        (expr.dtype == DType::kF32 || expr.dtype == DType::kF64)) {
      return DivideByUniform(math_, x, y);
    }
    Unify({&x, &y});
  }
  return EmitOp(expr.op, pool[expr.a].dtype, expr.dtype, x, y);
}

absl::StatusOr<Value*> ExprEmitter::EmitOp(Op op, DType operand, DType result, Value* a, Value* b) {
  llvm::IRBuilder<>& builder = f_.b;
  const bool is_float = ir::IsFloat(operand);
  const bool is_unsigned = operand == DType::kU8 || operand == DType::kBool;
  const auto compare = [&](llvm::CmpInst::Predicate real, llvm::CmpInst::Predicate whole,
                           llvm::CmpInst::Predicate unsigned_whole, Value* x, Value* y) {
    return builder.CreateCmp(is_float ? real : is_unsigned ? unsigned_whole : whole, x, y);
  };
  const auto less = [&](Value* x, Value* y) {
    return compare(llvm::CmpInst::FCMP_OLT, llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT, x, y);
  };
  switch (op) {
    case Op::kAdd:
      return is_float ? builder.CreateFAdd(a, b) : builder.CreateAdd(a, b);
    case Op::kSub:
      return is_float ? builder.CreateFSub(a, b) : builder.CreateSub(a, b);
    case Op::kMul:
      return is_float ? builder.CreateFMul(a, b) : builder.CreateMul(a, b);
    case Op::kDiv:
      return is_float ? builder.CreateFDiv(a, b) : f_.convert.Divide(a, b, operand);
    // The result is the first operand on ties and for unordered values, as in the interpreter. This
    // is one vminps or vmaxps with swapped operands.
    case Op::kMin:
      return builder.CreateSelect(less(b, a), b, a);
    case Op::kMax:
      return builder.CreateSelect(less(a, b), b, a);
    case Op::kNeg:
      return is_float ? builder.CreateFNeg(a) : builder.CreateNeg(a);
    case Op::kAbs:
      if (is_float) return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      if (is_unsigned) return a;
      return builder.CreateSelect(less(a, llvm::Constant::getNullValue(a->getType())),
                                  builder.CreateNeg(a), a);
    case Op::kSqrt:
      return builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Op::kRound:
      return builder.CreateUnaryIntrinsic(llvm::Intrinsic::rint, a);
    case Op::kFloor:
      return builder.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case Op::kCeil:
      return builder.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    case Op::kTrunc:
      return builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a);
    case Op::kPow:
      return math_.InParts(a, b, Pow);
    case Op::kShiftLeft:
      return f_.convert.ShiftLeft(a, b);
    case Op::kShiftRight:
      return f_.convert.ShiftRight(a, b, operand);
    case Op::kLess:
      return less(a, b);
    case Op::kLessEqual:
      return compare(llvm::CmpInst::FCMP_OLE, llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE, a,
                     b);
    case Op::kEqual:
      return compare(llvm::CmpInst::FCMP_OEQ, llvm::CmpInst::ICMP_EQ, llvm::CmpInst::ICMP_EQ, a, b);
    case Op::kAnd:
      return builder.CreateAnd(a, b);
    case Op::kOr:
      return builder.CreateOr(a, b);
    case Op::kNot:
      return builder.CreateNot(a);
    case Op::kCast:
      return f_.convert.Cast(a, operand, result);
    default:
      if (Value* const value = EmitFunction(op, math_, a)) return value;
      return absl::InternalError(
          absl::StrCat("operation ", ir::InfoOf(op).name, " cannot be emitted here"));
  }
}

// --- Invariants ---

void ExprEmitter::EnterLoop(llvm::Instruction* preheader, lower::StmtId body) {
  loops_.push_back({.scope = index_.depth(), .preheader = preheader});
  const auto visit = [&](auto&& self, lower::StmtId id) -> void {
    if (id == lower::kNoStmt) return;
    const lower::Stmt& stmt = f_.state.program.stmts[id];
    loops_.back().written.insert(stmt.outputs.begin(), stmt.outputs.end());
    loops_.back().stores += stmt.kind == lower::Stmt::Kind::kStore;
    for (const lower::StmtId child : stmt.children) self(self, child);
  };
  visit(visit, body);
}

const ExprEmitter::Uses& ExprEmitter::UsesOf(ir::ExprId id) {
  const auto [found, inserted] = uses_.try_emplace(id);
  Uses& uses = found->second;
  if (!inserted) return uses;
  const lower::LoweredProgram& program = f_.state.program;
  uses.floating = ir::IsFloat(program.pool[id].dtype);
  program.pool.Visit(id, [&](const ir::Expr& expr) {
    uses.floating &= ir::IsFloat(expr.dtype) || expr.op == Op::kLoad;
    if (expr.op != Op::kLoad) return;
    uses.buffers.push_back(expr.buffer);
    // No condition has been checked before the loop, so the address must always be valid.
    const Index& offset = program.pool.IndicesOf(expr)[0];
    const ir::Range range = program.atoms.RangeOf(offset);
    const Storage& storage = program.storage[expr.buffer];
    uses.floating &= expr.gathered < 0 && storage.kind != Storage::Kind::kRegister &&
                     range.min >= 0 && range.max < storage.elements;
    program.atoms.VisitVars(offset, [&](AtomId var) {
      if (std::find(uses.vars.begin(), uses.vars.end(), var) == uses.vars.end()) {
        uses.vars.push_back(var);
      }
    });
  });
  uses.floating &= !uses.buffers.empty();
  return uses;
}

ExprEmitter::Loop* ExprEmitter::InvariantLoop(ir::ExprId id) {
  const Uses& uses = UsesOf(id);
  if (!uses.floating) return nullptr;
  int depth = 0;
  for (const AtomId var : uses.vars) {
    const Variable& variable = index_[var];
    if (variable.kind == Variable::Kind::kLane || variable.kind == Variable::Kind::kUnset) {
      return nullptr;
    }
    if (variable.kind == Variable::Kind::kRuntime) depth = std::max(depth, variable.depth);
  }
  Loop* outermost = nullptr;
  for (auto loop = loops_.rbegin(); loop != loops_.rend() && loop->scope > depth; ++loop) {
    const bool changes = std::any_of(uses.buffers.begin(), uses.buffers.end(),
                                     [&](ir::BufferId b) { return loop->written.contains(b); });
    if (changes || loop->stores > loops_.back().stores) break;
    outermost = &*loop;
  }
  return outermost;
}

absl::StatusOr<Value*> ExprEmitter::EmitInvariant(ir::ExprId id, Loop& loop) {
  std::vector<int64_t> constants;
  for (const AtomId var : UsesOf(id).vars) {
    if (index_[var].kind == Variable::Kind::kConstant) constants.push_back(index_[var].constant);
  }
  const auto [known, added] = loop.invariants.try_emplace({id, std::move(constants)});
  if (!added) return known->second;
  const llvm::IRBuilderBase::InsertPointGuard guard(f_.b);
  f_.b.SetInsertPoint(loop.preheader);
  const int64_t lanes = std::exchange(f_.lanes, 0);
  auto emitted = std::exchange(emitted_, {});
  const absl::StatusOr<Value*> value = EmitNew(id, nullptr);
  emitted_ = std::move(emitted);
  f_.lanes = lanes;
  if (value.ok()) known->second = *value;
  return value;
}

}  // namespace hone::codegen
