#include "common/ir/reference_workload.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/error_bound.h"
#include "common/ir/reference_exprs.h"

namespace hone::ir {
namespace {

// The reducer that combines the magnitudes of a component's terms.
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

bool FindsIndex(Reducer reducer) {
  return reducer == Reducer::kArgMax || reducer == Reducer::kArgMin;
}

class ReferenceBuilder {
 public:
  explicit ReferenceBuilder(const Workload& workload)
      : from_(workload),
        accuracy_(workload),
        tensors_(workload.tensors.size()),
        needed_(workload.tensors.size()),
        exprs_(from_, accuracy_, tensors_, to_) {
    to_.name = workload.name + "_reference";
  }

  absl::StatusOr<Workload> Run() {
    for (size_t t = 0; t < from_.tensors.size(); ++t) {
      if (!from_.tensors[t].input) continue;
      tensors_.values[t] = tensors_.magnitudes[t] = static_cast<BufferId>(to_.tensors.size());
      to_.tensors.push_back(from_.tensors[t]);
      to_.tensors.back().constant = false;
    }
    for (const Stage& stage : from_.stages) AddValues(stage);
    MarkNeeded();
    // Bounds are not tuples: each component has its own reduction.
    ForEachNeeded([&](const Stage& stage, size_t c) { AddMagnitude(stage, c); });
    if (accuracy_.rounds_on_the_way()) {
      ForEachNeeded([&](const Stage& stage, size_t c) { AddRoundings(stage, c); });
    }
    HONE_RETURN_IF_ERROR(to_.Validate(kMostDepth, kMostTensors));
    return std::move(to_);
  }

 private:
  static constexpr int kMostDepth = 64 * kMaxExprDepth;
  static constexpr size_t kMostTensors = 64 * kMaxTensors;

  template <typename Visit>
  void ForEachNeeded(const Visit& visit) {
    for (const Stage& stage : from_.stages) {
      for (size_t c = 0; c < stage.tensors.size(); ++c) {
        if (needed_[stage.tensors[c]]) visit(stage, c);
      }
    }
  }

  void MarkNeeded() {
    for (size_t s = from_.stages.size(); s-- > 0;) {
      const Stage& stage = from_.stages[s];
      for (size_t c = 0; c < stage.tensors.size(); ++c) {
        const BufferId id = stage.tensors[c];
        needed_[id] = needed_[id] || from_.tensors[id].output;
        if (needed_[id]) MarkNeeded(stage.values[c]);
      }
      // The bounds of an online softmax's sum use those of its maximum; the bounds of an index use
      // those of the extreme.
      const bool reads_extreme =
          stage.reducer == Reducer::kOnlineSoftmax ||
          (FindsIndex(stage.reducer) && accuracy_.MayDiffer(stage.values[0]));
      if (reads_extreme && needed_[stage.tensors[1]]) {
        needed_[stage.tensors[0]] = true;
        MarkNeeded(stage.values[0]);
      }
    }
  }

  // Marks the tensors whose magnitudes Magnitude() of the expression reads.
  void MarkNeeded(ExprId id) {
    const Expr& expr = from_.pool[id];
    switch (expr.op) {
      case Op::kLoad:
        needed_[expr.buffer] = true;
        // Only indices that may vary have bounds.
        if (expr.gathered >= 0 && accuracy_.MayVary(expr.a)) MarkNeeded(expr.a);
        return;
      case Op::kSelect:
        // Only conditions that may vary have bounds.
        if (accuracy_.MayVary(expr.a)) MarkNeeded(expr.a);
        MarkNeeded(expr.b);
        MarkNeeded(expr.c);
        return;
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kEqual:
      case Op::kAnd:
      case Op::kOr:
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kDiv:
      case Op::kMin:
      case Op::kMax:
      case Op::kWhere:
      case Op::kPow:
      case Op::kShiftLeft:
      case Op::kShiftRight:
        MarkNeeded(expr.b);
        break;
      default:
        break;
    }
    if (expr.a != kNoExpr) MarkNeeded(expr.a);
  }

  BufferId AddTensor(std::string name, DType dtype, const Shape& shape, bool output) {
    to_.tensors.push_back({.name = std::move(name),
                           .dtype = dtype,
                           .shape = shape,
                           .output = output,
                           .stage = static_cast<int>(to_.stages.size())});
    return static_cast<BufferId>(to_.tensors.size()) - 1;
  }

