#include "common/ir/reference_workload.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/error_bound.h"

namespace hone::ir {
namespace {

// What values of a dtype are computed in: floats in f64. Integers wrap and booleans choose, so both
// keep their own.
DType ValueDType(DType dtype) { return IsFloat(dtype) ? DType::kF64 : dtype; }

// How the magnitudes of a component's terms combine.
Reducer MagnitudeReducer(Reducer reducer, size_t component) {
  switch (reducer) {
    case Reducer::kNone:
    case Reducer::kSum:
    case Reducer::kProd:
      return reducer;
    case Reducer::kOnlineSoftmax:
      return component == 0 ? Reducer::kMax : Reducer::kSum;
    default:
      return Reducer::kMax;
  }
}

// An f64 expression of the reference, for the formulas of error_bound.h.
struct F64Term {
  ExprPool* pool;
  ExprId id;
};
F64Term Constant(F64Term like, double value) {
  return {like.pool, like.pool->Const(DType::kF64, value)};
}
F64Term Binary(Op op, F64Term a, F64Term b) { return {a.pool, a.pool->Binary(op, a.id, b.id)}; }
F64Term Unary(Op op, F64Term a) { return {a.pool, a.pool->Unary(op, a.id)}; }
F64Term operator+(F64Term a, F64Term b) { return Binary(Op::kAdd, a, b); }
F64Term operator+(double a, F64Term b) { return Constant(b, a) + b; }
F64Term operator-(F64Term a, F64Term b) { return Binary(Op::kSub, a, b); }
F64Term operator-(F64Term a, double b) { return a - Constant(a, b); }
F64Term operator*(F64Term a, F64Term b) { return Binary(Op::kMul, a, b); }
F64Term operator*(double a, F64Term b) { return Constant(b, a) * b; }
F64Term operator*(F64Term a, double b) { return a * Constant(a, b); }
F64Term operator/(F64Term a, F64Term b) { return Binary(Op::kDiv, a, b); }
F64Term Larger(F64Term a, F64Term b) { return Binary(Op::kMax, a, b); }
F64Term Absolute(F64Term a) { return Unary(Op::kAbs, a); }
F64Term Exponential(F64Term a) { return Unary(Op::kExp, a); }
F64Term SquareRoot(F64Term a) { return Unary(Op::kSqrt, a); }
F64Term IfZero(F64Term a, F64Term then, F64Term otherwise) {
  const F64Term zero = Binary(Op::kEqual, a, Constant(a, 0));
  return {a.pool, a.pool->Select(zero.id, then.id, otherwise.id)};
}

class ReferenceBuilder {
 public:
  explicit ReferenceBuilder(const Workload& workload)
      : from_(workload),
        values_(workload.tensors.size(), -1),
        magnitudes_(values_),
        roundings_(values_),
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
    for (const Stage& stage : from_.stages) AddValues(stage);
    // Conditions take part by their values alone.
    for (size_t s = from_.stages.size(); s-- > 0;) {
      const Stage& stage = from_.stages[s];
      for (size_t c = 0; c < stage.tensors.size(); ++c) {
        const BufferId id = stage.tensors[c];
        needed_[id] = needed_[id] || from_.tensors[id].output;
        if (needed_[id]) MarkNeeded(stage.values[c]);
      }
      // The magnitude of the sum takes that of the maximum.
      if (stage.reducer == Reducer::kOnlineSoftmax && needed_[stage.tensors[1]]) {
        needed_[stage.tensors[0]] = true;
        MarkNeeded(stage.values[0]);
      }
    }
    // Bounds are not tuples: each component reduces for itself.
    for (const Stage& stage : from_.stages) {
      for (size_t c = 0; c < stage.tensors.size(); ++c) {
        if (needed_[stage.tensors[c]]) AddMagnitude(stage, c);
      }
    }
    if (RoundsOnTheWay(from_)) {
      for (const Stage& stage : from_.stages) {
        for (size_t c = 0; c < stage.tensors.size(); ++c) {
          if (needed_[stage.tensors[c]]) AddRounding(stage, c);
        }
      }
    }
    HONE_RETURN_IF_ERROR(to_.Validate(kMostDepth));
    return std::move(to_);
  }

 private:
  static constexpr int64_t kMostNodes = 4096;  // of the formula of a rounding
  static constexpr int kMostDepth = 64 * kMaxExprDepth;

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

