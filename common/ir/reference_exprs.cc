#include "common/ir/reference_exprs.h"

#include <algorithm>
#include <utility>

#include "common/ir/error_bound.h"

namespace hone::ir {
namespace {

// Comparisons also have two operands, but do not use their magnitudes.
bool IsArithmetic(const Expr& expr) {
  return expr.b != kNoExpr && expr.op >= Op::kAdd && expr.op <= Op::kMax;
}

constexpr int64_t kMostNodes = 4096;  // limit on the formula of a rounding

}  // namespace

DType ValueDType(DType dtype) { return IsFloat(dtype) ? DType::kF64 : dtype; }

ReferenceExprs::ReferenceExprs(const Workload& from, const Accuracy& accuracy,
                               const ReferenceTensors& tensors, Workload& to)
    : from_(from), accuracy_(accuracy), tensors_(tensors), to_(to) {
  renamed_.assign(from_.atoms.size(), kNoAtom);
}

std::vector<Axis> ReferenceExprs::Renamed(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    renamed_[axis.var] = to_.atoms.AddVar(from_.atoms[axis.var].name, axis.extent);
    result.push_back({renamed_[axis.var], axis.extent});
  }
  return result;
}

Index ReferenceExprs::Renamed(const Index& index) {
  Index result(index.constant());
  for (const IndexTerm& term : index.terms()) {
    const Atom& atom = from_.atoms[term.atom];
    Index mapped;
    switch (atom.kind) {
      case Atom::Kind::kVar:
        mapped = Index::Of(renamed_[term.atom]);
        break;
      case Atom::Kind::kFloorDiv:
        mapped = to_.atoms.FloorDiv(Renamed(atom.argument), atom.divisor);
        break;
      case Atom::Kind::kMod:
        mapped = to_.atoms.Mod(Renamed(atom.argument), atom.divisor);
        break;
    }
    result.AddScaled(mapped, term.coeff);
  }
  return to_.atoms.Simplify(std::move(result));
}

ExprId ReferenceExprs::LoadOf(const Expr& expr, const std::vector<BufferId>& tensors) {
  IndexList indices;
  for (const Index& index : from_.pool.IndicesOf(expr)) indices.push_back(Renamed(index));
  const BufferId tensor = tensors[expr.buffer];
  const ExprId load = to_.pool.Load(tensor, to_.tensors[tensor].dtype, std::move(indices));
  return to_.pool.Cast(ValueDType(to_.tensors[tensor].dtype), load);
}

// Another stage's value is rounded if its tensor has a short dtype.
ExprId ReferenceExprs::Stored(const Expr& load, ExprId value) {
  const Tensor& tensor = from_.tensors[load.buffer];
  if (!StoresShort(tensor)) return value;
  return to_.pool.Cast(DType::kF64, to_.pool.Cast(tensor.dtype, value));
}

ExprId ReferenceExprs::Value(ExprId id) {
  const Expr expr = from_.pool[id];
  ExprPool& pool = to_.pool;
  switch (expr.op) {
    case Op::kConst:
      return pool.Const(ValueDType(expr.dtype), expr.value);
    case Op::kIndex:
      return pool.OfIndex(Renamed(from_.pool.IndicesOf(expr)[0]));
    case Op::kLoad:
      return Stored(expr, LoadOf(expr, tensors_.values));
    case Op::kCast:
      return pool.Cast(ValueDType(expr.dtype), pool.Cast(expr.dtype, Value(expr.a)));
    default:
      break;
  }
  const ExprId a = Value(expr.a);
  const ExprId b = expr.b == kNoExpr ? kNoExpr : Value(expr.b);
  if (expr.op == Op::kSelect) return pool.Select(a, b, Value(expr.c));
  if (expr.b == kNoExpr) return pool.Unary(expr.op, a);
  return pool.Binary(expr.op, a, b);
}

F64Term ReferenceExprs::Magnitude(ExprId id) {
  const Expr expr = from_.pool[id];
  switch (expr.op) {
    case Op::kConst:
      return F64Constant(MagnitudeOfConstant(expr.value.real()));
    case Op::kIndex:
      return Absolute(F64Value(id));
    case Op::kLoad: {
      const Tensor& tensor = from_.tensors[expr.buffer];
      if (tensor.input) return Absolute(F64Value(id));
      if (StoresShort(tensor)) return SizeOf(F64Value(id));
      return AsF64(LoadOf(expr, tensors_.magnitudes));
    }
    case Op::kSelect:
      return Where(Value(expr.a), Magnitude(expr.b), Magnitude(expr.c));
    default:
      break;
  }
  const F64Term a = Magnitude(expr.a);
  const bool binary = IsArithmetic(expr);
  const F64Term b_value = expr.op == Op::kDiv ? F64Value(expr.b) : a;
  const F64Term b = binary ? Magnitude(expr.b) : a;
  if (accuracy_.BoundsClosely(expr)) {
    return expr.op == Op::kMul ? MagnitudeOfProduct(F64Value(expr.a), a, F64Value(expr.b), b)
                               : MagnitudeOfQuotient(F64Value(id), a, b_value, b);
  }
  const bool takes_value =
      !binary && expr.op != Op::kNeg && expr.op != Op::kAbs && expr.op != Op::kCast;
  const F64Term magnitude = MagnitudeOf(expr.op, takes_value ? F64Value(id) : a, a, b_value, b);
  return accuracy_.AddsErrors(expr) ? 2.0 * magnitude : magnitude;
}

