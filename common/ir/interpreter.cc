#include "common/ir/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/arithmetic.h"
#include "common/ir/error_bound.h"
#include "common/ir/expr.h"

namespace hone::ir {
namespace {

// The elements of one buffer. Sums of short floats stay unrounded, as in accumulators.
class Memory {
 public:
  Memory(DType dtype, int64_t elements)
      : dtype_(dtype),
        rounds_when_read_(AccumulatorOf(dtype) != dtype),
        values_(elements),
        written_(elements) {}

  size_t size() const { return values_.size(); }
  bool IsWritten(int64_t at) const { return written_[at]; }
  Scalar Read(int64_t at) const {
    return rounds_when_read_ ? CastTo(dtype_, values_[at]) : values_[at];
  }
  // The partial result of a reduction.
  Scalar Accumulated(int64_t at) const { return values_[at]; }
  void Store(int64_t at, Scalar value) { Accumulate(at, CastTo(dtype_, value)); }
  void Accumulate(int64_t at, Scalar value) {
    values_[at] = value;
    written_[at] = true;
  }

 private:
  DType dtype_;
  bool rounds_when_read_;
  Scalars values_;
  std::vector<bool> written_;
};

class Machine {
 public:
  Machine(const Program& program, int64_t max_steps)
      : program_(program), max_steps_(max_steps), vars_(program.atoms.size(), 0) {
    for (const Buffer& buffer : program.buffers) {
      memory_.emplace_back(buffer.dtype, ElementsOf(buffer.shape));
    }
  }

  Memory& memory(BufferId buffer) { return memory_[buffer]; }

  absl::Status Run() {
    for (NodeId kernel : program_.kernels) HONE_RETURN_IF_ERROR(Run(kernel));
    return absl::OkStatus();
  }

 private:
  absl::Status Run(NodeId id) {
    const Node& node = program_.node(id);
    if (node.kind == Node::Kind::kBlock) return RunBlock(id);
    const int64_t extent = node.kind == Node::Kind::kLoop ? node.extent.value : 1;
    for (int64_t i = 0; i < extent; ++i) {
      if (node.kind == Node::Kind::kLoop) vars_[node.var] = i;
      for (NodeId child : node.children) HONE_RETURN_IF_ERROR(Run(child));
    }
    return absl::OkStatus();
  }

  bool Holds(const std::vector<Condition>& conditions) const {
    return absl::c_all_of(conditions, [&](const Condition& condition) {
      const int64_t value = program_.atoms.Evaluate(condition.index, vars_);
      return value >= 0 && value < condition.extent;
    });
  }

  // `gathered`: the index in the dimension `gather`, if that is not −1.
  absl::StatusOr<int64_t> Offset(BufferId buffer, const IndexList& indices, int gather = -1,
                                 int64_t gathered = 0) const {
    const Shape& shape = program_.buffers[buffer].shape;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t value = static_cast<int>(d) == gather
                                ? std::clamp<int64_t>(gathered, 0, shape[d] - 1)
                                : program_.atoms.Evaluate(indices[d], vars_);
      if (value < 0 || value >= shape[d]) {
        return absl::OutOfRangeError(absl::StrCat(
            "index ", d, " of ", program_.buffers[buffer].name,
            PrintIndices(program_.atoms, indices), " is ", value, ", the extent ", shape[d]));
      }
      offset = offset * shape[d] + value;
    }
    return offset;
  }

  absl::Status Unwritten(BufferId buffer, const IndexList& indices) const {
    return absl::FailedPreconditionError(
        absl::StrCat("element ", PrintIndices(program_.atoms, indices), " of ",
                     program_.buffers[buffer].name, " is read before it is written"));
  }

  absl::StatusOr<Scalar> Read(const Expr& load, int64_t gathered) const {
    const IndexList& indices = program_.pool.IndicesOf(load);
    HONE_ASSIGN_OR_RETURN(const int64_t offset,
                          Offset(load.buffer, indices, load.gathered, gathered));
    const Memory& memory = memory_[load.buffer];
    if (!memory.IsWritten(offset)) return Unwritten(load.buffer, indices);
    return memory.Read(offset);
  }