  // A stage over new axes with the guards of the original one.
  Stage CopyDomain(const Stage& stage, Reducer reducer) {
    renamed_.assign(from_.atoms.size(), kNoAtom);
    Stage copy;
    copy.spatial = Renamed(stage.spatial);
    copy.reduce = Renamed(stage.reduce);
    for (const Condition& guard : stage.guards) {
      copy.guards.push_back({Renamed(guard.index), guard.extent});
    }
    copy.reducer = reducer;
    return copy;
  }

  void AddValues(const Stage& stage) {
    Stage copy = CopyDomain(stage, stage.reducer);
    // Integers of less than 64 bits are computed as they are and kept as f64. All outputs of a stage
    // are copied or none, so that they keep their order.
    const bool copies = std::any_of(stage.tensors.begin(), stage.tensors.end(), [&](BufferId id) {
      const Tensor& tensor = from_.tensors[id];
      return tensor.output && ValueDType(tensor.dtype) != ReferenceDType(tensor.dtype);
    });
    for (size_t c = 0; c < stage.tensors.size(); ++c) {
      const Tensor& tensor = from_.tensors[stage.tensors[c]];
      const DType dtype = ValueDType(tensor.dtype);
      values_[stage.tensors[c]] = AddTensor(absl::StrCat(tensor.name, "_value"), dtype,
                                            tensor.shape, tensor.output && !copies);
      copy.tensors.push_back(values_[stage.tensors[c]]);
      // What is compared is what is kept.
      const ExprId value = Value(stage.values[c]);
      const bool rounds = stage.values.size() > 1 && AccumulatorOf(tensor.dtype) != tensor.dtype;
      copy.values.push_back(rounds ? to_.pool.Cast(dtype, to_.pool.Cast(tensor.dtype, value))
                                   : value);
    }
    to_.stages.push_back(std::move(copy));
    // The stages that read the tensors go on reading their own dtypes.
    for (const BufferId original : stage.tensors) {
      if (copies && from_.tensors[original].output) {
        AddCopy(stage, original, values_[original], std::nullopt);
      }
    }
  }

  void AddMagnitude(const Stage& stage, size_t component) {
    const BufferId original = stage.tensors[component];
    const Tensor& tensor = from_.tensors[original];
    Stage copy = CopyDomain(stage, MagnitudeReducer(stage.reducer, component));
    // The maximum of no terms is −∞, the magnitude 0.
    const bool may_be_empty = copy.reducer == Reducer::kMax && !stage.guards.empty();
    copy.values.push_back(stage.reducer == Reducer::kOnlineSoftmax && component == 1
                              ? SoftmaxMagnitude(stage, copy)
                              : OfContending(stage, component, copy,
                                             Magnitude(stage.values[component])));
    const BufferId id = AddTensor(absl::StrCat(tensor.name, "_magnitude"), DType::kF64,
                                  tensor.shape, tensor.output && !may_be_empty);
    copy.tensors.push_back(id);
    to_.stages.push_back(std::move(copy));
    magnitudes_[original] = may_be_empty ? AddCopy(stage, original, id, /*least=*/0) : id;
  }

  // A bound of a term; 0 if the stage is a maximum or minimum which the term cannot decide.
  ExprId OfContending(const Stage& stage, size_t component, const Stage& copy, ExprId bound) {
    if (!FindsExtreme(stage.reducer) || component != 0) return bound;
    const F64Term value = Term(Value(stage.values[0]));
    const F64Term extreme = AtPlace(values_[stage.tensors[0]], copy);
    const F64Term gap = IsMinimum(stage.reducer) ? value - extreme : extreme - value;
    const F64Term reach = kContending * Term(Magnitude(stage.values[0]));
    const ExprId far = to_.pool.Binary(Op::kLess, reach.id, gap.id);
    return to_.pool.Select(far, Constant(value, 0).id, Term(bound).id);
  }

  // exp(x − max) of an online softmax's term, 0 where x is −∞; and what it is multiplied with.
  // `copy`: the stage being made.
  ExprId SoftmaxTerm(const Stage& stage, const Stage& copy, F64Term factor) {
    const F64Term x = Term(Value(stage.values[0]));
    const F64Term term = factor * Exponential(x - AtPlace(values_[stage.tensors[0]], copy));
    const ExprId empty = Constant(x, -std::numeric_limits<double>::infinity()).id;
    const ExprId is_empty = to_.pool.Binary(Op::kEqual, x.id, empty);
    return to_.pool.Select(is_empty, Constant(x, 0).id, term.id);
  }
  // Each exponential of Σ s·exp(x − max) has the errors of x and of the maximum.
  ExprId SoftmaxMagnitude(const Stage& stage, const Stage& copy) {
    const F64Term x = Term(Magnitude(stage.values[0])), s = Term(Magnitude(stage.values[1]));
    const F64Term max = AtPlace(magnitudes_[stage.tensors[0]], copy);
    return SoftmaxTerm(stage, copy, s * (1 + (x + max)));
  }
  ExprId SoftmaxRounding(const Stage& stage, const Stage& copy) {
    const F64Term s = Term(Value(stage.values[1]));
    F64Term sum = Absolute(s) * OrZero(Rounding(stage.values[0]));
    if (const BufferId max = roundings_[stage.tensors[0]]; max >= 0) {
      sum = sum + Absolute(s) * AtPlace(max, copy);
    }
    return SoftmaxTerm(stage, copy, OrZero(Rounding(stage.values[1])) + sum);
  }

