#include "common/ir/interpreter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/expr_printer.h"

namespace hone::ir {
namespace {

double CombineNumber(Reducer reducer, int component, DType dtype, absl::Span<const double> l, absl::Span<const double> r) {
  switch (reducer) {
    case Reducer::kNone:
      return r[component];
    case Reducer::kSum:
      return EvaluateOp(Op::kAdd, dtype, l[0], r[0], 0);
    case Reducer::kProd:
      return EvaluateOp(Op::kMul, dtype, l[0], r[0], 0);
    case Reducer::kMin:
      return EvaluateOp(Op::kMin, DType::kF64, l[0], r[0], 0);
    case Reducer::kMax:
      return EvaluateOp(Op::kMax, DType::kF64, l[0], r[0], 0);
    case Reducer::kArgMax:
    case Reducer::kArgMin: {
      const bool better = reducer == Reducer::kArgMax ? l[0] < r[0] : r[0] < l[0];
      const bool wins = better || (l[0] == r[0] && r[1] >= 0 && (r[1] < l[1] || l[1] < 0));
      return wins ? r[component] : l[component];
    }
    case Reducer::kOnlineSoftmax: {
      const double max = std::max(l[0], r[0]);
      if (component == 0) return max;
      const auto term = [&](double m, double s) { return m == -INFINITY ? 0 : s * std::exp(m - max); };
      return term(l[0], l[1]) + term(r[0], r[1]);
    }
  }
  return 0;
}

// A NaN that no computation gives, in memory that has not been written.
constexpr uint64_t kUnwritten = 0x7ff8'dead'beef'0001;

class Machine {
 public:
  Machine(const Program& program, int64_t max_steps)
      : program_(program), max_steps_(max_steps), vars_(program.atoms.size(), 0) {
    for (const Buffer& buffer : program.buffers) {
      memory_.emplace_back(ElementsOf(buffer.shape), std::bit_cast<double>(kUnwritten));
    }
  }

  std::vector<Values>& memory() { return memory_; }

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
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      const int64_t value = program_.atoms.Evaluate(condition.index, vars_);
      return value >= 0 && value < condition.extent;
    });
  }

  absl::StatusOr<int64_t> Offset(BufferId buffer, const IndexList& indices) const {
    const Shape& shape = program_.buffers[buffer].shape;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t value = program_.atoms.Evaluate(indices[d], vars_);
      if (value < 0 || value >= shape[d]) {
        return absl::OutOfRangeError(absl::StrCat("index ", d, " of ", program_.buffers[buffer].name,
                                                  PrintIndices(program_.atoms, indices), " is ", value, ", the extent ",
                                                  shape[d]));
      }
      offset = offset * shape[d] + value;
    }
    return offset;
  }

  absl::Status Unwritten(BufferId buffer, const IndexList& indices) const {
    return absl::FailedPreconditionError(absl::StrCat("element ", PrintIndices(program_.atoms, indices), " of ",
                                                      program_.buffers[buffer].name, " is read before it is written"));
  }

  absl::StatusOr<double> Evaluate(ExprId id) const {
    const Expr& expr = program_.pool[id];
    if (expr.op == Op::kConst) return expr.value;
    if (expr.op == Op::kIndex) {
      return static_cast<double>(program_.atoms.Evaluate(program_.pool.IndicesOf(expr)[0], vars_));
    }
    if (expr.op == Op::kLoad) {
      HONE_ASSIGN_OR_RETURN(const int64_t offset, Offset(expr.buffer, program_.pool.IndicesOf(expr)));
      const double value = memory_[expr.buffer][offset];
      if (std::bit_cast<uint64_t>(value) == kUnwritten) return Unwritten(expr.buffer, program_.pool.IndicesOf(expr));
      return value;
    }
    HONE_ASSIGN_OR_RETURN(const double a, Evaluate(expr.a));
    if (expr.op == Op::kSelect) return Evaluate(a != 0 ? expr.b : expr.c);
    double b = 0;
    if (expr.b != kNoExpr) {
      HONE_ASSIGN_OR_RETURN(b, Evaluate(expr.b));
    }
    return EvaluateOp(expr.op, expr.dtype, a, b, 0);
  }

  absl::Status RunBlock(NodeId id) {
    if (++steps_ > max_steps_) {
      return absl::ResourceExhaustedError(absl::StrCat("more than ", max_steps_, " block instances"));
    }
    const Block& block = program_.BlockOf(id);
    if (!Holds(block.predicates)) return absl::OkStatus();
    bool first = true;
    for (const BlockIter& iter : block.iters) {
      vars_[iter.var] = program_.atoms.Evaluate(iter.binding, vars_);
      first &= !iter.reduce || vars_[iter.var] == 0;
    }
    const bool updates = Holds(block.guards);
    if (!updates && !(block.has_init && first)) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const int64_t offset, Offset(block.outputs[0], block.indices));
    const auto dtype = [&](size_t c) { return program_.buffers[block.outputs[c]].dtype; };
    if (block.has_init && first) {
      for (size_t c = 0; c < block.outputs.size(); ++c) {
        memory_[block.outputs[c]][offset] = ReducerIdentity(block.reducer, static_cast<int>(c), dtype(c));
      }
    }
    if (!updates) return absl::OkStatus();
    absl::InlinedVector<double, 2> values, old;
    for (size_t c = 0; c < block.values.size(); ++c) {
      HONE_ASSIGN_OR_RETURN(const double value, Evaluate(block.values[c]));
      values.push_back(value);
      old.push_back(memory_[block.outputs[c]][offset]);
      if (block.reducer != Reducer::kNone && std::bit_cast<uint64_t>(old.back()) == kUnwritten) {
        return Unwritten(block.outputs[c], block.indices);
      }
    }
    for (size_t c = 0; c < values.size(); ++c) {
      memory_[block.outputs[c]][offset] = RoundTo(dtype(c), CombineNumber(block.reducer, static_cast<int>(c), dtype(c), old, values));
    }
    return absl::OkStatus();
  }

  const Program& program_;
  int64_t max_steps_;
  int64_t steps_ = 0;
  std::vector<int64_t> vars_;
  std::vector<Values> memory_;
};