  absl::StatusOr<Scalar> Evaluate(ExprId id) const {
    return ir::Evaluate(
        program_.pool, program_.atoms, vars_, id,
        [this](const Expr& load, int64_t gathered) { return Read(load, gathered); });
  }

  absl::Status RunBlock(NodeId id) {
    if (++steps_ > max_steps_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", max_steps_, " block instances"));
    }
    const Block& block = program_.BlockOf(id);
    if (!Holds(block.predicates)) return absl::OkStatus();
    bool first = true;
    for (const BlockIter& iter : block.iters) {
      vars_[iter.var] = program_.atoms.Evaluate(iter.binding, vars_);
      first &= !iter.reduce || vars_[iter.var] == 0;
    }
    const bool updates = Holds(block.guards);
    const bool initializes = block.has_init && first;
    if (!updates && !initializes) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const int64_t offset, Offset(block.outputs[0], block.indices));
    const auto dtype = [&](size_t c) { return program_.buffers[block.outputs[c]].dtype; };
    if (initializes) {
      for (size_t c = 0; c < block.outputs.size(); ++c) {
        memory_[block.outputs[c]].Store(
            offset, ReducerIdentity(block.reducer, static_cast<int>(c), dtype(c)));
      }
    }
    if (!updates) return absl::OkStatus();
    absl::InlinedVector<Scalar, 2> values, old;
    for (size_t c = 0; c < block.values.size(); ++c) {
      HONE_ASSIGN_OR_RETURN(values.emplace_back(), Evaluate(block.values[c]));
    }
    if (block.reducer == Reducer::kNone) {
      for (size_t c = 0; c < values.size(); ++c) {
        memory_[block.outputs[c]].Store(offset, values[c]);
      }
      return absl::OkStatus();
    }
    for (const BufferId output : block.outputs) {
      if (!memory_[output].IsWritten(offset)) return Unwritten(output, block.indices);
      old.push_back(memory_[output].Accumulated(offset));
    }
    for (size_t c = 0; c < values.size(); ++c) {
      const Scalar combined =
          CombineScalars(block.reducer, static_cast<int>(c), dtype(c), old, values);
      Memory& memory = memory_[block.outputs[c]];
      const bool widens = AccumulatorOf(block.reducer, dtype(c)) != dtype(c);
      widens ? memory.Accumulate(offset, combined) : memory.Store(offset, combined);
    }
    return absl::OkStatus();
  }

  const Program& program_;
  int64_t max_steps_;
  int64_t steps_ = 0;
  std::vector<int64_t> vars_;
  std::vector<Memory> memory_;
};

std::shared_ptr<const Workload> Unowned(const Workload& workload) {
  return std::shared_ptr<const Workload>(std::shared_ptr<const Workload>(), &workload);
}

// Converts the element type of tensors.
template <typename To, typename From, typename Convert>
std::vector<std::vector<To>> Converted(absl::Span<const std::vector<From>> tensors,
                                       Convert convert) {
  std::vector<std::vector<To>> result;
  for (const std::vector<From>& tensor : tensors) {
    std::vector<To>& to = result.emplace_back();
    to.reserve(tensor.size());
    for (const From& value : tensor) to.push_back(convert(value));
  }
  return result;
}

}  // namespace

absl::StatusOr<std::vector<Scalars>> Interpret(const Program& program,
                                               absl::Span<const Scalars> inputs,
                                               int64_t max_steps) {
  const Workload& workload = program.workload();
  const std::vector<BufferId> input_ids = workload.Inputs();
  if (inputs.size() != input_ids.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload ", workload.name, " has ", input_ids.size(), " inputs, not ", inputs.size()));
  }
  Machine machine(program, max_steps);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Memory& memory = machine.memory(input_ids[i]);
    if (inputs[i].size() != memory.size()) {
      return absl::InvalidArgumentError(absl::StrCat("input ", workload.tensors[input_ids[i]].name,
                                                     " has ", memory.size(), " elements, not ",
                                                     inputs[i].size()));
    }
    for (size_t e = 0; e < inputs[i].size(); ++e) memory.Store(e, inputs[i][e]);
  }
  HONE_RETURN_IF_ERROR(machine.Run());
  std::vector<Scalars> outputs;
  for (BufferId id : workload.Outputs()) {
    const Memory& memory = machine.memory(id);
    Scalars& output = outputs.emplace_back(memory.size());
    for (size_t e = 0; e < output.size(); ++e) output[e] = memory.Read(e);
  }
  return outputs;
}

