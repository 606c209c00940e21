// Expressions: scalars outside vectorized loops, vectors inside.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

using ir::DType;
using ir::Index;
using ir::Op;
using llvm::Value;
using lower::Storage;

llvm::Type* FunctionEmitter::ScalarType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return builder_.getHalfTy();
    case DType::kBF16:
      return builder_.getBFloatTy();
    case DType::kF32:
      return builder_.getFloatTy();
    case DType::kF64:
      return builder_.getDoubleTy();
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return builder_.getInt8Ty();
    case DType::kI32:
      return builder_.getInt32Ty();
    case DType::kI64:
      return builder_.getInt64Ty();
  }
  return nullptr;
}

llvm::Type* FunctionEmitter::VectorType(DType dtype) {
  llvm::Type* scalar = ScalarType(dtype);
  return lanes_ == 0 ? scalar : llvm::FixedVectorType::get(scalar, lanes_);
}

Value* FunctionEmitter::Widen(Value* value) {
  return lanes_ == 0 || value->getType()->isVectorTy() ? value : builder_.CreateVectorSplat(lanes_, value);
}

absl::StatusOr<Value*> FunctionEmitter::EmitLoad(const ir::Expr& load, Value* mask) {
  lower::LoweredProgram& program = state_.program;
  const Index offset = program.pool.IndicesOf(load)[0];
  const Split split = SplitIndex(offset);
  llvm::Type* scalar = ScalarType(load.dtype);
  const llvm::Align align(ir::DTypeBytes(load.dtype));
  if (program.storage[load.buffer].kind == Storage::Kind::kRegister) {
    if (!split.runtime.IsConstant() || split.irregular) return absl::InternalError("a register at an index that is not known");
    return builder_.CreateLoad(VectorType(load.dtype), RegisterSlot(load.buffer, split.constant));
  }
  if (lanes_ == 0) return builder_.CreateAlignedLoad(scalar, Address(load.buffer, split), align);
  if (!split.irregular && split.lane == 0) return builder_.CreateAlignedLoad(scalar, Address(load.buffer, split), align);
  llvm::Type* vector = VectorType(load.dtype);
  if (!split.irregular && split.lane == 1) {
    Value* address = Address(load.buffer, split);
    if (mask == nullptr) return builder_.CreateAlignedLoad(vector, address, align);
    return builder_.CreateMaskedLoad(vector, address, align, mask, llvm::Constant::getNullValue(vector));
  }
  Value* pointers = builder_.CreateInBoundsGEP(scalar, BasePointer(load.buffer), VectorIndex(offset));
  Value* lanes = mask != nullptr ? mask : builder_.CreateVectorSplat(lanes_, builder_.getTrue());
  return builder_.CreateMaskedGather(vector, pointers, align, lanes, llvm::Constant::getNullValue(vector));
}

absl::Status FunctionEmitter::StoreTo(ir::BufferId buffer, const Index& offset, Value* value, Value* mask) {
  const lower::LoweredProgram& program = state_.program;
  const DType dtype = program.buffers[buffer].dtype;
  const Split split = SplitIndex(offset);
  const llvm::Align align(ir::DTypeBytes(dtype));
  value = Widen(value);
  if (program.storage[buffer].kind == Storage::Kind::kRegister) {
    if (!split.runtime.IsConstant() || split.irregular) return absl::InternalError("a register at an index that is not known");
    builder_.CreateStore(value, RegisterSlot(buffer, split.constant));
    return absl::OkStatus();
  }
  if (lanes_ == 0) {
    builder_.CreateAlignedStore(value, Address(buffer, split), align);
    return absl::OkStatus();
  }
  if (!split.irregular && split.lane == 1) {
    Value* address = Address(buffer, split);
    if (mask == nullptr) {
      builder_.CreateAlignedStore(value, address, align);
    } else {
      builder_.CreateMaskedStore(value, address, align, mask);
    }
    return absl::OkStatus();
  }
  // Lanes that share a place: the last live one wins, as in the serial loop; a scatter keeps that order.
  Value* pointers = builder_.CreateInBoundsGEP(ScalarType(dtype), BasePointer(buffer), VectorIndex(offset));
  Value* lanes = mask != nullptr ? mask : builder_.CreateVectorSplat(lanes_, builder_.getTrue());
  builder_.CreateMaskedScatter(value, pointers, align, lanes);
  return absl::OkStatus();
}