class ElementMachine {
 public:
  ElementMachine(const Workload& workload, absl::FunctionRef<double(BufferId, int64_t)> read)
      : workload_(workload), read_(read) {}

  ElementValue Tensor(BufferId tensor, absl::Span<const int64_t> indices) {
    const ir::Tensor& t = workload_.tensors[tensor];
    if (t.input) {
      int64_t offset = 0;
      for (size_t d = 0; d < t.shape.size(); ++d) offset = offset * t.shape[d] + indices[d];
      const double value = read_(tensor, offset);
      return {value, std::abs(value)};
    }
    const Stage& stage = workload_.stages[t.stage];
    const auto component = std::find(stage.tensors.begin(), stage.tensors.end(), tensor) - stage.tensors.begin();
    std::vector<int64_t> vars(workload_.atoms.size(), 0);
    for (size_t d = 0; d < stage.spatial.size(); ++d) vars[stage.spatial[d].var] = indices[d];
    std::vector<double> value(stage.values.size()), magnitude(stage.values.size());
    if (stage.reducer == Reducer::kNone) return Evaluate(stage.values[0], vars);
    // A row's sum is read by each element of the row, and by the sum of what it is subtracted from: without a memory the work
    // grows with the power of the stages.
    int64_t offset = 0;
    for (size_t d = 0; d < t.shape.size(); ++d) offset = offset * t.shape[d] + indices[d];
    if (const auto known = reduced_.find({tensor, offset}); known != reduced_.end()) return known->second;
    for (size_t c = 0; c < value.size(); ++c) {
      value[c] = ReducerIdentity(stage.reducer, static_cast<int>(c), workload_.tensors[stage.tensors[c]].dtype);
      magnitude[c] = stage.reducer == Reducer::kProd ? 1 : 0;
    }
    int64_t points = 1;
    for (const Axis& axis : stage.reduce) points *= axis.extent;
    for (int64_t point = 0; point < points; ++point) {
      int64_t rest = point;
      for (auto axis = stage.reduce.rbegin(); axis != stage.reduce.rend(); ++axis) {
        vars[axis->var] = rest % axis->extent;
        rest /= axis->extent;
      }
      const bool holds = std::all_of(stage.guards.begin(), stage.guards.end(), [&](const Condition& guard) {
        const int64_t at = workload_.atoms.Evaluate(guard.index, vars);
        return at >= 0 && at < guard.extent;
      });
      if (!holds) continue;
      std::vector<double> next(value.size()), next_magnitude(value.size());
      for (size_t c = 0; c < value.size(); ++c) {
        const ElementValue element = Evaluate(stage.values[c], vars);
        next[c] = element.value;
        next_magnitude[c] = element.magnitude;
      }
      std::vector<double> combined(value.size());
      for (size_t c = 0; c < value.size(); ++c) {
        combined[c] = CombineNumber(stage.reducer, static_cast<int>(c), workload_.tensors[stage.tensors[c]].dtype, value, next);
        const bool sum = stage.reducer == Reducer::kSum;
        const bool product = stage.reducer == Reducer::kProd;
        magnitude[c] = sum       ? magnitude[c] + next_magnitude[c]
                       : product ? magnitude[c] * next_magnitude[c]
                                 : std::max(magnitude[c], next_magnitude[c]);
      }
      value = std::move(combined);
    }
    const ElementValue result{value[component], magnitude[component]};
    if (reduced_.size() < kMaxRemembered) reduced_.emplace(std::make_pair(tensor, offset), result);
    return result;
  }