  void AddRounding(const Stage& stage, size_t component) {
    const BufferId original = stage.tensors[component];
    const Tensor& tensor = from_.tensors[original];
    Stage copy = CopyDomain(stage, MagnitudeReducer(stage.reducer, component));
    const bool product = stage.reducer == Reducer::kProd;
    if (product) copy.reducer = Reducer::kSum;
    const ExprId own = Rounding(stage.values[component]);
    const bool softmax = stage.reducer == Reducer::kOnlineSoftmax && component == 1;
    if (own == kNoExpr && !(softmax && Rounding(stage.values[0]) != kNoExpr)) {
      // An output has one all the same.
      if (tensor.output) AddZero(stage, original);
      return;
    }
    ExprId value = softmax ? SoftmaxRounding(stage, copy)
                           : OfContending(stage, component, copy, own);
    if (product) {
      // Relative to the value; AddScaled() makes it absolute.
      const F64Term term = Absolute(Term(Value(stage.values[component])));
      value = (Term(value) / IfZero(term, Constant(term, 1), term)).id;
    }
    const bool may_be_empty = copy.reducer == Reducer::kMax && !stage.guards.empty();
    const BufferId id = AddTensor(absl::StrCat(tensor.name, "_rounding"), DType::kF64,
                                  tensor.shape, tensor.output && !may_be_empty && !product);
    copy.values.push_back(value);
    copy.tensors.push_back(id);
    to_.stages.push_back(std::move(copy));
    roundings_[original] = product        ? AddScaled(stage, original, id)
                           : may_be_empty ? AddCopy(stage, original, id, /*least=*/0)
                                          : id;
  }

  // A stage over the places of an original one that gives `value` of the stage in the making.
  template <typename MakeValue>
  BufferId AddMap(const Stage& stage, BufferId original, absl::string_view suffix,
                  const MakeValue& value) {
    Stage map;
    map.spatial = Renamed(stage.spatial);
    map.values.push_back(value(map));
    const Tensor& tensor = from_.tensors[original];
    const BufferId id = AddTensor(absl::StrCat(tensor.name, suffix), to_.pool[map.values[0]].dtype,
                                  tensor.shape, tensor.output);
    map.tensors.push_back(id);
    to_.stages.push_back(std::move(map));
    return id;
  }
  void AddZero(const Stage& stage, BufferId original) {
    AddMap(stage, original, "_rounding",
           [&](const Stage&) { return to_.pool.Const(DType::kF64, 0); });
  }
  BufferId AddScaled(const Stage& stage, BufferId original, BufferId relative) {
    return AddMap(stage, original, "_rounding_scaled", [&](const Stage& map) {
      return (Absolute(AtPlace(values_[original], map)) * AtPlace(relative, map)).id;
    });
  }