  // A stage over new axes with the guards of the original.
  Stage CopyDomain(const Stage& stage, Reducer reducer) {
    Stage copy;
    copy.spatial = exprs_.Renamed(stage.spatial);
    copy.reduce = exprs_.Renamed(stage.reduce);
    for (const Condition& guard : stage.guards) {
      copy.guards.push_back({exprs_.Renamed(guard.index), guard.extent});
    }
    copy.reducer = reducer;
    return copy;
  }

  void AddValues(const Stage& stage) {
    Stage copy = CopyDomain(stage, stage.reducer);
    // Integers below 64 bits are computed in their dtype and stored as f64. Either all outputs of a
    // stage are copied or none, so that their order is kept.
    const bool copies = absl::c_any_of(stage.tensors, [&](BufferId id) {
      const Tensor& tensor = from_.tensors[id];
      return tensor.output && ValueDType(tensor.dtype) != ReferenceDType(tensor.dtype);
    });
    for (size_t c = 0; c < stage.tensors.size(); ++c) {
      const Tensor& tensor = from_.tensors[stage.tensors[c]];
      const DType dtype = ValueDType(tensor.dtype);
      tensors_.values[stage.tensors[c]] = AddTensor(absl::StrCat(tensor.name, "_value"), dtype,
                                                    tensor.shape, tensor.output && !copies);
      copy.tensors.push_back(tensors_.values[stage.tensors[c]]);
      // Comparisons use the stored value.
      const ExprId value = exprs_.Value(stage.values[c]);
      const bool rounds = stage.values.size() > 1 && AccumulatorOf(tensor.dtype) != tensor.dtype;
      copy.values.push_back(rounds ? to_.pool.Cast(dtype, to_.pool.Cast(tensor.dtype, value))
                                   : value);
    }
    to_.stages.push_back(std::move(copy));
    // Stages that read these tensors still read the original dtypes.
    for (const BufferId original : stage.tensors) {
      if (copies && from_.tensors[original].output) {
        AddCopy(stage, original, tensors_.values[original], std::nullopt);
      }
    }
  }

  void AddMagnitude(const Stage& stage, size_t component) {
    const BufferId original = stage.tensors[component];
    Stage copy = CopyDomain(stage, MagnitudeReducer(stage.reducer, component));
    const ExprId value = stage.reducer == Reducer::kOnlineSoftmax && component == 1
                             ? SoftmaxMagnitude(stage, copy)
                             : OfContending(stage, component, copy);
    tensors_.magnitudes[original] = AddBound(stage, std::move(copy), original, "_magnitude", value);
  }

  // Adds a stage that bounds the errors of a tensor.
  BufferId AddBound(const Stage& stage, Stage copy, BufferId original, absl::string_view suffix,
                    ExprId value) {
    const Tensor& tensor = from_.tensors[original];
    // The maximum of no terms is −∞; its bound is 0.
    const bool may_be_empty = copy.reducer == Reducer::kMax && !stage.guards.empty();
    const BufferId id = AddTensor(absl::StrCat(tensor.name, suffix), DType::kF64, tensor.shape,
                                  tensor.output && !may_be_empty);
    copy.values.push_back(value);
    copy.tensors.push_back(id);
    to_.stages.push_back(std::move(copy));
    return may_be_empty ? AddCopy(stage, original, id, /*least=*/0) : id;
  }

  // The magnitude of a term; 0 if the term cannot be the extreme of a maximum or minimum.
  ExprId OfContending(const Stage& stage, size_t component, const Stage& copy) {
    const F64Term magnitude = exprs_.Magnitude(stage.values[component]);
    if (!FindsExtreme(stage.reducer) || component != 0) return magnitude.id;
    return ContendingMagnitude(magnitude, GapToExtreme(stage, copy)).id;
  }
  // The distance of a term from the maximum or minimum. `copy` is the new stage.
  F64Term GapToExtreme(const Stage& stage, const Stage& copy) {
    const F64Term value = exprs_.F64Value(stage.values[0]);
    const F64Term extreme = AtPlace(tensors_.values[stage.tensors[0]], copy);
    return IsMinimum(stage.reducer) ? value - extreme : extreme - value;
  }

