// Expressions: scalars outside vectorized loops, vectors inside.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::DType;
using ir::Index;
using ir::Op;
using llvm::Value;

Value* FunctionEmitter::Widen(Value* value) {
  return lanes_ == 0 || value->getType()->isVectorTy() ? value
                                                       : builder_.CreateVectorSplat(lanes_, value);
}

absl::StatusOr<Value*> FunctionEmitter::EmitExpr(ir::ExprId id, Value* mask) {
  for (const auto& [known, value] : emitted_) {
    if (known == id) return value;
  }
  if (const int scope = InvariantScope(id); scope >= 0) return EmitInvariant(id, scope);
  HONE_ASSIGN_OR_RETURN(Value* const value, EmitNewExpr(id, mask));
  emitted_.emplace_back(id, value);
  return value;
}

absl::StatusOr<Value*> FunctionEmitter::EmitNewExpr(ir::ExprId id, Value* mask) {
  lower::LoweredProgram& program = state_.program;
  const ir::Expr expr = program.pool[id];
  switch (expr.op) {
    case Op::kConst:
      if (ir::IsFloat(expr.dtype)) {
        return llvm::ConstantFP::get(convert_.ValueType(expr.dtype), expr.value.real());
      }
      return llvm::ConstantInt::get(convert_.ValueType(expr.dtype),
                                    static_cast<uint64_t>(expr.value.whole()), true);
    case Op::kIndex: {
      const Index index = program.pool.IndicesOf(expr)[0];
      const Split split = SplitIndex(index);
      if (split.lane == 0 && !split.irregular) return ScalarIndex(index);
      return builder_.CreateSExt(VectorIndex(index), ValueType(DType::kI64));
    }
    case Op::kLoad:
      return EmitLoad(expr, mask);
    case Op::kSelect: {
      HONE_ASSIGN_OR_RETURN(Value * holds, EmitExpr(expr.a, mask));
      // Choices that unrolling has decided cost nothing: tables of constants and expressions are
      // chains of selects.
      if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(holds))
        return EmitExpr(known->isZero() ? expr.c : expr.b, mask);
      HONE_ASSIGN_OR_RETURN(Value * a, EmitExpr(expr.b, mask));
      HONE_ASSIGN_OR_RETURN(Value * b, EmitExpr(expr.c, mask));
      const bool vector = a->getType()->isVectorTy() || b->getType()->isVectorTy() ||
                          holds->getType()->isVectorTy();
      if (vector) return builder_.CreateSelect(Widen(holds), Widen(a), Widen(b));
      return builder_.CreateSelect(holds, a, b);
    }
    case Op::kAdd:
    case Op::kSub: {
      // A product and a sum contract to one instruction, as in libraries' fused reductions.
      if (!ir::IsFloat(expr.dtype)) break;
      for (const bool swapped : {false, true}) {
        const ir::Expr product = program.pool[swapped ? expr.a : expr.b];
        if (product.op != Op::kMul) continue;
        HONE_ASSIGN_OR_RETURN(Value * c, EmitExpr(swapped ? expr.b : expr.a, mask));
        HONE_ASSIGN_OR_RETURN(Value * a, EmitExpr(product.a, mask));
        HONE_ASSIGN_OR_RETURN(Value * b, EmitExpr(product.b, mask));
        if (a->getType()->isVectorTy() || b->getType()->isVectorTy() ||
            c->getType()->isVectorTy()) {
          a = Widen(a);
          b = Widen(b);
          c = Widen(c);
        }
        if (expr.op == Op::kSub) (swapped ? c : a) = builder_.CreateFNeg(swapped ? c : a);
        return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
      }
      break;
    }
    default:
      break;
  }
  HONE_ASSIGN_OR_RETURN(Value * a, EmitExpr(expr.a, mask));
  Value* b = nullptr;
  if (expr.b != ir::kNoExpr) {
    HONE_ASSIGN_OR_RETURN(b, EmitExpr(expr.b, mask));
    const bool uniform = a->getType()->isVectorTy() && !b->getType()->isVectorTy();
    if (expr.op == Op::kDiv && uniform &&
        (expr.dtype == DType::kF32 || expr.dtype == DType::kF64)) {
      return math_.DivideByUniform(a, b);
    }
    if (a->getType()->isVectorTy() || b->getType()->isVectorTy()) {
      a = Widen(a);
      b = Widen(b);
    }
  }
  return EmitOp(expr, a, b);
}

absl::StatusOr<Value*> FunctionEmitter::EmitOp(const ir::Expr& expr, Value* a, Value* b) {
  const DType operand = state_.program.pool[expr.a].dtype;
  const bool is_float = ir::IsFloat(operand);
  const bool is_unsigned = operand == DType::kU8 || operand == DType::kBool;
  switch (expr.op) {
    case Op::kAdd:
      return is_float ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
    case Op::kSub:
      return is_float ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
    case Op::kMul:
      return is_float ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
    case Op::kDiv:
      return is_float ? builder_.CreateFDiv(a, b) : convert_.Divide(a, b, operand);
    case Op::kMin:
    case Op::kMax: {
      // The first operand on ties and for unordered values, as in the interpreter: one vminps or
      // vmaxps with swapped operands.
      Value* less = expr.op == Op::kMin ? b : a;
      Value* more = expr.op == Op::kMin ? a : b;
      Value* second = is_float      ? builder_.CreateFCmpOLT(less, more)
                      : is_unsigned ? builder_.CreateICmpULT(less, more)
                                    : builder_.CreateICmpSLT(less, more);
      return builder_.CreateSelect(second, b, a);
    }
    case Op::kNeg:
      return is_float ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
    case Op::kAbs:
      if (is_float) return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      if (is_unsigned) return a;
      return builder_.CreateSelect(
          builder_.CreateICmpSLT(a, llvm::Constant::getNullValue(a->getType())),
          builder_.CreateNeg(a), a);
    case Op::kSqrt:
      return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Op::kRsqrt:
      return math_.Rsqrt(a);
    case Op::kExp:
      return math_.Exp(a);
    case Op::kLog:
      return math_.Log(a);
    case Op::kTanh:
      return math_.Tanh(a);
    case Op::kSigmoid:
      return math_.Sigmoid(a);
    case Op::kErf:
      return math_.Erf(a);
    case Op::kNormalCdf:
      return math_.NormalCdf(a);
    case Op::kLess:
      return is_float      ? builder_.CreateFCmpOLT(a, b)
             : is_unsigned ? builder_.CreateICmpULT(a, b)
                           : builder_.CreateICmpSLT(a, b);
    case Op::kLessEqual:
      return is_float      ? builder_.CreateFCmpOLE(a, b)
             : is_unsigned ? builder_.CreateICmpULE(a, b)
                           : builder_.CreateICmpSLE(a, b);
    case Op::kEqual:
      return is_float ? builder_.CreateFCmpOEQ(a, b) : builder_.CreateICmpEQ(a, b);
    case Op::kAnd:
      return builder_.CreateAnd(a, b);
    case Op::kOr:
      return builder_.CreateOr(a, b);
    case Op::kNot:
      return builder_.CreateNot(a);
    case Op::kCast:
      return convert_.Cast(a, operand, expr.dtype);
    case Op::kConst:
    case Op::kIndex:
    case Op::kLoad:
    case Op::kSelect:
      break;
  }
  return absl::InternalError(
      absl::StrCat("operation ", ir::InfoOf(expr.op).name, " cannot be emitted here"));
}

}  // namespace hone::codegen