  // A copy of a tensor of the reference, values of i64 as they are and everything else as f64, at
  // least `least`, in the place of the original.
  BufferId AddCopy(const Stage& stage, BufferId original, BufferId from,
                   std::optional<double> least) {
    const std::string suffix = to_.tensors[from].name.substr(from_.tensors[original].name.size());
    if (to_.tensors[from].dtype == DType::kI64) {
      return AddMap(stage, original, absl::StrCat(suffix, "_i64"),
                    [&](const Stage& map) { return LoadAtPlace(from, map); });
    }
    return AddMap(stage, original, absl::StrCat(suffix, "_f64"), [&](const Stage& map) {
      const F64Term value = AtPlace(from, map);
      return least ? Larger(value, Constant(value, *least)).id : value.id;
    });
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

  F64Term Term(ExprId value) { return {&to_.pool, to_.pool.Cast(DType::kF64, value)}; }
  // The element of a tensor at a stage's own place.
  F64Term AtPlace(BufferId tensor, const Stage& stage) {
    return Term(LoadAtPlace(tensor, stage));
  }
  ExprId LoadAtPlace(BufferId tensor, const Stage& stage) {
    IndexList indices;
    for (const Axis& axis : stage.spatial) indices.push_back(Index::Of(axis.var));
    return to_.pool.Load(tensor, to_.tensors[tensor].dtype, std::move(indices));
  }

  ExprId LoadOf(const Expr& expr, const std::vector<BufferId>& tensors) {
    IndexList indices;
    for (const Index& index : from_.pool.IndicesOf(expr)) indices.push_back(Renamed(index));
    const BufferId tensor = tensors[expr.buffer];
    const ExprId load = to_.pool.Load(tensor, to_.tensors[tensor].dtype, std::move(indices));
    return to_.pool.Cast(ValueDType(to_.tensors[tensor].dtype), load);
  }

  // What a stage reads of another one has been rounded, if its dtype is a short one.
  ExprId Stored(const Expr& load, ExprId value) {
    const Tensor& tensor = from_.tensors[load.buffer];
    if (tensor.input || AccumulatorOf(tensor.dtype) == tensor.dtype) return value;
    return to_.pool.Cast(DType::kF64, to_.pool.Cast(tensor.dtype, value));
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
        return Stored(expr, LoadOf(expr, values_));
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
    switch (expr.op) {
      case Op::kConst:
        return to_.pool.Const(DType::kF64, MagnitudeOfConstant(expr.value.real()));
      case Op::kIndex:
        return Absolute(Term(Value(id))).id;
      case Op::kLoad: {
        const F64Term load = Term(LoadOf(expr, magnitudes_));
        return from_.tensors[expr.buffer].input ? Absolute(load).id : load.id;
      }
      case Op::kSelect:
        return to_.pool.Select(Value(expr.a), Magnitude(expr.b), Magnitude(expr.c));
      default:
        break;
    }
    const F64Term a = Term(Magnitude(expr.a));
    const bool binary = IsArithmetic(expr);
    const F64Term b_value = expr.op == Op::kDiv ? Term(Value(expr.b)) : a;
    const F64Term b = binary ? Term(Magnitude(expr.b)) : a;
    const bool takes_value = !binary && expr.op != Op::kNeg && expr.op != Op::kAbs &&
                             expr.op != Op::kCast;
    return MagnitudeOf(expr.op, takes_value ? Term(Value(id)) : a, a, b_value, b).id;
  }
  // Comparisons have two operands, too, but are not read in magnitude.
  static bool IsArithmetic(const Expr& expr) {
    return expr.b != kNoExpr && expr.op >= Op::kAdd && expr.op <= Op::kMax;
  }

  // kNoExpr: nothing on the way rounds to a short format.
  ExprId Rounding(ExprId id) {
    const ExprId rounding = ExactRounding(id);
    if (rounding == kNoExpr || TreeSize(rounding) <= kMostNodes) return rounding;
    // Operands occur more than once in the formulas, so that deep expressions grow without bound.
    // Their rounding is taken as relative to the magnitude, at every operation.
    // So is what the tensors that are read have inherited.
    const F64Term magnitude = Term(Magnitude(id));
    F64Term unit = Constant(magnitude, 0);
    double own = 0;
    from_.pool.Visit(id, [&](const Expr& expr) {
      own += std::max(StoreRounding(expr.dtype), StoreRounding(DType::kF32));
      if (expr.op != Op::kLoad || RoundingOfLoad(expr) == kNoExpr) return;
      const F64Term read = Term(LoadOf(expr, magnitudes_));
      const F64Term size = Absolute(read);
      unit = unit + Term(RoundingOfLoad(expr)) / IfZero(size, Constant(size, 1), size);
    });
    return (2.0 * (unit + Constant(unit, own)) * magnitude).id;
  }
  // Nodes of an expression as a tree.
  int64_t TreeSize(ExprId id) {
    for (ExprId next = static_cast<ExprId>(sizes_.size()); next <= id; ++next) {
      int64_t size = 1;
      for (const ExprId operand : {to_.pool[next].a, to_.pool[next].b, to_.pool[next].c}) {
        if (operand != kNoExpr) size += sizes_[operand];
      }
      sizes_.push_back(std::min(size, 2 * kMostNodes));
    }
    return sizes_[id];
  }

  ExprId ExactRounding(ExprId id) {
    const Expr expr = from_.pool[id];
    switch (expr.op) {
      case Op::kConst:
      case Op::kIndex:
        return kNoExpr;
      case Op::kLoad:
        return RoundingOfLoad(expr);
      case Op::kSelect: {
        const ExprId b = Rounding(expr.b), c = Rounding(expr.c);
        if (b == kNoExpr && c == kNoExpr) return kNoExpr;
        return to_.pool.Select(Value(expr.a), OrZero(b).id, OrZero(c).id);
      }
      case Op::kCast: {
        if (expr.dtype == DType::kBool) return kNoExpr;
        const ExprId a = Rounding(expr.a);
        const DType operand = from_.pool[expr.a].dtype;
        // A float that is a little off may become the next integer.
        const bool truncates = IsFloat(operand) && !IsFloat(expr.dtype) && a != kNoExpr;
        if (truncates) {
          const F64Term off = Term(a);
          return IfZero(off, off, off + Constant(off, 1)).id;
        }
        const double relative = CastRounding(operand, expr.dtype);
        if (relative == 0) return a;
        const F64Term own = relative * Absolute(Term(Value(id)));
        return a == kNoExpr ? own.id : (Term(a) + own).id;
      }
      default:
        break;
    }
    if (expr.dtype == DType::kBool) return kNoExpr;
    const ExprId a = Rounding(expr.a), b = expr.b == kNoExpr ? kNoExpr : Rounding(expr.b);
    if (a == kNoExpr && b == kNoExpr) return kNoExpr;
    const F64Term a_value = Term(Value(expr.a));
    const F64Term b_value = expr.b == kNoExpr ? a_value : Term(Value(expr.b));
    return RoundingOf(expr.op, Term(Value(id)), a_value, OrZero(a), b_value, OrZero(b)).id;
  }
  // What the tensor's own stage has rounded, and its store to a short format.
  ExprId RoundingOfLoad(const Expr& load) {
    const Tensor& tensor = from_.tensors[load.buffer];
    if (tensor.input) return kNoExpr;
    const bool stored_short = AccumulatorOf(tensor.dtype) != tensor.dtype;
    const bool known = roundings_[load.buffer] >= 0;
    if (!stored_short) return known ? LoadOf(load, roundings_) : kNoExpr;
    const F64Term store = StoreRounding(tensor.dtype) * Absolute(Term(Stored(load, LoadOf(load, values_))));
    return known ? (Term(LoadOf(load, roundings_)) + store).id : store.id;
  }
  F64Term OrZero(ExprId rounding) {
    return {&to_.pool, rounding == kNoExpr ? to_.pool.Const(DType::kF64, 0) : rounding};
  }

  const Workload& from_;
  Workload to_;
  std::vector<BufferId> values_, magnitudes_;  // of the original's tensors
  std::vector<BufferId> roundings_;            // the same; −1 for 0
  std::vector<bool> needed_;                   // by the original's tensors: their bounds
  std::vector<AtomId> renamed_;                // variables of the stage being copied
  std::vector<int64_t> sizes_;                 // TreeSize of to_.pool's expressions
};

}  // namespace

DType ReferenceDType(DType dtype) { return dtype == DType::kI64 ? dtype : DType::kF64; }

bool RoundsOnTheWay(const Workload& workload) {
  bool rounds = false;
  for (const Stage& stage : workload.stages) {
    for (const ExprId value : stage.values) {
      workload.pool.Visit(value, [&](const Expr& expr) {
        if (expr.op == Op::kCast) {
          rounds |= CastRounding(workload.pool[expr.a].dtype, expr.dtype) > 0;
        } else if (expr.op == Op::kLoad && !workload.tensors[expr.buffer].input) {
          rounds |= AccumulatorOf(expr.dtype) != expr.dtype;
        }
      });
    }
  }
  return rounds;
}

int64_t ReferenceBytes(const Workload& workload) {
  constexpr int64_t kFillings = 2;
  const int64_t tensors = RoundsOnTheWay(workload) ? 3 : 2;
  int64_t elements = 0;  // cannot overflow, even times 48
  for (const BufferId output : workload.Outputs()) {
    elements += ElementsOf(workload.tensors[output].shape);
    if (elements > kMostReferenceBytes) break;
  }
  return elements * kFillings * tensors * static_cast<int64_t>(sizeof(double));
}

absl::Status CheckReferenceBytes(const Workload& workload) {
  const int64_t bytes = ReferenceBytes(workload);
  if (bytes <= kMostReferenceBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "its outputs are too large to be checked: their reference takes ", bytes >> 20,
      " MiB; the limit is ", kMostReferenceBytes >> 20, " MiB"));
}

absl::StatusOr<Workload> ReferenceWorkload(const Workload& workload) {
  return ReferenceBuilder(workload).Run();
}

}  // namespace hone::ir
