// Vectorized reduction loops: the lanes are combined in halves, then with the element.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/codegen/function_emitter.h"

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

bool FunctionEmitter::ReducesLanes(const Stmt& store) const {
  if (lanes_ == 0 || store.reducer == ir::Reducer::kNone) return false;
  for (const ir::AtomId var : store.reduce_vars) {
    if (variables_[var].kind == Variable::Kind::kLane) return true;
  }
  return false;
}

absl::Status FunctionEmitter::EmitLaneReduction(lower::StmtId id, const Stmt& store, Value* mask) {
  lower::LoweredProgram& program = state_.program;
  HONE_ASSIGN_OR_RETURN(const Op op, CombiningOp(store.reducer));
  const ir::DType dtype = program.buffers[store.outputs[0]].dtype;
  const ir::Expr combining{.op = op, .dtype = dtype, .a = store.values[0]};
  emitted_.clear();
  HONE_ASSIGN_OR_RETURN(Value * value, EmitExpr(store.values[0], mask));
  value = Widen(value);
  // The serial loop has the element as the first operand, which skips NaN. NaN lanes are made
  // neutral here, because combining halves would otherwise lose the half that is not NaN.
  const bool ordered = ir::IsFloat(dtype) && (op == Op::kMin || op == Op::kMax);
  if (mask != nullptr || ordered) {
    const ir::Scalar identity = ir::ReducerIdentity(store.reducer, 0, dtype);
    const ir::ExprId neutral = program.pool.Const(dtype, identity);
    HONE_ASSIGN_OR_RETURN(Value * rest, EmitExpr(neutral, nullptr));
    rest = Widen(rest);
    if (mask != nullptr) value = builder_.CreateSelect(mask, value, rest);
    if (ordered) {
      HONE_ASSIGN_OR_RETURN(value, EmitOp(combining, rest, value));
    }
  }
  int64_t width = lanes_;
  Value* odd = nullptr;  // the last lanes of halves with an odd size
  if (op == Op::kAdd && value->getType()->isIntOrIntVectorTy()) {
    // Uses LLVM's own reduction. LLVM turns its own halves into dot products, but miscompiles ours,
    // which end in vectors of one lane.
    value = builder_.CreateVectorSplat(1, builder_.CreateAddReduce(value));
    width = 1;
  }
  while (width > 1) {
    if (width % 2 != 0) {
      Value* last = builder_.CreateExtractElement(value, width - 1);
      HONE_ASSIGN_OR_RETURN(odd, odd == nullptr ? last : EmitOp(combining, odd, last));
    }
    width /= 2;
    std::vector<int> low(width), high(width);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), static_cast<int>(width));
    Value* const left = builder_.CreateShuffleVector(value, low);
    Value* const right = builder_.CreateShuffleVector(value, high);
    HONE_ASSIGN_OR_RETURN(value, EmitOp(combining, left, right));
  }
  value = builder_.CreateExtractElement(value, uint64_t{0});
  if (odd != nullptr) {
    HONE_ASSIGN_OR_RETURN(value, EmitOp(combining, value, odd));
  }
  auto& old = combined_[id];
  if (old.empty()) old.push_back(program.pool.Load(store.outputs[0], dtype, store.indices));
  const int64_t lanes = std::exchange(lanes_, 0);
  HONE_ASSIGN_OR_RETURN(Value* const element, EmitLoad(program.pool[old[0]], nullptr));
  HONE_ASSIGN_OR_RETURN(Value* const result, EmitOp(combining, element, value));
  const absl::Status stored = StoreTo(store.outputs[0], store.indices[0], result, nullptr);
  lanes_ = lanes;
  return stored;
}

}  // namespace hone::codegen
