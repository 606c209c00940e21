#include "common/ir/interpreter.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/arithmetic.h"
#include "common/ir/evaluate.h"
#include "common/ir/expr_printer.h"

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
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
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

}  // namespace hone::ir
