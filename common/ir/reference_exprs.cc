#include "common/ir/reference_exprs.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace hone::ir {
namespace {

// Comparisons also have two operands, but do not use their magnitudes.
bool IsArithmetic(const Expr& expr) {
  const bool logical = expr.op >= Op::kLess && expr.op <= Op::kSelect;
  return expr.b != kNoExpr && !logical;
}

constexpr int64_t kMostNodes = 300;                // of an expression that is built in place
constexpr int64_t kMostPoints = int64_t{1} << 25;  // of a stage that holds an expression
constexpr int64_t kMostNodesInPlace = 8192;        // of an expression that cannot be a stage

}  // namespace

DType ValueDType(DType dtype) { return IsFloat(dtype) ? DType::kF64 : dtype; }

ReferenceExprs::ReferenceExprs(const Workload& from, const Accuracy& accuracy,
                               const ReferenceTensors& tensors, Workload& to)
    : from_(from), accuracy_(accuracy), tensors_(tensors), to_(to) {
  renamed_.assign(from_.atoms.size(), kNoAtom);
}

std::vector<Axis> ReferenceExprs::Renamed(const std::vector<Axis>& axes) {
  built_.clear();
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
  const DType dtype = to_.tensors[tensor].dtype;
  const ExprId load = expr.gathered < 0 ? to_.pool.Load(tensor, dtype, std::move(indices))
                                        : to_.pool.Gather(tensor, dtype, std::move(indices),
                                                          expr.gathered, Value(expr.a));
  return to_.pool.Cast(ValueDType(to_.pool[load].dtype), load);
}

// Builds a guarded value with the guards of `of` that chooses between two expressions of the
// reference.
ExprId ReferenceExprs::Guarded(const Expr& of, ExprId value, ExprId otherwise) {
  IndexList non_negative;
  for (const Index& index : from_.pool.IndicesOf(of)) non_negative.push_back(Renamed(index));
  return to_.pool.Where(std::move(non_negative), value, otherwise);
}

// Another stage's value is rounded if its tensor has a short dtype.
ExprId ReferenceExprs::AsStored(const Expr& load, ExprId value) {
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
      return AsStored(expr, LoadOf(expr, tensors_.values));
    case Op::kCast:
      return pool.Cast(ValueDType(expr.dtype), pool.Cast(expr.dtype, Value(expr.a)));
    default:
      break;
  }
  const ExprId a = Value(expr.a);
  const ExprId b = expr.b == kNoExpr ? kNoExpr : Value(expr.b);
  if (expr.op == Op::kWhere) return Guarded(expr, a, b);
  if (expr.op == Op::kSelect) return pool.Select(a, b, Value(expr.c));
  if (expr.b == kNoExpr) return pool.Unary(expr.op, a);
  return pool.Binary(expr.op, a, b);
}

F64Term ReferenceExprs::F64Value(ExprId id) { return {&to_.pool, Bound(Kind::kValue, id)}; }
F64Term ReferenceExprs::Magnitude(ExprId id) { return {&to_.pool, Bound(Kind::kMagnitude, id)}; }
ExprId ReferenceExprs::Rounding(ExprId id) { return Bound(Kind::kRounding, id); }
ExprId ReferenceExprs::Error(ExprId id) { return Bound(Kind::kError, id); }

ExprId ReferenceExprs::Build(Kind kind, ExprId id) {
  switch (kind) {
    case Kind::kValue:
      return AsF64(Value(id)).id;
    case Kind::kMagnitude:
      return BuildMagnitude(id);
    case Kind::kRounding:
      return BuildRounding(id);
    case Kind::kError:
      return BuildError(id);
  }
  return kNoExpr;
}

ExprId ReferenceExprs::Bound(Kind kind, ExprId id) {
  const Key key = {kind, id};
  if (const auto built = built_.find(key); built != built_.end()) return built->second;
  ExprId result = kNoExpr;
  if (const auto stored = stored_.find(key); stored != stored_.end()) {
    result = LoadOf(stored->second);
  } else {
    result = Build(kind, id);
    if (result != kNoExpr && TreeSize(result) > kMostNodes) {
      if (std::optional<std::vector<AtomId>> axes = AxesOf(id); axes.has_value()) {
        Store(key, *std::move(axes));
        result = LoadOf(stored_.at(key));
      } else if (TreeSize(result) > kMostNodesInPlace && kind != Kind::kValue) {
        result = Infinite(F64Constant(0)).id;
      }
    }
  }
  built_[key] = result;
  return result;
}