ExprId ReferenceExprs::Error(ExprId id) {
  const ExprId rounding = Rounding(id);
  if (accuracy_.IsExact(id)) return rounding;
  const F64Term arithmetic = accuracy_.relative_error() * Magnitude(id);
  return rounding == kNoExpr ? arithmetic.id : (F64Term{&to_.pool, rounding} + arithmetic).id;
}

ExprId ReferenceExprs::Rounding(ExprId id) {
  const ExprId rounding = FullRounding(id);
  if (rounding == kNoExpr || TreeSize(rounding) <= kMostNodes) return rounding;
  return ShortenedRounding(id).id;
}

// The formulas repeat their operands, so those of deep expressions would grow without bound.
// Instead, the roundings of all loads and operations are added up relative to the magnitude.
F64Term ReferenceExprs::ShortenedRounding(ExprId id) {
  F64Term unit = F64Constant(0);
  double own = 0;
  from_.pool.Visit(id, [&](const Expr& expr) {
    own += 2 * std::max(UnitRoundoff(expr.dtype), UnitRoundoff(DType::kF32));
    if (expr.op != Op::kLoad || tensors_.roundings[expr.buffer] < 0) return;
    const F64Term size = Absolute(AsF64(Stored(expr, LoadOf(expr, tensors_.values))));
    unit = unit + AsF64(LoadOf(expr, tensors_.roundings)) / IfZero(size, F64Constant(1), size);
  });
  return 2.0 * (unit + F64Constant(own)) * Magnitude(id);
}

// The number of nodes of an expression as a tree.
int64_t ReferenceExprs::TreeSize(ExprId id) {
  for (auto next = static_cast<ExprId>(to_sizes_.size()); next <= id; ++next) {
    int64_t size = 1;
    for (const ExprId operand : {to_.pool[next].a, to_.pool[next].b, to_.pool[next].c}) {
      if (operand != kNoExpr) size += to_sizes_[operand];
    }
    to_sizes_.push_back(std::min(size, 2 * kMostNodes));
  }
  return to_sizes_[id];
}

ExprId ReferenceExprs::FullRounding(ExprId id) {
  const Expr expr = from_.pool[id];
  switch (expr.op) {
    case Op::kConst:
    case Op::kIndex:
      return kNoExpr;
    case Op::kLoad:
      return tensors_.roundings[expr.buffer] < 0 ? kNoExpr : LoadOf(expr, tensors_.roundings);
    case Op::kSelect:
      return RoundingOfSelect(expr);
    case Op::kCast:
      return RoundingOfCast(expr);
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kEqual:
      return RoundingOfComparison(expr);
    default:
      break;
  }
  const ExprId a = Rounding(expr.a), b = expr.b == kNoExpr ? kNoExpr : Rounding(expr.b);
  if (a == kNoExpr && b == kNoExpr) return kNoExpr;
  const F64Term a_value = F64Value(expr.a);
  const F64Term b_value = expr.b == kNoExpr ? a_value : F64Value(expr.b);
  const F64Term value = F64Value(id);
  return RoundingOf(expr.op, expr.dtype, value, a_value, OrZero(a), b_value, OrZero(b)).id;
}

// Where the condition may vary, so may the branch.
ExprId ReferenceExprs::RoundingOfSelect(const Expr& select) {
  const ExprId b = Rounding(select.b), c = Rounding(select.c), condition = Rounding(select.a);
  if (b == kNoExpr && c == kNoExpr && condition == kNoExpr) return kNoExpr;
  const F64Term chosen = Where(Value(select.a), OrZero(b), OrZero(c));
  if (condition == kNoExpr) return chosen.id;
  const F64Term apart = Absolute(F64Value(select.b) - F64Value(select.c));
  const F64Term either = apart + Larger(OrZero(Error(select.b)), OrZero(Error(select.c)));
  return IfZero(OrZero(condition), chosen, either).id;
}

ExprId ReferenceExprs::RoundingOfComparison(const Expr& comparison) {
  const ExprId a = Error(comparison.a), b = Error(comparison.b);
  if (a == kNoExpr && b == kNoExpr) return kNoExpr;
  const F64Term gap = Absolute(F64Value(comparison.a) - F64Value(comparison.b));
  return ComparisonRounding(gap, OrZero(a) + OrZero(b)).id;
}

ExprId ReferenceExprs::RoundingOfCast(const Expr& cast) {
  const DType from = from_.pool[cast.a].dtype;
  if (IsWidening(from, cast.dtype)) return Rounding(cast.a);
  const ExprId error = Error(cast.a);
  if (error == kNoExpr) return kNoExpr;
  return ConversionRounding(from, cast.dtype, F64Value(cast.a), OrZero(error)).id;
}

}  // namespace hone::ir