  // exp(x − max) of an online softmax's term (0 where x is −∞), times a factor.
  ExprId SoftmaxTerm(const Stage& stage, const Stage& copy, F64Term factor) {
    const F64Term x = exprs_.F64Value(stage.values[0]);
    const F64Term max = AtPlace(tensors_.values[stage.tensors[0]], copy);
    const F64Term empty = exprs_.F64Constant(-std::numeric_limits<double>::infinity());
    const ExprId is_empty = Binary(Op::kEqual, x, empty).id;
    return Where(is_empty, exprs_.F64Constant(0), factor * Exponential(x - max)).id;
  }
  // Each exponential of Σ s·exp(x − max) has the errors of x and of the maximum.
  ExprId SoftmaxMagnitude(const Stage& stage, const Stage& copy) {
    const F64Term x = exprs_.Magnitude(stage.values[0]), s = exprs_.Magnitude(stage.values[1]);
    const F64Term max = AtPlace(tensors_.magnitudes[stage.tensors[0]], copy);
    return SoftmaxTerm(stage, copy, s * (1 + (x + max)));
  }
  // kNoExpr for 0.
  ExprId SoftmaxRounding(const Stage& stage, const Stage& copy) {
    const ExprId x = exprs_.Rounding(stage.values[0]), s = exprs_.Rounding(stage.values[1]);
    const BufferId max = tensors_.roundings[stage.tensors[0]];
    if (x == kNoExpr && s == kNoExpr && max < 0) return kNoExpr;
    F64Term of_exponents = exprs_.OrZero(x);
    if (max >= 0) of_exponents = of_exponents + AtPlace(max, copy);
    const F64Term size = Absolute(exprs_.F64Value(stage.values[1])), factor = exprs_.OrZero(s);
    const F64Term growth = Exponential(of_exponents);
    return SoftmaxTerm(stage, copy, factor * growth + size * (growth - 1.0));
  }

  // The result may be another index if errors could make that index's term the extreme. The bound
  // for it is the distance between the two indices.
  ExprId IndexRounding(const Stage& stage, const Stage& copy) {
    const ExprId error = exprs_.Error(stage.values[0]);
    if (error == kNoExpr) return kNoExpr;
    const BufferId extreme = stage.tensors[0];
    F64Term reach = exprs_.OrZero(error);
    if (tensors_.roundings[extreme] >= 0)
      reach = reach + AtPlace(tensors_.roundings[extreme], copy);
    if (!accuracy_.IsComputedExactly(extreme)) {
      reach = reach + accuracy_.relative_error() * AtPlace(tensors_.magnitudes[extreme], copy);
    }
    const F64Term found = AtPlace(tensors_.values[stage.tensors[1]], copy);
    const F64Term distance = Absolute(exprs_.F64Value(stage.values[1]) - found);
    const F64Term varies = ComparisonRounding(GapToExtreme(stage, copy), reach);
    return IfZero(varies, varies, distance).id;
  }

  // Adds the rounding of a stage's result, then the rounding that other stages read.
  void AddRoundings(const Stage& stage, size_t component) {
    const BufferId original = stage.tensors[component];
    const Tensor& tensor = from_.tensors[original];
    const BufferId computed = AddRounding(stage, component);
    if (computed < 0 && tensor.output) AddZero(stage, original);
    tensors_.roundings[original] = computed;
    if (!StoresShort(tensor)) return;
    const bool exact = accuracy_.IsComputedExactly(original);
    if (computed < 0 && exact) return;
    tensors_.roundings[original] =
        AddMap(stage, original, "_stored_rounding", /*output=*/false, [&](const Stage& map) {
          F64Term error = computed < 0 ? exprs_.F64Constant(0) : AtPlace(computed, map);
          if (!exact) {
            error =
                error + accuracy_.relative_error() * AtPlace(tensors_.magnitudes[original], map);
          }
          return ConversionRounding(DType::kF64, tensor.dtype,
                                    AtPlace(tensors_.values[original], map), error)
              .id;
        });
  }

