#include "worker/compile/llvm/vector_math/vector_math.h"

#include <algorithm>
#include <iterator>

namespace hone::codegen {

using llvm::Value;

namespace {

Value* Rsqrt(MathBuilder& m, Value* x) {
  return m.Div(m.Number(x, 1), m.ir().CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
}

struct Function {
  ir::Op op;
  Value* (*emit)(MathBuilder& m, Value* x);
};
constexpr Function kFunctions[] = {
    {ir::Op::kExp, Exp},         {ir::Op::kLog, Log}, {ir::Op::kTanh, Tanh},
    {ir::Op::kSigmoid, Sigmoid}, {ir::Op::kErf, Erf}, {ir::Op::kNormalCdf, NormalCdf},
    {ir::Op::kRsqrt, Rsqrt},
};

}  // namespace

Value* EmitFunction(ir::Op op, MathBuilder& m, Value* x) {
  const Function* const found = std::ranges::find(kFunctions, op, &Function::op);
  return found == std::end(kFunctions) ? nullptr : m.InParts(x, found->emit);
}

bool IsFunction(ir::Op op) {
  return op == ir::Op::kPow ||
         std::ranges::find(kFunctions, op, &Function::op) != std::end(kFunctions);
}

}  // namespace hone::codegen
