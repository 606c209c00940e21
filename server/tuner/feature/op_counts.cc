#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

using ir::Op;

class Counter {
 public:
  Counter(const ir::Program& program, bool detect_mad)
      : program_(program), detect_mad_(detect_mad) {}

  OpCounts Run(const ir::Block& block) {
    for (ir::ExprId value : block.values) Visit(value);
    CountReducer(block);
    counts_.whole = counts_.integer;
    counts_.integer += counts_.index;
    return counts_;
  }

 private:
  OpCounts::Arithmetic& Of(ir::DType dtype) {
    return ir::IsFloat(dtype) ? counts_.floating : counts_.integer;
  }

  // An addition of a product is one operation on every target that we generate code for.
  void Add(OpCounts::Arithmetic& counts, bool of_product) const {
    if (detect_mad_ && of_product) {
      ++counts.mad;
      --counts.mul;
    } else {
      ++counts.addsub;
    }
  }
  bool IsProduct(ir::ExprId id) const {
    return id != ir::kNoExpr && program_.pool[id].op == Op::kMul;
  }

  void Visit(ir::ExprId id) {
    const ir::Expr& expr = program_.pool[id];
    for (ir::ExprId operand : {expr.a, expr.b, expr.c}) {
      if (operand != ir::kNoExpr) Visit(operand);
    }
    switch (expr.op) {
      case Op::kConst:
        break;
      case Op::kIndex:
      case Op::kLoad:
        for (const ir::Index& index : program_.pool.IndicesOf(expr)) CountIndex(index);
        break;
      case Op::kAdd:
      case Op::kSub:
        Add(Of(expr.dtype), IsProduct(expr.a) || IsProduct(expr.b));
        break;
      case Op::kMul:
        ++Of(expr.dtype).mul;
        break;
      case Op::kDiv:
        ++Of(expr.dtype).divmod;
        break;
      case Op::kMin:
      case Op::kMax:
        ++Of(expr.dtype).cmp;
        break;
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kEqual:
        ++Of(program_.pool[expr.a].dtype).cmp;
        break;
      case Op::kNeg:
        ++Of(expr.dtype).addsub;
        break;
      case Op::kExp:
      case Op::kLog:
      case Op::kSqrt:
      case Op::kRsqrt:
      case Op::kTanh:
      case Op::kErf:
      case Op::kNormalCdf:
      case Op::kSigmoid:
      case Op::kPow:
        ++Of(expr.dtype).math;
        break;
      case Op::kCast:
        ++counts_.casts;
        ++Of(expr.dtype).other;
        break;
      case Op::kAbs:
      case Op::kRound:
      case Op::kFloor:
      case Op::kCeil:
      case Op::kTrunc:
      case Op::kShiftLeft:
      case Op::kShiftRight:
        ++Of(expr.dtype).other;
        break;
      case Op::kAnd:
      case Op::kOr:
      case Op::kNot:
        ++counts_.boolean;
        break;
      case Op::kWhere:
        break;  // lowering divides the points into cases instead
      case Op::kSelect:
        ++counts_.select;
        break;
    }
  }

  void CountIndex(const ir::Index& index) {
    int summands = index.constant() != 0;
    for (const ir::IndexTerm& term : index.terms()) {
      const bool scaled = term.coeff != 1 && term.coeff != -1;
      const bool first = summands++ == 0;
      if (scaled) ++counts_.index.mul;
      if (!first) Add(counts_.index, scaled);
      const ir::Atom& atom = program_.atoms[term.atom];
      if (atom.kind == ir::Atom::Kind::kVar) continue;
      ++counts_.index.divmod;
      CountIndex(atom.argument);
    }
  }

  void CountReducer(const ir::Block& block) {
    if (block.reducer == ir::Reducer::kNone) return;
    const ir::DType dtype = program_.buffers[block.outputs[0]].dtype;
    switch (block.reducer) {
      case ir::Reducer::kNone:
        break;
      case ir::Reducer::kSum:
        Add(Of(dtype), IsProduct(block.values[0]));
        break;
      case ir::Reducer::kProd:
        ++Of(dtype).mul;
        break;
      case ir::Reducer::kMin:
      case ir::Reducer::kMax:
        ++Of(dtype).cmp;
        break;
      case ir::Reducer::kArgMax:
      case ir::Reducer::kArgMin:
        ++Of(dtype).cmp;
        counts_.select += 2;
        break;
      case ir::Reducer::kOnlineSoftmax:
        // Max, two exponentials of differences, a multiply and an add.
        ++Of(dtype).cmp;
        Of(dtype).addsub += 2;
        Of(dtype).math += 2;
        ++Of(dtype).mul;
        Add(Of(dtype), true);
        break;
    }
  }

  const ir::Program& program_;
  const bool detect_mad_;
  OpCounts counts_;
};

}  // namespace

OpCounts::Arithmetic& OpCounts::Arithmetic::operator+=(const Arithmetic& more) {
  mad += more.mad;
  addsub += more.addsub;
  mul += more.mul;
  divmod += more.divmod;
  cmp += more.cmp;
  math += more.math;
  other += more.other;
  return *this;
}

OpCounts CountOps(const ir::Program& program, const ir::Block& block, bool detect_mad) {
  return Counter(program, detect_mad).Run(block);
}

}  // namespace hone::feature
