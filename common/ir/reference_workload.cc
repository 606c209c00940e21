#include "common/ir/reference_workload.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::ir {
namespace {

// What values of a dtype are computed in: floats in f64. Integers wrap and booleans choose, so both
// keep their own.
DType ValueDType(DType dtype) { return IsFloat(dtype) ? DType::kF64 : dtype; }

bool IsSum(Reducer reducer) {
  return reducer == Reducer::kSum || reducer == Reducer::kProd || reducer == Reducer::kNone;
}

class ReferenceBuilder {
 public:
  explicit ReferenceBuilder(const Workload& workload)
      : from_(workload),
        values_(workload.tensors.size(), -1),
        magnitudes_(values_),
        needed_(workload.tensors.size()) {
    to_.name = workload.name + "_reference";
  }

  absl::StatusOr<Workload> Run() {
    for (size_t t = 0; t < from_.tensors.size(); ++t) {
      if (!from_.tensors[t].input) continue;
      values_[t] = magnitudes_[t] = static_cast<BufferId>(to_.tensors.size());
      to_.tensors.push_back(from_.tensors[t]);
      to_.tensors.back().constant = false;
    }
    for (const Stage& stage : from_.stages)
      AddStage(stage, stage.tensors, stage.values, /*magnitude=*/false);
    // Conditions take part by their values alone.
    for (size_t s = from_.stages.size(); s-- > 0;) {
      const Stage& stage = from_.stages[s];
      for (size_t c = 0; c < stage.tensors.size(); ++c) {
        const BufferId id = stage.tensors[c];
        needed_[id] = needed_[id] || from_.tensors[id].output;
        if (needed_[id]) MarkNeeded(stage.values[c]);
      }
    }
    for (const Stage& stage : from_.stages) {
      // A magnitude is not a tuple: each component reduces for itself.
      for (size_t c = 0; c < stage.tensors.size(); ++c) {
        if (needed_[stage.tensors[c]])
          AddStage(stage, {stage.tensors[c]}, {stage.values[c]}, /*magnitude=*/true);
      }
    }
    HONE_RETURN_IF_ERROR(to_.Validate());
    return std::move(to_);
  }

 private:
  // The tensors whose magnitudes Magnitude() of the expression reads.
  void MarkNeeded(ExprId id) {
    const Expr& expr = from_.pool[id];
    switch (expr.op) {
      case Op::kLoad:
        needed_[expr.buffer] = true;
        return;
      case Op::kSelect:
        MarkNeeded(expr.b);
        MarkNeeded(expr.c);
        return;
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kDiv:
      case Op::kMin:
      case Op::kMax:
        MarkNeeded(expr.b);
        break;
      default:
        break;
    }
    if (expr.a != kNoExpr) MarkNeeded(expr.a);
  }

  std::vector<Axis> Renamed(const std::vector<Axis>& axes) {
    std::vector<Axis> result;
    for (const Axis& axis : axes) {
      renamed_[axis.var] = to_.atoms.AddVar(from_.atoms[axis.var].name, axis.extent);
      result.push_back({renamed_[axis.var], axis.extent});
    }
    return result;
  }

  BufferId AddTensor(std::string name, DType dtype, const Shape& shape, bool output) {
    to_.tensors.push_back({.name = std::move(name),
                           .dtype = dtype,
                           .shape = shape,
                           .output = output,
                           .stage = static_cast<int>(to_.stages.size())});
    return static_cast<BufferId>(to_.tensors.size()) - 1;
  }

  // The stage's values, or magnitudes, of these of its components.
  void AddStage(const Stage& stage, const std::vector<BufferId>& tensors,
                const std::vector<ExprId>& values, bool magnitude) {
    renamed_.assign(from_.atoms.size(), kNoAtom);
    Stage copy;
    copy.spatial = Renamed(stage.spatial);
    copy.reduce = Renamed(stage.reduce);
    for (const Condition& guard : stage.guards)
      copy.guards.push_back({Renamed(guard.index), guard.extent});
    copy.reducer = magnitude && !IsSum(stage.reducer) ? Reducer::kMax : stage.reducer;
    // Of no terms at all the largest is −∞, the magnitude 0.
    const bool may_be_empty = copy.reducer == Reducer::kMax && magnitude && !stage.guards.empty();
    for (size_t c = 0; c < tensors.size(); ++c) {
      const Tensor& tensor = from_.tensors[tensors[c]];
      const DType dtype = magnitude ? DType::kF64 : ValueDType(tensor.dtype);
      const bool output = tensor.output && dtype == DType::kF64 && !may_be_empty;
      const BufferId id = AddTensor(absl::StrCat(tensor.name, magnitude ? "_magnitude" : "_value"),
                                    dtype, tensor.shape, output);
      (magnitude ? magnitudes_ : values_)[tensors[c]] = id;
      copy.tensors.push_back(id);
      copy.values.push_back(magnitude ? Magnitude(values[c]) : Value(values[c]));
    }
    to_.stages.push_back(std::move(copy));
    for (size_t c = 0; c < tensors.size(); ++c) {
      const BufferId id = (magnitude ? magnitudes_ : values_)[tensors[c]];
      if (may_be_empty) {
        magnitudes_[tensors[c]] = AddCopy(stage, tensors[c], id, /*least=*/0);
      } else if (from_.tensors[tensors[c]].output && to_.tensors[id].dtype != DType::kF64) {
        AddCopy(stage, tensors[c], id,
                std::nullopt);  // what reads the tensor goes on reading its own dtype
      }
    }
  }

