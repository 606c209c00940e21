#include "worker/compile/llvm/vector_math/math_builder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "llvm/IR/MDBuilder.h"
#include "worker/compile/llvm/vector_parts.h"

namespace hone::codegen {

using llvm::Value;

Value* MathBuilder::Bits(Value* like, uint64_t value) {
  llvm::Type* integer = b_.getIntNTy(like->getType()->getScalarSizeInBits());
  return llvm::ConstantInt::get(like->getType()->getWithNewType(integer), value);
}

Value* MathBuilder::AtMost(Value* x, double f32, double f64) {
  Value* limit = Number(x, f32, f64);
  return b_.CreateSelect(b_.CreateFCmpOLT(limit, x), limit, x);
}

Value* MathBuilder::AtLeast(Value* x, double f32, double f64) {
  Value* limit = Number(x, f32, f64);
  return b_.CreateSelect(b_.CreateFCmpOGT(limit, x), limit, x);
}

Value* MathBuilder::Polynomial(Value* x, absl::Span<const double> f32,
                               absl::Span<const double> f64) {
  const absl::Span<const double> c = IsF64(x) ? f64 : f32;
  Value* sum = Number(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = Fma(sum, x, Number(x, c[i]));
  return sum;
}

Value* MathBuilder::DivideBySum(Value* numerator, Value* large, Value* small) {
  Value* sum = Add(large, small);
  Value* lost = Sub(small, Sub(sum, large));
  Value* reciprocal = Div(Number(large, 1), sum);
  Value* quotient = Mul(numerator, reciprocal);
  Value* minus = Neg(quotient);
  Value* rest = Fma(minus, lost, Fma(minus, sum, numerator));
  return Fma(rest, reciprocal, quotient);
}

Value* MathBuilder::IfSmall(Value* x, double f32, double f64, llvm::function_ref<Value*()> usual,
                            llvm::function_ref<Value*()> any) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  llvm::BasicBlock* const block = b_.GetInsertBlock();
  // A branch must not depend on lanes that are masked or fill up a register: they are arbitrary.
  if (type == nullptr || is_masked_ || !all_lanes_used_ || !machine_.BranchesOnLanes() ||
      b_.GetInsertPoint() != block->end())
    return any();
  const int lanes = static_cast<int>(type->getNumElements());
  const int part =
      std::min(lanes, machine_.vector_bits() / static_cast<int>(type->getScalarSizeInBits()));
  if (lanes % part != 0 || !std::has_single_bit(static_cast<unsigned>(part))) return any();
  Value* beyond = nullptr;
  for (Value* const each : SplitLanes(b_, x, part)) {
    Value* const large = b_.CreateFCmpUGT(Abs(each), Number(each, f32, f64));
    beyond = beyond == nullptr ? large : b_.CreateOr(beyond, large);
  }
  llvm::LLVMContext& context = b_.getContext();
  const auto create = [&](const char* name) {
    return llvm::BasicBlock::Create(context, name, block->getParent());
  };
  llvm::BasicBlock *const often = create("usual"), *const join = create("joined"),
                          *const rare = create("rare");
  b_.CreateCondBr(b_.CreateOrReduce(beyond), rare, often,
                  llvm::MDBuilder(context).createBranchWeights(1, 1 << 10));
  llvm::SmallVector<std::pair<Value*, llvm::BasicBlock*>, 2> results;
  for (llvm::BasicBlock* const side : {often, rare}) {
    b_.SetInsertPoint(side);
    Value* const result = side == often ? usual() : any();
    results.emplace_back(result, b_.GetInsertBlock());
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  llvm::PHINode* const result = b_.CreatePHI(results[0].first->getType(), 2);
  for (const auto& [value, from] : results) result->addIncoming(value, from);
  return result;
}

namespace {

// The lanes of a part that ComputeInParts computes at a time.
int LanesOfPart(Value* x, int vector_bits) {
  return kFunctionRegisters * vector_bits / static_cast<int>(x->getType()->getScalarSizeInBits());
}

// Whether the last part has no arbitrary lanes.
bool FillsParts(Value* x, int vector_bits) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (type == nullptr) return true;
  const int lanes = static_cast<int>(type->getNumElements()), part = LanesOfPart(x, vector_bits);
  return lanes <= part || lanes % part == 0;
}

template <typename... Values>
Value* ComputeInParts(llvm::IRBuilder<>& b, int vector_bits, auto f, Value* x, Values*... more) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (type == nullptr) return f(x, more...);
  const int lanes = static_cast<int>(type->getNumElements());
  const int part = LanesOfPart(x, vector_bits);
  if (lanes <= part) return f(x, more...);
  const auto parts = SplitLanes(b, x, part);
  llvm::SmallVector<Value*, 8> results;
  if constexpr (sizeof...(more) == 0) {
    for (Value* each : parts) results.push_back(f(each));
  } else {
    const auto others = SplitLanes(b, more..., part);
    for (size_t p = 0; p < parts.size(); ++p) results.push_back(f(parts[p], others[p]));
  }
  return JoinLanes(b, results, lanes);
}

}  // namespace

Value* MathBuilder::InParts(Value* x, Value* (*f)(MathBuilder&, Value*)) {
  all_lanes_used_ = FillsParts(x, machine_.vector_bits());
  return ComputeInParts(b_, machine_.vector_bits(), [&](Value* part) { return f(*this, part); }, x);
}

Value* MathBuilder::InParts(Value* x, Value* y, Value* (*f)(MathBuilder&, Value*, Value*)) {
  all_lanes_used_ = FillsParts(x, machine_.vector_bits());
  return ComputeInParts(
      b_, machine_.vector_bits(), [&](Value* a, Value* b) { return f(*this, a, b); }, x, y);
}

}  // namespace hone::codegen