absl::StatusOr<Value*> FunctionEmitter::EmitExpr(ir::ExprId id, Value* mask) {
  lower::LoweredProgram& program = state_.program;
  const ir::Expr expr = program.pool[id];
  switch (expr.op) {
    case Op::kConst:
      if (ir::IsFloat(expr.dtype)) return llvm::ConstantFP::get(ScalarType(expr.dtype), expr.value);
      return llvm::ConstantInt::get(ScalarType(expr.dtype), static_cast<uint64_t>(static_cast<int64_t>(expr.value)), true);
    case Op::kIndex: {
      const Index index = program.pool.IndicesOf(expr)[0];
      const Split split = SplitIndex(index);
      return split.lane != 0 || split.irregular ? VectorIndex(index) : ScalarIndex(index);
    }
    case Op::kLoad:
      return EmitLoad(expr, mask);
    case Op::kSelect: {
      HONE_ASSIGN_OR_RETURN(Value* condition, EmitExpr(expr.a, mask));
      // A choice that unrolling has made costs nothing: tables of constants and of expressions are chains of selects.
      if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) return EmitExpr(known->isZero() ? expr.c : expr.b, mask);
      HONE_ASSIGN_OR_RETURN(Value* a, EmitExpr(expr.b, mask));
      HONE_ASSIGN_OR_RETURN(Value* b, EmitExpr(expr.c, mask));
      Value* zero = llvm::Constant::getNullValue(condition->getType());
      const bool vector = a->getType()->isVectorTy() || b->getType()->isVectorTy() || condition->getType()->isVectorTy();
      Value* holds = builder_.CreateICmpNE(condition, zero);
      if (vector) return builder_.CreateSelect(Widen(holds), Widen(a), Widen(b));
      return builder_.CreateSelect(holds, a, b);
    }
    case Op::kAdd:
    case Op::kSub: {
      // a·b + c contracts to one instruction, as in the fused reductions that libraries use.
      if (!ir::IsFloat(expr.dtype) || expr.op == Op::kSub) break;
      for (const bool swapped : {false, true}) {
        const ir::Expr product = program.pool[swapped ? expr.a : expr.b];
        if (product.op != Op::kMul) continue;
        HONE_ASSIGN_OR_RETURN(Value* c, EmitExpr(swapped ? expr.b : expr.a, mask));
        HONE_ASSIGN_OR_RETURN(Value* a, EmitExpr(product.a, mask));
        HONE_ASSIGN_OR_RETURN(Value* b, EmitExpr(product.b, mask));
        if (a->getType()->isVectorTy() || b->getType()->isVectorTy() || c->getType()->isVectorTy()) {
          a = Widen(a);
          b = Widen(b);
          c = Widen(c);
        }
        return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
      }
      break;
    }
    default:
      break;
  }
  HONE_ASSIGN_OR_RETURN(Value* a, EmitExpr(expr.a, mask));
  Value* b = nullptr;
  if (expr.b != ir::kNoExpr) {
    HONE_ASSIGN_OR_RETURN(b, EmitExpr(expr.b, mask));
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
  const auto unary = [&](llvm::Intrinsic::ID intrinsic) { return builder_.CreateUnaryIntrinsic(intrinsic, a); };
  const auto as_bool = [&](Value* flag) -> Value* {
    llvm::Type* type = builder_.getInt8Ty();
    if (flag->getType()->isVectorTy()) type = llvm::FixedVectorType::get(type, lanes_);
    return builder_.CreateZExt(flag, type);
  };
  switch (expr.op) {
    case Op::kAdd:
      return is_float ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
    case Op::kSub:
      return is_float ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
    case Op::kMul:
      return is_float ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
    case Op::kDiv: {
      if (is_float) return builder_.CreateFDiv(a, b);
      // Division by zero gives 0, as the interpreter says; the hardware would trap.
      Value* zero = llvm::Constant::getNullValue(b->getType());
      Value* is_zero = builder_.CreateICmpEQ(b, zero);
      Value* safe = builder_.CreateSelect(is_zero, llvm::ConstantInt::get(b->getType(), 1), b);
      return builder_.CreateSelect(is_zero, zero, is_unsigned ? builder_.CreateUDiv(a, safe) : builder_.CreateSDiv(a, safe));
    }
    case Op::kMin:
    case Op::kMax: {
      // The first operand on ties and for unordered values, as the interpreter says; one vminps or vmaxps with swapped
      // operands.
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
      if (is_float) return unary(llvm::Intrinsic::fabs);
      if (is_unsigned) return a;
      return builder_.CreateSelect(builder_.CreateICmpSLT(a, llvm::Constant::getNullValue(a->getType())), builder_.CreateNeg(a), a);
    case Op::kSqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Op::kRsqrt:
      return builder_.CreateFDiv(llvm::ConstantFP::get(a->getType(), 1.0), unary(llvm::Intrinsic::sqrt));
    case Op::kExp:
      return unary(llvm::Intrinsic::exp);
    case Op::kLog:
      return unary(llvm::Intrinsic::log);
    case Op::kTanh:
      return unary(llvm::Intrinsic::tanh);
    case Op::kSigmoid: {
      Value* one = llvm::ConstantFP::get(a->getType(), 1.0);
      Value* e = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::exp, builder_.CreateFNeg(a));
      return builder_.CreateFDiv(one, builder_.CreateFAdd(one, e));
    }
    case Op::kErf:
      return absl::UnimplementedError("erf has no CPU code yet");
    case Op::kLess:
      return as_bool(is_float ? builder_.CreateFCmpOLT(a, b) : is_unsigned ? builder_.CreateICmpULT(a, b) : builder_.CreateICmpSLT(a, b));
    case Op::kLessEqual:
      return as_bool(is_float ? builder_.CreateFCmpOLE(a, b) : is_unsigned ? builder_.CreateICmpULE(a, b) : builder_.CreateICmpSLE(a, b));
    case Op::kEqual:
      return as_bool(is_float ? builder_.CreateFCmpOEQ(a, b) : builder_.CreateICmpEQ(a, b));
    case Op::kAnd:
      return builder_.CreateAnd(a, b);
    case Op::kOr:
      return builder_.CreateOr(a, b);
    case Op::kNot:
      return builder_.CreateXor(a, llvm::ConstantInt::get(a->getType(), 1));
    case Op::kCast: {
      llvm::Type* type = ScalarType(expr.dtype);
      if (a->getType()->isVectorTy()) type = llvm::FixedVectorType::get(type, lanes_);
      const bool to_float = ir::IsFloat(expr.dtype);
      if (expr.dtype == DType::kBool) {
        Value* zero = llvm::Constant::getNullValue(a->getType());
        return as_bool(is_float ? builder_.CreateFCmpUNE(a, zero) : builder_.CreateICmpNE(a, zero));
      }
      if (is_float && to_float) return builder_.CreateFPCast(a, type);
      if (is_float) return expr.dtype == DType::kU8 ? builder_.CreateFPToUI(a, type) : builder_.CreateFPToSI(a, type);
      if (to_float) return is_unsigned ? builder_.CreateUIToFP(a, type) : builder_.CreateSIToFP(a, type);
      return builder_.CreateIntCast(a, type, !is_unsigned);
    }
    case Op::kConst:
    case Op::kIndex:
    case Op::kLoad:
    case Op::kSelect:
      break;
  }
  return absl::InternalError(absl::StrCat("operation ", ir::InfoOf(expr.op).name, " cannot be emitted here"));
}

}  // namespace hone::codegen