  // A stage that copies a tensor of the reference, of the original's stage and tensor, as f64, at
  // least `least`.
  BufferId AddCopy(const Stage& stage, BufferId original, BufferId from,
                   std::optional<double> least) {
    Stage copy;
    copy.spatial = Renamed(stage.spatial);
    IndexList indices;
    for (const Axis& axis : copy.spatial) indices.push_back(Index::Of(axis.var));
    ExprId value = F64(to_.pool.Load(from, to_.tensors[from].dtype, std::move(indices)));
    if (least) value = to_.pool.Binary(Op::kMax, value, to_.pool.Const(DType::kF64, *least));
    const BufferId id = AddTensor(absl::StrCat(to_.tensors[from].name, "_f64"), DType::kF64,
                                  to_.tensors[from].shape, from_.tensors[original].output);
    copy.tensors.push_back(id);
    copy.values.push_back(value);
    to_.stages.push_back(std::move(copy));
    return id;
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
    const ExprId load = to_.pool.Load(tensor, to_.tensors[tensor].dtype, std::move(indices));
    return to_.pool.Cast(ValueDType(to_.tensors[tensor].dtype), load);
  }

  // Of ValueDType. Casts round all the same.
  ExprId Value(ExprId id) {
    const Expr expr = from_.pool[id];
    ExprPool& pool = to_.pool;
    switch (expr.op) {
      case Op::kConst:
        return pool.Const(ValueDType(expr.dtype), expr.value);
      case Op::kIndex:
        return pool.OfIndex(Renamed(from_.pool.IndicesOf(expr)[0]));
      case Op::kLoad:
        return LoadOf(expr, values_);
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

  ExprId Magnitude(ExprId id) {
    const Expr expr = from_.pool[id];
    ExprPool& pool = to_.pool;
    switch (expr.op) {
      case Op::kConst:
        return pool.Const(DType::kF64, std::abs(expr.value));
      case Op::kIndex:
        return Abs(F64(Value(id)));
      case Op::kLoad: {
        const ExprId load = F64(LoadOf(expr, magnitudes_));
        return from_.tensors[expr.buffer].input ? Abs(load) : load;
      }
      case Op::kAdd:
      case Op::kSub:
        return pool.Binary(Op::kAdd, Magnitude(expr.a), Magnitude(expr.b));
      case Op::kMul:
        return pool.Binary(Op::kMul, Magnitude(expr.a), Magnitude(expr.b));
      case Op::kDiv: {
        const ExprId divisor = Abs(F64(Value(expr.b)));
        const ExprId zero = pool.Binary(Op::kEqual, divisor, pool.Const(DType::kF64, 0));
        const ExprId one = pool.Const(DType::kF64, 1);
        const ExprId condition =
            pool.Select(zero, one, pool.Binary(Op::kDiv, Magnitude(expr.b), divisor));
        const ExprId quotient =
            pool.Binary(Op::kDiv, Magnitude(expr.a), pool.Select(zero, one, divisor));
        return pool.Binary(Op::kMul, quotient, condition);
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
      case Op::kExp: {
        const ExprId value = Abs(Value(id)), a = Magnitude(expr.a);
        return pool.Binary(Op::kMax, pool.Binary(Op::kMax, value, a),
                           pool.Binary(Op::kMul, value, a));
      }
      default:
        return pool.Binary(Op::kMax, Abs(F64(Value(id))), Magnitude(expr.a));
    }
  }

  const Workload& from_;
  Workload to_;
  std::vector<BufferId> values_, magnitudes_;  // of the original's tensors
  std::vector<bool> needed_;                   // by the original's tensors: their magnitudes
  std::vector<AtomId> renamed_;                // variables of the stage being copied
};

}  // namespace

int64_t ReferenceBytes(const Workload& workload) {
  constexpr int64_t kFillings = 2;
  int64_t elements = 0;  // no workload's overflow, nor does their sum times 32
  for (const BufferId output : workload.Outputs()) {
    elements += ElementsOf(workload.tensors[output].shape);
    if (elements > kMostReferenceBytes) break;
  }
  return elements * kFillings * 2 * static_cast<int64_t>(sizeof(double));
}

absl::Status CheckReferenceBytes(const Workload& workload) {
  const int64_t bytes = ReferenceBytes(workload);
  if (bytes <= kMostReferenceBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "its outputs are too large to be checked: their reference takes ", bytes >> 20,
      " MiB, 32 bytes for each element; at most ", kMostReferenceBytes >> 20, " MiB are spent on one"));
}

absl::StatusOr<Workload> ReferenceWorkload(const Workload& workload) { return ReferenceBuilder(workload).Run(); }

}  // namespace hone::ir