 private:
  static constexpr size_t kMaxRemembered = 1 << 20;

  ElementValue Evaluate(ExprId id, const std::vector<int64_t>& vars) {
    const Expr& expr = workload_.pool[id];
    if (expr.op == Op::kConst) return {expr.value, std::abs(expr.value)};
    if (expr.op == Op::kIndex) {
      const auto value = static_cast<double>(workload_.atoms.Evaluate(workload_.pool.IndicesOf(expr)[0], vars));
      return {value, std::abs(value)};
    }
    if (expr.op == Op::kLoad) {
      absl::InlinedVector<int64_t, 8> indices;
      for (const Index& index : workload_.pool.IndicesOf(expr)) indices.push_back(workload_.atoms.Evaluate(index, vars));
      return Tensor(expr.buffer, indices);
    }
    const ElementValue a = Evaluate(expr.a, vars);
    if (expr.op == Op::kSelect) return Evaluate(a.value != 0 ? expr.b : expr.c, vars);
    const ElementValue b = expr.b == kNoExpr ? ElementValue{} : Evaluate(expr.b, vars);
    const double value = EvaluateOp(expr.op, expr.dtype, a.value, b.value, 0);
    switch (expr.op) {
      case Op::kAdd:
      case Op::kSub:
        return {value, a.magnitude + b.magnitude};
      case Op::kMul:
        return {value, a.magnitude * b.magnitude};
      case Op::kDiv:
        // As of a product with 1/b, whose relative error is that of b.
        if (b.value == 0) return {value, a.magnitude};
        return {value, a.magnitude / std::abs(b.value) * (b.magnitude / std::abs(b.value))};
      case Op::kMin:
      case Op::kMax:
        return {value, std::max(a.magnitude, b.magnitude)};
      case Op::kNeg:
      case Op::kAbs:
      case Op::kCast:
        return {value, a.magnitude};
      case Op::kExp:
        // Its relative error is the error of a.
        return {value,
                std::max(std::max(std::abs(value), a.magnitude), std::abs(value) * a.magnitude)};
      default:
        return {value, std::max(std::abs(value), a.magnitude)};
    }
  }

  const Workload& workload_;
  absl::FunctionRef<double(BufferId, int64_t)> read_;
  std::map<std::pair<BufferId, int64_t>, ElementValue> reduced_;  // elements of reducing stages
};

}  // namespace