absl::StatusOr<std::vector<Values>> Interpret(const Program& program,
                                              absl::Span<const Values> inputs, int64_t max_steps) {
  const auto to_scalar = [](double value) { return Scalar(value); };
  HONE_ASSIGN_OR_RETURN(
      const std::vector<Scalars> outputs,
      Interpret(program, Converted<Scalar, double>(inputs, to_scalar), max_steps));
  const auto to_double = [](Scalar value) { return value.real(); };
  return Converted<double, Scalar>(outputs, to_double);
}

absl::StatusOr<std::vector<Scalars>> Interpret(const Workload& workload,
                                               absl::Span<const Scalars> inputs,
                                               int64_t max_steps) {
  return Interpret(Program::FromWorkload(Unowned(workload)), inputs, max_steps);
}

absl::StatusOr<std::vector<Values>> Interpret(const Workload& workload,
                                              absl::Span<const Values> inputs, int64_t max_steps) {
  return Interpret(Program::FromWorkload(Unowned(workload)), inputs, max_steps);
}

class ElementMachine {
 public:
  ElementMachine(const Workload& workload, ElementInterpreter::Read read)
      : workload_(workload), accuracy_(workload), read_(std::move(read)) {}

  int64_t points() const { return points_; }
  // Stops the computation of elements after `points` more points.
  void Limit(int64_t points) {
    limit_ = points < std::numeric_limits<int64_t>::max() - points_ ? points_ + points : points;
  }
  bool IsOverLimit() const { return points_ > limit_; }

  ElementValue Tensor(BufferId tensor, absl::Span<const int64_t> indices) {
    const ir::Tensor& t = workload_.tensors[tensor];
    int64_t offset = 0;
    for (size_t d = 0; d < t.shape.size(); ++d) offset = offset * t.shape[d] + indices[d];
    if (t.input) {
      const Scalar value = read_(tensor, offset);
      return {value, std::abs(value.real())};
    }
    // Without memoization, the work would be exponential in the number of stages.
    const auto known = computed_.find({tensor, offset});
    if (known != computed_.end()) return known->second;
    ++points_;
    if (IsOverLimit()) return {};
    const Stage& stage = workload_.stages[t.stage];
    std::vector<int64_t> vars(workload_.atoms.size(), 0);
    for (size_t d = 0; d < stage.spatial.size(); ++d) vars[stage.spatial[d].var] = indices[d];
    const auto component = absl::c_find(stage.tensors, tensor) - stage.tensors.begin();
    const ElementValue result = stage.reducer == Reducer::kNone ? Evaluate(stage.values[0], vars)
                                                                : Reduce(stage, vars)[component];
    if (computed_.size() < kMaxRemembered && !IsOverLimit()) {
      computed_.emplace(std::make_pair(tensor, offset), result);
    }
    return result;
  }

 private:
  static constexpr size_t kMaxRemembered = 1 << 20;
  using Tuple = std::vector<ElementValue>;

  // Calls `visit` with the values of each point of the reduction's domain.
  void ForEachPoint(const Stage& stage, std::vector<int64_t>& vars,
                    absl::FunctionRef<void(const Tuple&)> visit) {
    int64_t points = 1;
    for (const Axis& axis : stage.reduce) points *= axis.extent;
    Tuple values(stage.values.size());
    for (int64_t point = 0; point < points; ++point) {
      ++points_;
      if (IsOverLimit()) return;
      int64_t rest = point;
      for (auto axis = stage.reduce.rbegin(); axis != stage.reduce.rend(); ++axis) {
        vars[axis->var] = rest % axis->extent;
        rest /= axis->extent;
      }
      const bool holds = absl::c_all_of(stage.guards, [&](const Condition& guard) {
        const int64_t at = workload_.atoms.Evaluate(guard.index, vars);
        return at >= 0 && at < guard.extent;
      });
      if (!holds) continue;
      for (size_t c = 0; c < values.size(); ++c) values[c] = Evaluate(stage.values[c], vars);
      visit(values);
    }
  }