std::optional<std::vector<AtomId>> ReferenceExprs::AxesOf(ExprId id) const {
  std::vector<AtomId> axes;
  bool in_bounds = true;
  from_.pool.Visit(id, [&](const Expr& expr) {
    if (expr.indices < 0) return;
    const IndexList& indices = from_.pool.IndicesOf(expr);
    for (size_t d = 0; d < indices.size(); ++d) {
      const Index& index = indices[d];
      if (expr.op == Op::kLoad) {
        const Range range = from_.atoms.RangeOf(index);
        in_bounds &= range.min >= 0 && range.max < from_.tensors[expr.buffer].shape[d];
      }
      for (AtomId var = 0; var < from_.atoms.size(); ++var) {
        if (renamed_[var] == kNoAtom || !from_.atoms.DependsOn(index, var)) continue;
        if (!absl::c_linear_search(axes, var)) axes.push_back(var);
      }
    }
  });
  if (!in_bounds) return std::nullopt;
  absl::c_sort(axes);
  int64_t points = 1;
  for (const AtomId var : axes) {
    points *= from_.atoms[var].range.extent();
    if (points > kMostPoints) return std::nullopt;
  }
  if (axes.empty() || axes.size() > kMaxRank) return std::nullopt;
  return axes;
}

// Adds a stage that computes an expression at each point of `axes`.
void ReferenceExprs::Store(const Key& key, std::vector<AtomId> axes) {
  const std::vector<AtomId> renamed = renamed_;
  const std::map<Key, ExprId> built = std::exchange(built_, {});
  std::vector<Axis> old_axes;
  for (const AtomId var : axes) old_axes.push_back({var, from_.atoms[var].range.extent()});
  Stage stage;
  stage.spatial = Renamed(old_axes);
  stage.values.push_back(Build(key.first, key.second));
  Shape shape;
  for (const Axis& axis : old_axes) shape.push_back(axis.extent);
  stage.tensors.push_back(static_cast<BufferId>(to_.tensors.size()));
  to_.tensors.push_back({.name = absl::StrCat("bound_", to_.tensors.size()),
                         .dtype = DType::kF64,
                         .shape = shape,
                         .stage = static_cast<int>(to_.stages.size())});
  stored_[key] = {stage.tensors[0], std::move(axes)};
  to_.stages.push_back(std::move(stage));
  renamed_ = renamed;
  built_ = built;
}

ExprId ReferenceExprs::LoadOf(const Stored& stored) {
  IndexList indices;
  for (const AtomId var : stored.axes) indices.push_back(Index::Of(renamed_[var]));
  return to_.pool.Load(stored.tensor, DType::kF64, std::move(indices));
}

Operands<F64Term> ReferenceExprs::OperandsOf(const Expr& expr, Kind kind) {
  const bool binary = expr.b != kNoExpr;
  const F64Term a_value = F64Value(expr.a);
  const F64Term a = OrZero(Bound(kind, expr.a));
  return {a_value, a, binary ? F64Value(expr.b) : a_value, binary ? OrZero(Bound(kind, expr.b)) : a,
          accuracy_.LeastOperand(expr)};
}

ExprId ReferenceExprs::BuildMagnitude(ExprId id) {
  const Expr expr = from_.pool[id];
  switch (expr.op) {
    case Op::kConst:
      return F64Constant(MagnitudeOfConstant(expr.value.real())).id;
    case Op::kIndex:
      return Absolute(F64Value(id)).id;
    case Op::kLoad: {
      const Tensor& tensor = from_.tensors[expr.buffer];
      if (tensor.input) return Absolute(F64Value(id)).id;
      if (StoresShort(tensor)) return SizeOf(F64Value(id)).id;
      return AsF64(LoadOf(expr, tensors_.magnitudes)).id;
    }
    case Op::kSelect:
      return Where(Value(expr.a), Magnitude(expr.b), Magnitude(expr.c)).id;
    case Op::kWhere:
      return Guarded(expr, Magnitude(expr.a).id, Magnitude(expr.b).id);
    case Op::kNeg:
    case Op::kAbs:
    case Op::kCast:
      return Magnitude(expr.a).id;
    default:
      break;
  }
  const double unit = accuracy_.relative_error();
  if (!IsArithmetic(expr)) {
    const F64Term a = Magnitude(expr.a), a_value = F64Value(expr.a);
    return MagnitudeOf<F64Term>(expr.op, unit, F64Value(id),
                                {a_value, a, a_value, a, accuracy_.LeastOperand(expr)})
        .id;
  }
  // An integer quotient is at most the dividend, even if the divisor is 0.
  if (expr.op == Op::kDiv && !IsFloat(expr.dtype)) return Magnitude(expr.a).id;
  Operands<F64Term> operands = OperandsOf(expr, Kind::kMagnitude);
  if (expr.op == Op::kPow) {
    operands = WithErrors(!accuracy_.IsPlain(expr.a), !accuracy_.IsPlain(expr.b), operands);
  }
  if (!accuracy_.AddsErrors(expr)) {
    return MagnitudeOf(expr.op, unit, F64Value(id), operands).id;
  }
  return expr.op == Op::kMul ? MagnitudeOfProduct(operands).id
                             : MagnitudeOfQuotient(unit, F64Value(id), operands).id;
}