namespace {

// Wraps like the machine's integers; a and b hold whole numbers.
double IntegerOp(Op op, DType dtype, double a, double b) {
  const auto left = static_cast<uint64_t>(static_cast<int64_t>(a)), right = static_cast<uint64_t>(static_cast<int64_t>(b));
  const uint64_t result = op == Op::kAdd ? left + right : op == Op::kSub ? left - right : left * right;
  switch (dtype) {
    case DType::kI8:
      return static_cast<int8_t>(result);
    case DType::kU8:
      return static_cast<uint8_t>(result);
    case DType::kI32:
      return static_cast<int32_t>(result);
    default:
      return static_cast<double>(static_cast<int64_t>(result));
  }
}

bool IsInteger(DType dtype) { return !IsFloat(dtype) && dtype != DType::kBool; }

}  // namespace

double EvaluateOp(Op op, DType dtype, double a, double b, double c) {
  switch (op) {
    case Op::kAdd:
      return IsInteger(dtype) ? IntegerOp(op, dtype, a, b) : a + b;
    case Op::kSub:
      return IsInteger(dtype) ? IntegerOp(op, dtype, a, b) : a - b;
    case Op::kMul:
      return IsInteger(dtype) ? IntegerOp(op, dtype, a, b) : a * b;
    case Op::kDiv:
      return IsFloat(dtype) ? a / b : (b == 0 ? 0 : RoundTo(dtype, std::trunc(a / b)));
    case Op::kMin:
      return b < a ? b : a;
    case Op::kMax:
      return a < b ? b : a;
    case Op::kNeg:
      return IsInteger(dtype) ? IntegerOp(Op::kSub, dtype, 0, a) : -a;
    case Op::kAbs:
      return IsInteger(dtype) ? RoundTo(dtype, std::abs(a)) : std::abs(a);
    case Op::kExp:
      return std::exp(a);
    case Op::kLog:
      return std::log(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kRsqrt:
      return 1 / std::sqrt(a);
    case Op::kTanh:
      return std::tanh(a);
    case Op::kErf:
      return std::erf(a);
    case Op::kSigmoid:
      return 1 / (1 + std::exp(-a));
    case Op::kLess:
      return a < b;
    case Op::kLessEqual:
      return a <= b;
    case Op::kEqual:
      return a == b;
    case Op::kAnd:
      return a != 0 && b != 0;
    case Op::kOr:
      return a != 0 || b != 0;
    case Op::kNot:
      return a == 0;
    case Op::kSelect:
      return a != 0 ? b : c;
    case Op::kCast:
      return RoundTo(dtype, a);
    case Op::kConst:
    case Op::kIndex:
    case Op::kLoad:
      break;
  }
  return 0;
}

absl::StatusOr<std::vector<Values>> Interpret(const Program& program, absl::Span<const Values> inputs, int64_t max_steps) {
  const Workload& workload = program.workload();
  const std::vector<BufferId> input_ids = workload.Inputs();
  if (inputs.size() != input_ids.size()) {
    return absl::InvalidArgumentError(absl::StrCat("workload ", workload.name, " has ", input_ids.size(), " inputs, not ", inputs.size()));
  }
  Machine machine(program, max_steps);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Values& memory = machine.memory()[input_ids[i]];
    if (inputs[i].size() != memory.size()) {
      return absl::InvalidArgumentError(absl::StrCat("input ", workload.tensors[input_ids[i]].name, " has ", memory.size(),
                                                     " elements, not ", inputs[i].size()));
    }
    memory = inputs[i];
  }
  HONE_RETURN_IF_ERROR(machine.Run());
  std::vector<Values> outputs;
  for (BufferId id : workload.Outputs()) outputs.push_back(std::move(machine.memory()[id]));
  return outputs;
}

absl::StatusOr<std::vector<Values>> Interpret(const Workload& workload, absl::Span<const Values> inputs, int64_t max_steps) {
  return Interpret(Program::FromWorkload(std::make_shared<const Workload>(workload)), inputs, max_steps);
}

ElementValue InterpretElement(const Workload& workload, BufferId tensor, absl::Span<const int64_t> indices,
                              absl::FunctionRef<double(BufferId, int64_t)> read) {
  return ElementMachine(workload, read).Tensor(tensor, indices);
}

}  // namespace hone::ir
