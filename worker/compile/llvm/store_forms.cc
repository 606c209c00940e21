#include "worker/compile/llvm/store_forms.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compile/llvm/vector_parts.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ir::Index;
using ir::Intrinsic;
using llvm::Value;
using lower::Stmt;
using lower::StmtId;

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

// Emits one store of an instruction of the shape kDot.
class TensorEmitter {
 public:
  TensorEmitter(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory, const Stmt& store)
      : f_(f),
        index_(index),
        memory_(memory),
        store_(store),
        intrinsic_(*lower::IntrinsicOf(store)) {}

  absl::Status Emit();

 private:
  struct Operand {
    ir::BufferId buffer;
    Index offset;
  };
  // How the lanes of an accumulator are numbered, and the terms of each.
  struct Lanes {
    ir::AtomId var;
    int64_t columns;
    int64_t group;
  };
  absl::Status EmitDot();
  ir::AtomId LaneVar() const;
  // Loads the words of an operand, each of which has the terms of one row (of the left operand) or
  // column. A single word is broadcast. REQUIRES: the variable of the lanes is 0.
  absl::StatusOr<Value*> LoadWords(const Operand& operand, bool left, const Lanes& lanes);
  absl::Status MisplacedError(const Operand& operand) const {
    return absl::InternalError(absl::StrCat(intrinsic_.name, ": ",
                                            f_.state.program.buffers[operand.buffer].name,
                                            " does not have the layout that it needs"));
  }

  FunctionContext& f_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  const Stmt& store_;
  const Intrinsic& intrinsic_;
  std::vector<Operand> operands_;
};

absl::Status TensorEmitter::Emit() {
  for (ir::AtomId var : store_.tensor_vars) index_.SetConstant(var, 0);
  const ir::ExprPool& pool = f_.state.program.pool;
  pool.VisitLoads(store_.values[0], [&](const ir::Expr& load) {
    operands_.push_back({load.buffer, pool.IndicesOf(load)[0]});
  });
  if (operands_.size() != 2) {
    return absl::InternalError(
        absl::StrCat(intrinsic_.name, " with ", operands_.size(), " operands"));
  }
  const absl::Status status = EmitDot();
  for (ir::AtomId var : store_.tensor_vars) index_.Unset(var);
  return status;
}

ir::AtomId TensorEmitter::LaneVar() const {
  ir::AtomId lane = ir::kNoAtom;
  f_.state.program.atoms.VisitVars(store_.indices[0], [&](ir::AtomId var) {
    if (index_[var].kind == IndexEmitter::Variable::Kind::kLane) lane = var;
  });
  return lane;
}

absl::StatusOr<Value*> TensorEmitter::LoadWords(const Operand& operand, bool left,
                                                const Lanes& lanes) {
  const ir::DType dtype = f_.state.program.buffers[operand.buffer].dtype;
  const IndexEmitter::Split base = index_.SplitOf(operand.offset);
  bool placed = index_.StepOf(operand.offset, store_.tensor_vars[0], 1) == 1;
  for (int64_t lane = 1; lane < f_.lanes; ++lane) {
    const int64_t word = left ? lane / lanes.columns : lane % lanes.columns;
    index_.SetConstant(lanes.var, lane);
    const IndexEmitter::Split split = index_.SplitOf(operand.offset);
    placed &= split.runtime == base.runtime && split.constant - base.constant == word * lanes.group;
  }
  index_.SetConstant(lanes.var, 0);
  if (!placed) return MisplacedError(operand);
  llvm::Type* const word =
      f_.b.getIntNTy(static_cast<unsigned>(lanes.group * ir::DTypeBytes(dtype) * 8));
  const int64_t own = left ? f_.lanes / lanes.columns : lanes.columns;
  const int64_t words = std::max(f_.lanes / lanes.columns, lanes.columns);
  llvm::Type* const type = own == 1 ? word : llvm::FixedVectorType::get(word, own);
  Value* const value = f_.b.CreateAlignedLoad(type, memory_.Address(operand.buffer, base),
                                              llvm::Align(ir::DTypeBytes(dtype)));
  return own < words ? f_.b.CreateVectorSplat(words, value) : value;
}

absl::Status TensorEmitter::EmitDot() {
  HONE_ASSIGN_OR_RETURN(const DotCode code, f_.state.machine->DotOf(intrinsic_));
  const ir::Stage& stage = ir::DescriptionOf(intrinsic_).stages.back();
  const Lanes lanes{
      .var = LaneVar(), .columns = stage.spatial.back().extent, .group = stage.reduce[0].extent};
  llvm::Type* const element = code.operand == ir::DType::kBF16 ? f_.b.getBFloatTy()
                              : code.operand == ir::DType::kI8
                                  ? f_.b.getInt8Ty()
                                  : static_cast<llvm::Type*>(f_.b.getInt32Ty());
  // The left operand does not move with the columns.
  const IndexEmitter::Variable lane = index_[lanes.var];
  index_.SetConstant(lanes.var, 0);
  if (index_.StepOf(operands_[0].offset, lanes.var, 1) != 0) std::swap(operands_[0], operands_[1]);
  std::vector<Value*> values;
  for (const Operand& operand : operands_) {
    HONE_ASSIGN_OR_RETURN(Value* const words, LoadWords(operand, values.empty(), lanes));
    const auto bits =
        static_cast<int64_t>(words->getType()->getPrimitiveSizeInBits().getFixedValue());
    values.push_back(f_.b.CreateBitCast(
        words, llvm::FixedVectorType::get(element, bits / element->getScalarSizeInBits())));
  }
  index_.Set(lanes.var, lane);
  HONE_ASSIGN_OR_RETURN(Value * sum, memory_.Load(store_.outputs[0], store_.indices[0], nullptr));
  Value* result;
  if (code.emit != nullptr) {
    result = code.emit(f_.b, sum, values[0], values[1]);
  } else {
    auto* type = llvm::FunctionType::get(
        sum->getType(), {sum->getType(), values[0]->getType(), values[1]->getType()}, false);
    result = f_.b.CreateCall(f_.state.module->getOrInsertFunction(
                                 llvm::StringRef(code.name.data(), code.name.size()), type),
                             {sum, values[0], values[1]});
  }
  return memory_.Store(store_.outputs[0], store_.indices[0], result, nullptr);
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

absl::Status EmitIntrinsic(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory,
                           const Stmt& store, Value* mask) {
  if (mask != nullptr) return absl::InternalError("a tensor instruction is under a mask");
  return TensorEmitter(f, index, memory, store).Emit();
}

}  // namespace hone::codegen
