#include "worker/compile/llvm/lane_reduction.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/status_macros.h"
#include "worker/compile/llvm/vector_parts.h"

namespace hone::codegen {

using llvm::Value;
using lower::Stmt;

namespace {

using Tuple = absl::InlinedVector<Value*, 2>;

// Combines the tuples of one reduction.
class Combiner {
 public:
  Combiner(FunctionContext& f, ExprEmitter& exprs, const Stmt& store) : f_(f), exprs_(exprs) {
    lower::LoweredProgram& program = f.state.program;
    for (size_t c = 0; c < store.outputs.size(); ++c) {
      const ir::DType dtype = program.buffers[store.outputs[c]].dtype;
      const ir::Scalar identity = ir::ReducerIdentity(store.reducer, static_cast<int>(c), dtype);
      neutral_.push_back(program.pool.Const(dtype, identity));
      left_.push_back(program.pool.Const(dtype, identity));
      right_.push_back(program.pool.Const(dtype, identity));
    }
    combined_ = ir::Combine(program.pool, store.reducer, left_, right_);
  }

  absl::StatusOr<Tuple> Neutral() {
    Tuple values;
    for (const ir::ExprId component : neutral_) {
      HONE_ASSIGN_OR_RETURN(Value* const value, exprs_.Emit(component, nullptr));
      values.push_back(f_.Widen(value));
    }
    return values;
  }

  absl::StatusOr<Tuple> operator()(const Tuple& left, const Tuple& right) {
    exprs_.BeginStatement();
    for (size_t c = 0; c < left.size(); ++c) {
      exprs_.Define(left_[c], left[c]);
      exprs_.Define(right_[c], right[c]);
    }
    Tuple values;
    for (const ir::ExprId component : combined_) {
      HONE_ASSIGN_OR_RETURN(values.emplace_back(), exprs_.Emit(component, nullptr));
    }
    return values;
  }

 private:
  FunctionContext& f_;
  ExprEmitter& exprs_;
  absl::InlinedVector<ir::ExprId, 2> neutral_;
  absl::InlinedVector<ir::ExprId, 2> left_, right_, combined_;  // operands have no values yet
};

// Returns the product of the lanes of a vector of bytes, whose number is a power of two.
Value* WideProduct(llvm::IRBuilder<>& b, Value* bytes) {
  auto lanes = llvm::cast<llvm::FixedVectorType>(bytes->getType())->getNumElements();
  Value* product = b.CreateZExt(bytes, llvm::FixedVectorType::get(b.getInt16Ty(), lanes));
  while (lanes > 1) {
    lanes /= 2;
    std::vector<int> low(lanes), high(lanes);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), static_cast<int>(lanes));
    product =
        b.CreateMul(b.CreateShuffleVector(product, low), b.CreateShuffleVector(product, high));
  }
  return b.CreateTrunc(b.CreateExtractElement(product, uint64_t{0}), b.getInt8Ty());
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
  Tuple values;
  for (const ir::ExprId component : store.values) {
    HONE_ASSIGN_OR_RETURN(Value* const value, exprs.Emit(component, mask));
    values.push_back(f.Widen(value));
  }
  Combiner combine(f, exprs, store);
  // The serial loop has the element as the first operand, and thus ignores NaN. Here, NaN lanes are
  // replaced by the neutral element, because combining halves would otherwise lose the half that is
  // not NaN.
  const bool ordered = ir::FindsExtreme(store.reducer) &&
                       ir::IsFloat(f.state.program.buffers[store.outputs[0]].dtype);
  if (mask != nullptr || ordered) {
    HONE_ASSIGN_OR_RETURN(const Tuple neutral, combine.Neutral());
    for (size_t c = 0; mask != nullptr && c < values.size(); ++c)
      values[c] = f.b.CreateSelect(mask, values[c], neutral[c]);
    if (ordered) {
      HONE_ASSIGN_OR_RETURN(values, combine(neutral, values));
    }
  }
  const int64_t lanes = f.lanes;
  if (!std::has_single_bit(static_cast<uint64_t>(lanes))) {
    // Halves of an odd number of lanes would be taken apart into single lanes.
    f.lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(lanes)));
    HONE_ASSIGN_OR_RETURN(const Tuple neutral, combine.Neutral());
    std::vector<llvm::Constant*> used;
    for (int64_t lane = 0; lane < f.lanes; ++lane) used.push_back(f.b.getInt1(lane < lanes));
    for (size_t c = 0; c < values.size(); ++c) {
      values[c] =
          f.b.CreateSelect(llvm::ConstantVector::get(used), PadLanes(f.b, values[c]), neutral[c]);
    }
  }
  if (store.reducer == ir::Reducer::kSum && values[0]->getType()->isIntOrIntVectorTy()) {
    // Uses LLVM's own reduction. LLVM turns its own halves into dot products, but miscompiles ours,
    // which end in vectors of one lane.
    values[0] = f.b.CreateVectorSplat(1, f.b.CreateAddReduce(values[0]));
    f.lanes = 1;
  }
  if (store.reducer == ir::Reducer::kProd && values[0]->getType()->getScalarSizeInBits() == 8) {
    // LLVM's own pattern for products of bytes crashes at some numbers of lanes on AVX-512. Wider
    // products have the same low bits.
    values[0] = f.b.CreateVectorSplat(1, WideProduct(f.b, values[0]));
    f.lanes = 1;
  }
  while (f.lanes > 1) {
    f.lanes /= 2;
    std::vector<int> low(f.lanes), high(f.lanes);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), static_cast<int>(f.lanes));
    Tuple left, right;
    for (Value* const value : values) {
      left.push_back(f.b.CreateShuffleVector(value, low));
      right.push_back(f.b.CreateShuffleVector(value, high));
    }
    HONE_ASSIGN_OR_RETURN(values, combine(left, right));
  }
  f.lanes = 0;
  for (Value*& value : values) value = f.b.CreateExtractElement(value, uint64_t{0});
  const ir::Index& offset = store.indices[0];
  Tuple element;
  for (const ir::BufferId output : store.outputs) {
    HONE_ASSIGN_OR_RETURN(element.emplace_back(), memory.Load(output, offset, nullptr));
  }
  HONE_ASSIGN_OR_RETURN(values, combine(element, values));
  for (size_t c = 0; c < values.size(); ++c)
    HONE_RETURN_IF_ERROR(memory.Store(store.outputs[c], offset, values[c], nullptr));
  f.lanes = lanes;
  return absl::OkStatus();
}

}  // namespace hone::codegen