  Tuple Reduce(const Stage& stage, std::vector<int64_t>& vars) {
    const size_t components = stage.values.size();
    const auto dtype = [&](size_t c) { return workload_.tensors[stage.tensors[c]].dtype; };
    std::vector<Scalar> value(components), next(components), combined(components);
    Tuple result(components);
    for (size_t c = 0; c < components; ++c) {
      // Floats are not rounded here, and neither is their neutral element.
      const DType unrounded = IsFloat(dtype(c)) ? DType::kF64 : dtype(c);
      value[c] = ReducerIdentity(stage.reducer, static_cast<int>(c), unrounded);
      result[c].magnitude = stage.reducer == Reducer::kProd ? 1 : 0;
    }
    ForEachPoint(stage, vars, [&](const Tuple& point) {
      for (size_t c = 0; c < components; ++c) {
        // Comparisons use the stored value, which a short format has rounded.
        const bool rounds = components > 1 && AccumulatorOf(dtype(c)) != dtype(c);
        next[c] = rounds ? CastTo(dtype(c), point[c].value) : point[c].value;
      }
      for (size_t c = 0; c < components; ++c) {
        combined[c] = CombineScalars(stage.reducer, static_cast<int>(c), dtype(c), value, next);
        AddTerm(stage.reducer, point[c], result[c]);
      }
      value.swap(combined);
    });
    for (size_t c = 0; c < components; ++c) result[c].value = value[c];
    if (stage.reducer == Reducer::kProd && result[0].rounding != 0) {
      result[0].rounding *= std::abs(value[0].real());
    }
    if (FindsExtreme(stage.reducer)) BoundExtreme(stage, vars, result[0]);
    if (stage.reducer == Reducer::kOnlineSoftmax) BoundSoftmaxSum(stage, vars, result);
    if (stage.reducer == Reducer::kArgMax || stage.reducer == Reducer::kArgMin) {
      BoundIndex(stage, vars, result);
    }
    return result;
  }

  // Adds a term to the magnitude and rounding of a reduction. The rounding of a product is relative
  // to its value.
  static void AddTerm(Reducer reducer, const ElementValue& term, ElementValue& sum) {
    switch (reducer) {
      case Reducer::kSum:
        sum.magnitude += term.magnitude;
        sum.rounding += term.rounding;
        break;
      case Reducer::kProd: {
        const double size = std::abs(term.value.real());
        sum.magnitude *= term.magnitude;
        sum.rounding += term.rounding / (size == 0 ? 1 : size);
        break;
      }
      default:
        sum.magnitude = std::max(sum.magnitude, term.magnitude);
        sum.rounding = std::max(sum.rounding, term.rounding);
    }
  }

  // Bounds a maximum or minimum by the terms that could be the extreme.
  void BoundExtreme(const Stage& stage, std::vector<int64_t>& vars, ElementValue& result) {
    const double extreme = result.value.real();
    result.magnitude = result.rounding = 0;
    ForEachPoint(stage, vars, [&](const Tuple& point) {
      const ElementValue& term = point[0];
      const double gap = GapToExtreme(stage, term, extreme);
      result.magnitude = Larger(result.magnitude, ContendingMagnitude(term.magnitude, gap));
      result.rounding = Larger(result.rounding, Excess(term.rounding, gap));
    });
  }

  static double GapToExtreme(const Stage& stage, const ElementValue& term, double extreme) {
    const double value = term.value.real();
    return IsMinimum(stage.reducer) ? value - extreme : extreme - value;
  }