ExprId ReferenceExprs::BuildError(ExprId id) {
  const Expr expr = from_.pool[id];
  if (accuracy_.IsExact(id)) return Rounding(id);
  switch (expr.op) {
    case Op::kNeg:
    case Op::kAbs:
    case Op::kCast:
      return Error(expr.a);
    case Op::kMin:
    case Op::kMax:
      return RoundingOf(expr.op, expr.dtype, F64Value(id), OperandsOf(expr, Kind::kError)).id;
    case Op::kWhere:
      return Guarded(expr, OrZero(Error(expr.a)).id, OrZero(Error(expr.b)).id);
    case Op::kSelect: {
      const ExprId condition = Rounding(expr.a);
      const F64Term chosen = Where(Value(expr.a), OrZero(Error(expr.b)), OrZero(Error(expr.c)));
      if (condition == kNoExpr) return chosen.id;
      return IfZero(OrZero(condition), chosen, OrZero(Rounding(id))).id;
    }
    default: {
      const F64Term arithmetic = accuracy_.relative_error() * Magnitude(id);
      const ExprId rounding = Rounding(id);
      return rounding == kNoExpr ? arithmetic.id : (OrZero(rounding) + arithmetic).id;
    }
  }
}

// The number of nodes of an expression as a tree.
int64_t ReferenceExprs::TreeSize(ExprId id) {
  for (auto next = static_cast<ExprId>(to_sizes_.size()); next <= id; ++next) {
    int64_t size = 1;
    for (const ExprId operand : {to_.pool[next].a, to_.pool[next].b, to_.pool[next].c}) {
      if (operand != kNoExpr) size += to_sizes_[operand];
    }
    to_sizes_.push_back(std::min(size, 2 * kMostNodesInPlace));
  }
  return to_sizes_[id];
}

ExprId ReferenceExprs::BuildRounding(ExprId id) {
  const Expr expr = from_.pool[id];
  switch (expr.op) {
    case Op::kConst:
    case Op::kIndex:
      return kNoExpr;
    case Op::kLoad:
      // A different index may select any element.
      if (expr.gathered >= 0 && Rounding(expr.a) != kNoExpr) {
        return IfZero(OrZero(Rounding(expr.a)), F64Constant(0), Infinite(F64Constant(0))).id;
      }
      return tensors_.roundings[expr.buffer] < 0 ? kNoExpr : LoadOf(expr, tensors_.roundings);
    case Op::kSelect:
      return RoundingOfSelect(expr);
    case Op::kCast:
      return RoundingOfCast(expr);
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kEqual:
      return RoundingOfComparison(expr);
    case Op::kRound:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc: {
      const ExprId error = Error(expr.a);
      if (error == kNoExpr) return kNoExpr;
      return WholeRounding(expr.op, F64Value(expr.a), OrZero(error)).id;
    }
    default:
      break;
  }
  const bool varies =
      Rounding(expr.a) != kNoExpr || (expr.b != kNoExpr && Rounding(expr.b) != kNoExpr);
  if (!varies) return kNoExpr;
  if (expr.op == Op::kWhere) {
    return Guarded(expr, OrZero(Rounding(expr.a)).id, OrZero(Rounding(expr.b)).id);
  }
  return RoundingOf(expr.op, expr.dtype, F64Value(id), OperandsOf(expr, Kind::kRounding)).id;
}

// Where the condition may vary, either branch is possible.
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
