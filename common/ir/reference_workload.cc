#include "common/ir/reference_workload.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::ir {
namespace {

class ReferenceBuilder {
 public:
  explicit ReferenceBuilder(const Workload& workload) : from_(workload), values_(workload.tensors.size(), -1), magnitudes_(values_) {
    to_.name = workload.name + "_reference";
  }

  absl::StatusOr<Workload> Run() {
    for (size_t t = 0; t < from_.tensors.size(); ++t) {
      if (!from_.tensors[t].input) continue;
      values_[t] = magnitudes_[t] = static_cast<BufferId>(to_.tensors.size());
      to_.tensors.push_back(from_.tensors[t]);
      to_.tensors.back().constant = false;
    }
    for (const Stage& stage : from_.stages) AddStage(stage, /*magnitude=*/false);
    for (const Stage& stage : from_.stages) AddStage(stage, /*magnitude=*/true);
    HONE_RETURN_IF_ERROR(to_.Validate());
    return std::move(to_);
  }

 private:
  void AddStage(const Stage& stage, bool magnitude) {
    // A magnitude is not a tuple: each component reduces for itself.
    const bool apart = magnitude && stage.tensors.size() > 1;
    for (size_t part = 0; part < (apart ? stage.tensors.size() : 1); ++part) {
      renamed_.assign(from_.atoms.size(), kNoAtom);
      Stage copy;
      const auto axes = [&](const std::vector<Axis>& list) {
        std::vector<Axis> result;
        for (const Axis& axis : list) {
          renamed_[axis.var] = to_.atoms.AddVar(from_.atoms[axis.var].name, axis.extent);
          result.push_back({renamed_[axis.var], axis.extent});
        }
        return result;
      };
      copy.spatial = axes(stage.spatial);
      copy.reduce = axes(stage.reduce);
      for (const Condition& guard : stage.guards) copy.guards.push_back({Renamed(guard.index), guard.extent});
      const bool sum = stage.reducer == Reducer::kSum || stage.reducer == Reducer::kProd || stage.reducer == Reducer::kNone;
      copy.reducer = magnitude && !sum ? Reducer::kMax : stage.reducer;
      for (size_t c = 0; c < stage.tensors.size(); ++c) {
        if (apart && c != part) continue;
        const Tensor& tensor = from_.tensors[stage.tensors[c]];
        const auto id = static_cast<BufferId>(to_.tensors.size());
        to_.tensors.push_back({.name = absl::StrCat(tensor.name, magnitude ? "_magnitude" : "_value"),
                               .dtype = DType::kF64,
                               .shape = tensor.shape,
                               .output = tensor.output,
                               .stage = static_cast<int>(to_.stages.size())});
        (magnitude ? magnitudes_ : values_)[stage.tensors[c]] = id;
        copy.tensors.push_back(id);
        copy.values.push_back(magnitude ? Magnitude(stage.values[c]) : Value(stage.values[c]));
      }
      to_.stages.push_back(std::move(copy));
    }
  }

  Index Renamed(const Index& index) {
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

  ExprId F64(ExprId value) { return to_.pool.Cast(DType::kF64, value); }
  ExprId Abs(ExprId value) { return to_.pool.Unary(Op::kAbs, value); }

  ExprId LoadOf(const Expr& expr, const std::vector<BufferId>& tensors) {
    IndexList indices;
    for (const Index& index : from_.pool.IndicesOf(expr)) indices.push_back(Renamed(index));
    const BufferId tensor = tensors[expr.buffer];
    return F64(to_.pool.Load(tensor, to_.tensors[tensor].dtype, std::move(indices)));
  }

  // In f64, but comparisons and logic in bool.
  ExprId Value(ExprId id) {
    const Expr expr = from_.pool[id];
    ExprPool& pool = to_.pool;
    switch (expr.op) {
      case Op::kConst:
        return pool.Const(expr.dtype == DType::kBool ? DType::kBool : DType::kF64, expr.value);
      case Op::kIndex:
        return F64(pool.OfIndex(Renamed(from_.pool.IndicesOf(expr)[0])));
      case Op::kLoad:
        return LoadOf(expr, values_);
      case Op::kCast: {
        const ExprId a = Value(expr.a);
        return IsFloat(expr.dtype) ? F64(a) : F64(pool.Cast(DType::kI64, a));
      }
      default:
        break;
    }
    const ExprId a = Value(expr.a);
    const ExprId b = expr.b == kNoExpr ? kNoExpr : Value(expr.b);
    if (expr.op == Op::kSelect) return pool.Select(a, b, Value(expr.c));
    if (expr.b == kNoExpr) return pool.Unary(expr.op, a);
    if (expr.op == Op::kDiv && !IsFloat(expr.dtype)) {
      return F64(pool.Binary(Op::kDiv, pool.Cast(DType::kI64, a), pool.Cast(DType::kI64, b)));
    }
    return pool.Binary(expr.op, a, b);
  }

  ExprId Magnitude(ExprId id) {
    const Expr expr = from_.pool[id];
    ExprPool& pool = to_.pool;
    switch (expr.op) {
      case Op::kConst:
        return pool.Const(DType::kF64, std::abs(expr.value));
      case Op::kIndex:
        return Abs(Value(id));
      case Op::kLoad: {
        const ExprId load = LoadOf(expr, magnitudes_);
        return from_.tensors[expr.buffer].input ? Abs(load) : load;
      }
      case Op::kAdd:
      case Op::kSub:
        return pool.Binary(Op::kAdd, Magnitude(expr.a), Magnitude(expr.b));
      case Op::kMul:
        return pool.Binary(Op::kMul, Magnitude(expr.a), Magnitude(expr.b));
      case Op::kDiv: {
        const ExprId divisor = Abs(Value(expr.b));
        const ExprId zero = pool.Binary(Op::kEqual, divisor, pool.Const(DType::kF64, 0));
        const ExprId a = Magnitude(expr.a);
        return pool.Select(zero, a, pool.Binary(Op::kDiv, a, divisor));
      }
      case Op::kMin:
      case Op::kMax:
        return pool.Binary(Op::kMax, Magnitude(expr.a), Magnitude(expr.b));
      case Op::kNeg:
      case Op::kAbs:
      case Op::kCast:
        return Magnitude(expr.a);
      case Op::kSelect:
        return pool.Select(Value(expr.a), Magnitude(expr.b), Magnitude(expr.c));
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kEqual:
      case Op::kAnd:
      case Op::kOr:
      case Op::kNot:
        return F64(Value(id));
      default:
        return pool.Binary(Op::kMax, Abs(Value(id)), Magnitude(expr.a));
    }
  }

  const Workload& from_;
  Workload to_;
  std::vector<BufferId> values_, magnitudes_;  // of the original's tensors
  std::vector<AtomId> renamed_;                // variables of the stage being copied
};

}  // namespace

absl::StatusOr<Workload> ReferenceWorkload(const Workload& workload) { return ReferenceBuilder(workload).Run(); }

}  // namespace hone::ir