  // The result may be another index if errors could make that index's term the extreme.
  void BoundIndex(const Stage& stage, std::vector<int64_t>& vars, Tuple& result) {
    const double extreme = result[0].value.real(), found = result[1].value.real();
    const bool exact = accuracy_.IsExact(stage.values[0]);
    const double error_of_extreme = ErrorOf(result[0], exact);
    result[1].rounding = 0;
    ForEachPoint(stage, vars, [&](const Tuple& point) {
      const double reach = point[0].error + error_of_extreme;
      if (ComparisonRounding(GapToExtreme(stage, point[0], extreme), reach) == 0) return;
      const double distance = std::abs(point[1].value.real() - found);
      result[1].rounding = std::max(result[1].rounding, distance);
    });
  }

  // Bound on the error of a correct kernel.
  double ErrorOf(const ElementValue& value, bool exact) const {
    return value.rounding + (exact ? 0 : accuracy_.relative_error() * value.magnitude);
  }

  // Σ s·exp(x − max): each exponential has the errors of x and of the maximum.
  void BoundSoftmaxSum(const Stage& stage, std::vector<int64_t>& vars, Tuple& result) {
    const ElementValue max = result[0];
    result[1].magnitude = result[1].rounding = 0;
    ForEachPoint(stage, vars, [&](const Tuple& point) {
      const ElementValue &x = point[0], &s = point[1];
      if (x.value.real() == -INFINITY) return;
      const double weight = std::exp(x.value.real() - max.value.real());
      result[1].magnitude += s.magnitude * weight * (1 + (x.magnitude + max.magnitude));
      const double growth = std::exp(x.rounding + max.rounding);
      result[1].rounding +=
          (s.rounding * growth + std::abs(s.value.real()) * (growth - 1)) * weight;
    });
  }

  // Returns an element as other stages read it: rounded if the tensor has a short dtype.
  ElementValue Stored(BufferId tensor, absl::Span<const int64_t> indices) {
    ElementValue element = Tensor(tensor, indices);
    const ir::Tensor& t = workload_.tensors[tensor];
    if (t.input) return element;
    element.error = ErrorOf(element, accuracy_.IsComputedExactly(tensor));
    if (StoresShort(t)) {
      element.rounding = RoundingOfConversion(DType::kF64, t.dtype, element.value, element.error);
      element.value = CastTo(t.dtype, element.value);
      element.magnitude = SizeOf(element.value.real());
      element.error = element.rounding;
    }
    return element;
  }

  ElementValue Evaluate(ExprId id, const std::vector<int64_t>& vars) {
    const Expr& expr = workload_.pool[id];
    if (expr.op == Op::kConst) return {expr.value, MagnitudeOfConstant(expr.value.real())};
    if (expr.op == Op::kIndex) {
      const Scalar value = workload_.atoms.Evaluate(workload_.pool.IndicesOf(expr)[0], vars);
      return {value, std::abs(value.real())};
    }
    if (expr.op == Op::kLoad) {
      absl::InlinedVector<int64_t, 8> indices;
      for (const Index& index : workload_.pool.IndicesOf(expr)) {
        indices.push_back(workload_.atoms.Evaluate(index, vars));
      }
      if (expr.gathered < 0) return Stored(expr.buffer, indices);
      const ElementValue at = Evaluate(expr.a, vars);
      indices[expr.gathered] = std::clamp<int64_t>(
          at.value.whole(), 0, workload_.tensors[expr.buffer].shape[expr.gathered] - 1);
      ElementValue element = Stored(expr.buffer, indices);
      // A different index may select any element.
      if (at.rounding != 0) element.rounding = element.error = INFINITY;
      return element;
    }
    if (expr.op == Op::kWhere) {
      const bool holds = Holds(workload_.atoms, workload_.pool.IndicesOf(expr), vars);
      return Evaluate(holds ? expr.a : expr.b, vars);
    }
    const ElementValue a = Evaluate(expr.a, vars);
    if (expr.op == Op::kSelect) return Select(expr, a, vars);
    const ElementValue b = expr.b == kNoExpr ? a : Evaluate(expr.b, vars);
    ElementValue result{.value = EvaluateOp(expr.op, expr.dtype, a.value, b.value)};
    const double v = result.value.real(), a_value = a.value.real(), b_value = b.value.real();
    const double least = accuracy_.LeastOperand(expr);
    result.magnitude =
        MagnitudeOfOperation(expr, v, {a_value, a.magnitude, b_value, b.magnitude, least});
    if (expr.op == Op::kCast) {
      result.rounding = RoundingOfCast(expr, a);
    } else if (IsComparison(expr.op)) {
      result.rounding = ComparisonRounding(std::abs(a_value - b_value), a.error + b.error);
    } else if (RoundsToWhole(expr.op)) {
      result.rounding = WholeRounding(expr.op, a_value, a.error);
    } else if (a.rounding + b.rounding != 0) {
      result.rounding = RoundingOf<double>(expr.op, expr.dtype, v,
                                           {a_value, a.rounding, b_value, b.rounding, least});
    }
    if (accuracy_.IsExact(id)) {
      result.error = result.rounding;
    } else if (expr.op == Op::kNeg || expr.op == Op::kAbs || expr.op == Op::kCast) {
      result.error = a.error;
    } else if (expr.op == Op::kMin || expr.op == Op::kMax) {
      result.error =
          RoundingOf<double>(expr.op, expr.dtype, v, {a_value, a.error, b_value, b.error});
    } else {
      result.error = ErrorOf(result, /*exact=*/false);
    }
    return result;
  }

