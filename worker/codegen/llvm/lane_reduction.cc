#include "worker/codegen/llvm/lane_reduction.h"

#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::codegen {

using ir::Op;
using llvm::Value;
using lower::Stmt;

namespace {

absl::StatusOr<Op> CombiningOp(ir::Reducer reducer) {
  switch (reducer) {
    case ir::Reducer::kSum:
      return Op::kAdd;
    case ir::Reducer::kProd:
      return Op::kMul;
    case ir::Reducer::kMin:
      return Op::kMin;
    case ir::Reducer::kMax:
      return Op::kMax;
    default:
      return absl::UnimplementedError(
          absl::StrCat(ir::ReducerName(reducer), " over the lanes of a vector"));
  }
}

}  // namespace

bool ReducesLanes(const FunctionContext& f, const IndexEmitter& index, const Stmt& store) {
  if (f.lanes == 0 || store.reducer == ir::Reducer::kNone) return false;
  return std::any_of(store.reduce_vars.begin(), store.reduce_vars.end(), [&](ir::AtomId var) {
    return index[var].kind == IndexEmitter::Variable::Kind::kLane;
  });
}

absl::Status EmitLaneReduction(FunctionContext& f, ExprEmitter& exprs, MemoryEmitter& memory,
                               const Stmt& store, Value* mask) {
  lower::LoweredProgram& program = f.state.program;
  HONE_ASSIGN_OR_RETURN(const Op op, CombiningOp(store.reducer));
  const ir::DType dtype = program.buffers[store.outputs[0]].dtype;
  const ir::DType operand = program.pool[store.values[0]].dtype;
  const auto combine = [&](Value* a, Value* b) { return exprs.EmitOp(op, operand, dtype, a, b); };
  HONE_ASSIGN_OR_RETURN(Value * value, exprs.Emit(store.values[0], mask));
  value = f.Widen(value);
  // The serial loop has the element as the first operand, and thus ignores NaN. Here, NaN lanes are
  // replaced by the neutral element, because combining halves would otherwise lose the half that is
  // not NaN.
  const bool ordered = ir::IsFloat(dtype) && (op == Op::kMin || op == Op::kMax);
  if (mask != nullptr || ordered) {
    const ir::Scalar identity = ir::ReducerIdentity(store.reducer, 0, dtype);
    const ir::ExprId neutral = program.pool.Const(dtype, identity);
    HONE_ASSIGN_OR_RETURN(Value * rest, exprs.Emit(neutral, nullptr));
    rest = f.Widen(rest);
    if (mask != nullptr) value = f.b.CreateSelect(mask, value, rest);
    if (ordered) {
      HONE_ASSIGN_OR_RETURN(value, combine(rest, value));
    }
  }
  int64_t width = f.lanes;
  Value* odd = nullptr;  // the last lanes of halves with an odd size
  if (op == Op::kAdd && value->getType()->isIntOrIntVectorTy()) {
    // Uses LLVM's own reduction. LLVM turns its own halves into dot products, but miscompiles ours,
    // which end in vectors of one lane.
    value = f.b.CreateVectorSplat(1, f.b.CreateAddReduce(value));
    width = 1;
  }
  while (width > 1) {
    if (width % 2 != 0) {
      Value* last = f.b.CreateExtractElement(value, width - 1);
      HONE_ASSIGN_OR_RETURN(odd, odd == nullptr ? last : combine(odd, last));
    }
    width /= 2;
    std::vector<int> low(width), high(width);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), static_cast<int>(width));
    Value* const left = f.b.CreateShuffleVector(value, low);
    Value* const right = f.b.CreateShuffleVector(value, high);
    HONE_ASSIGN_OR_RETURN(value, combine(left, right));
  }
  value = f.b.CreateExtractElement(value, uint64_t{0});
  if (odd != nullptr) {
    HONE_ASSIGN_OR_RETURN(value, combine(value, odd));
  }
  const ir::Index& offset = store.indices[0];
  const int64_t lanes = std::exchange(f.lanes, 0);
  HONE_ASSIGN_OR_RETURN(Value* const element, memory.Load(store.outputs[0], offset, nullptr));
  HONE_ASSIGN_OR_RETURN(Value* const result, combine(element, value));
  const absl::Status stored = memory.Store(store.outputs[0], offset, result, nullptr);
  f.lanes = lanes;
  return stored;
}

}  // namespace hone::codegen