  // −1 for 0.
  BufferId AddRounding(const Stage& stage, size_t component) {
    const BufferId original = stage.tensors[component];
    Stage copy = CopyDomain(stage, MagnitudeReducer(stage.reducer, component));
    ExprId value = kNoExpr;
    if (stage.reducer == Reducer::kOnlineSoftmax && component == 1) {
      value = SoftmaxRounding(stage, copy);
    } else if (FindsIndex(stage.reducer) && component == 1) {
      value = IndexRounding(stage, copy);
    } else if (const ExprId own = exprs_.Rounding(stage.values[component]); own != kNoExpr) {
      const bool extreme = FindsExtreme(stage.reducer) && component == 0;
      value = extreme ? Excess(exprs_.OrZero(own), GapToExtreme(stage, copy)).id : own;
    }
    if (value == kNoExpr) return -1;
    if (stage.reducer != Reducer::kProd) {
      return AddBound(stage, std::move(copy), original, "_rounding", value);
    }
    // The rounding of a product is first computed relative to its value.
    copy.reducer = Reducer::kSum;
    const F64Term size = Absolute(exprs_.F64Value(stage.values[component]));
    const F64Term relative = exprs_.OrZero(value) / IfZero(size, exprs_.F64Constant(1), size);
    const Tensor& tensor = from_.tensors[original];
    const BufferId id = AddTensor(absl::StrCat(tensor.name, "_rounding"), DType::kF64, tensor.shape,
                                  /*output=*/false);
    copy.values.push_back(relative.id);
    copy.tensors.push_back(id);
    to_.stages.push_back(std::move(copy));
    return AddMap(stage, original, "_rounding_scaled", tensor.output, [&](const Stage& map) {
      return (Absolute(AtPlace(tensors_.values[original], map)) * AtPlace(id, map)).id;
    });
  }

  // Adds a stage over the original's spatial axes that computes `value`, an expression of the new
  // stage.
  template <typename MakeValue>
  BufferId AddMap(const Stage& stage, BufferId original, absl::string_view suffix, bool output,
                  const MakeValue& value) {
    Stage map;
    map.spatial = exprs_.Renamed(stage.spatial);
    map.values.push_back(value(map));
    const Tensor& tensor = from_.tensors[original];
    const BufferId id = AddTensor(absl::StrCat(tensor.name, suffix), to_.pool[map.values[0]].dtype,
                                  tensor.shape, output);
    map.tensors.push_back(id);
    to_.stages.push_back(std::move(map));
    return id;
  }
  void AddZero(const Stage& stage, BufferId original) {
    AddMap(stage, original, "_rounding", /*output=*/true,
           [&](const Stage&) { return exprs_.F64Constant(0).id; });
  }

  // Adds a copy of a reference tensor in place of the original: i64 unchanged, other dtypes as f64
  // and not below `least`.
  BufferId AddCopy(const Stage& stage, BufferId original, BufferId from,
                   std::optional<double> least) {
    const bool output = from_.tensors[original].output;
    const std::string suffix = to_.tensors[from].name.substr(from_.tensors[original].name.size());
    if (to_.tensors[from].dtype == DType::kI64) {
      return AddMap(stage, original, absl::StrCat(suffix, "_i64"), output,
                    [&](const Stage& map) { return LoadAtPlace(from, map); });
    }
    return AddMap(stage, original, absl::StrCat(suffix, "_f64"), output, [&](const Stage& map) {
      const F64Term value = AtPlace(from, map);
      return least ? Larger(value, exprs_.F64Constant(*least)).id : value.id;
    });
  }

  // Loads the element of a tensor at the point that the stage computes.
  F64Term AtPlace(BufferId tensor, const Stage& stage) {
    return exprs_.AsF64(LoadAtPlace(tensor, stage));
  }
  ExprId LoadAtPlace(BufferId tensor, const Stage& stage) {
    IndexList indices;
    for (const Axis& axis : stage.spatial) indices.push_back(Index::Of(axis.var));
    return to_.pool.Load(tensor, to_.tensors[tensor].dtype, std::move(indices));
  }

  const Workload& from_;
  Workload to_;
  const Accuracy accuracy_;
  ReferenceTensors tensors_;
  std::vector<bool> needed_;  // indexed by original tensors: whether their bounds are needed
  ReferenceExprs exprs_;
};

}  // namespace

DType ReferenceDType(DType dtype) { return dtype == DType::kI64 ? dtype : DType::kF64; }

bool RoundsOnTheWay(const Workload& workload) { return Accuracy(workload).rounds_on_the_way(); }

absl::StatusOr<Workload> ReferenceWorkload(const Workload& workload) {
  return ReferenceBuilder(workload).Run();
}

}  // namespace hone::ir