  double MagnitudeOfOperation(const Expr& expr, double value, const Operands<double>& of) const {
    const double unit = accuracy_.relative_error();
    // An integer quotient is at most the dividend, even if the divisor is 0.
    if (expr.op == Op::kDiv && !IsFloat(expr.dtype)) return of.a;
    if (expr.op == Op::kPow) {
      return MagnitudeOf(expr.op, unit, value,
                         WithErrors(!accuracy_.IsPlain(expr.a), !accuracy_.IsPlain(expr.b), of));
    }
    if (!accuracy_.AddsErrors(expr)) return MagnitudeOf(expr.op, unit, value, of);
    return expr.op == Op::kMul ? MagnitudeOfProduct(of) : MagnitudeOfQuotient(unit, value, of);
  }

  // Where the condition may vary, either branch is possible.
  ElementValue Select(const Expr& select, const ElementValue& condition,
                      const std::vector<int64_t>& vars) {
    const bool then = condition.value.IsTrue();
    ElementValue chosen = Evaluate(then ? select.b : select.c, vars);
    if (condition.rounding == 0) return chosen;
    const ElementValue other = Evaluate(then ? select.c : select.b, vars);
    chosen.rounding =
        std::abs(chosen.value.real() - other.value.real()) + Larger(chosen.error, other.error);
    chosen.error = chosen.rounding;
    return chosen;
  }

  double RoundingOfCast(const Expr& cast, const ElementValue& operand) const {
    const DType from = workload_.pool[cast.a].dtype;
    if (IsWidening(from, cast.dtype)) return operand.rounding;
    return RoundingOfConversion(from, cast.dtype, operand.value, operand.error);
  }
  static double RoundingOfConversion(DType from, DType dtype, Scalar value, double error) {
    return error == 0 ? 0 : ConversionRounding(from, dtype, value.real(), error);
  }

  const Workload& workload_;
  const Accuracy accuracy_;
  const ElementInterpreter::Read read_;
  int64_t points_ = 0;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  absl::flat_hash_map<std::pair<BufferId, int64_t>, ElementValue> computed_;
};

ElementInterpreter::ElementInterpreter(const Workload& workload, Read read)
    : machine_(std::make_unique<ElementMachine>(workload, std::move(read))) {}
ElementInterpreter::~ElementInterpreter() = default;

std::optional<ElementValue> ElementInterpreter::Interpret(BufferId tensor,
                                                          absl::Span<const int64_t> indices,
                                                          int64_t most_points) {
  machine_->Limit(most_points);
  const ElementValue element = machine_->Tensor(tensor, indices);
  if (machine_->IsOverLimit()) return std::nullopt;
  return element;
}

int64_t ElementInterpreter::points() const { return machine_->points(); }

}  // namespace hone::ir
