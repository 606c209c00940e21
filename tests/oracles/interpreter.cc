#include "tests/oracles/interpreter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/arithmetic.h"
#include "common/ir/dtype.h"
#include "tests/oracles/launch_interpreter.h"
#include "tests/oracles/memory_model.h"
#include "worker/compile/lower/layout.h"

namespace hone::lower {
namespace {

using ir::AtomId;
using ir::BufferId;
using ir::Condition;
using ir::Index;
using ir::Scalar;

class Machine : private ThreadInterpreter {
 public:
  Machine(const LoweredProgram& program, int64_t max_steps, ThreadOrder order)
      : p_(program),
        max_steps_(max_steps),
        order_(order),
        memory_(program),
        vars_(program.atoms.size(), 0) {}

  MemoryModel& memory() { return memory_; }

  absl::Status Run() {
    for (const LoweredKernel& kernel : p_.kernels) {
      if (!p_.IsForGpu()) {
        HONE_RETURN_IF_ERROR(Run(kernel.body));
        continue;
      }
      HONE_RETURN_IF_ERROR(LaunchInterpreter(p_, order_, vars_, memory_, *this).Run(kernel));
    }
    return absl::OkStatus();
  }

 private:
  struct LaneVar {
    AtomId var;
    int64_t extent;
  };

  absl::Status Run(StmtId id) override {
    if (id == kNoStmt) return absl::OkStatus();
    const Stmt& stmt = p_.stmts[id];
    switch (stmt.kind) {
      case Stmt::Kind::kSeq:
        for (const StmtId child : stmt.children) HONE_RETURN_IF_ERROR(Run(child));
        return absl::OkStatus();
      case Stmt::Kind::kFor:
        return RunFor(stmt);
      case Stmt::Kind::kIf: {
        HONE_ASSIGN_OR_RETURN(const int64_t value, Uniform(stmt.condition.index));
        if (value >= 0 && value < stmt.condition.extent) return Run(stmt.children[0]);
        return stmt.children.size() > 1 ? Run(stmt.children[1]) : absl::OkStatus();
      }
      case Stmt::Kind::kStore:
        memory_.SetStore(id);
        return Explain(id, RunStore(stmt));
      case Stmt::Kind::kBarrier:
      case Stmt::Kind::kCommitCopies:
      case Stmt::Kind::kWaitForCopies:
        break;  // of a block with one thread
    }
    return absl::OkStatus();
  }

  // Adds the statements that race to the message of an error.
  absl::Status Explain(StmtId id, const absl::Status& status) const {
    if (!absl::IsFailedPrecondition(status)) return status;
    const StmtId other = memory_.RacedWith();
    return absl::FailedPreconditionError(
        absl::StrCat(status.message(), "\n", p_.ToText(id),
                     other == kNoStmt ? "" : absl::StrCat("and\n", p_.ToText(other))));
  }

  absl::StatusOr<Tuple> ValuesOf(StmtId shuffle) override {
    HONE_RETURN_IF_ERROR(Step());
    memory_.SetStore(shuffle);
    absl::StatusOr<Tuple> values = Values(p_.stmts[shuffle]);
    if (!values.ok()) return Explain(shuffle, values.status());
    return values;
  }

  absl::Status Write(StmtId shuffle, const Tuple& values) override {
    const Stmt& store = p_.stmts[shuffle];
    memory_.SetStore(shuffle);
    HONE_ASSIGN_OR_RETURN(const int64_t offset, Offset(store.outputs[0], store.indices));
    return Explain(shuffle, Write(store, offset, {}, values));
  }

  absl::Status RunFor(const Stmt& loop) {
    if (loop.loop == ir::LoopKind::kBound) {
      return absl::UnimplementedError(absl::StrCat("loop ", p_.atoms[loop.var].name,
                                                   " is bound to a GPU axis inside other code"));
    }
    if (loop.loop == ir::LoopKind::kVectorized) {
      lanes_.push_back({loop.var, loop.extent});
      HONE_RETURN_IF_ERROR(Run(loop.children[0]));
      lanes_.pop_back();
      return absl::OkStatus();
    }
    int64_t begin = 0, end = loop.extent;
    for (const Index& bound : loop.begins) {
      HONE_ASSIGN_OR_RETURN(const int64_t value, Uniform(bound));
      begin = std::max(begin, value);
    }
    for (const Index& bound : loop.ends) {
      HONE_ASSIGN_OR_RETURN(const int64_t value, Uniform(bound));
      end = std::min(end, value);
    }
    if (loop.loop == ir::LoopKind::kParallel) return RunParallel(loop, begin, end);
    for (int64_t i = begin; i < end; ++i) {
      vars_[loop.var] = i;
      HONE_RETURN_IF_ERROR(Run(loop.children[0]));
    }
    return absl::OkStatus();
  }

  absl::Status RunParallel(const Stmt& loop, int64_t begin, int64_t end) {
    if (std::exchange(in_parallel_, true)) {
      return absl::UnimplementedError(absl::StrCat("parallel loop ", p_.atoms[loop.var].name,
                                                   " is inside another parallel loop"));
    }
    memory_.EnterBlocks();
    for (int64_t i = end; i-- > begin;) {
      vars_[loop.var] = i;
      HONE_RETURN_IF_ERROR(Run(loop.children[0]));
      if (i > begin) memory_.NextBlock();
    }
    memory_.LeaveBlocks();
    in_parallel_ = false;
    return absl::OkStatus();
  }

  int64_t Value(const Index& index) const { return p_.atoms.Evaluate(index, vars_); }

  // The value of an index that controls a loop or a branch.
  absl::StatusOr<int64_t> Uniform(const Index& index) const {
    for (const LaneVar& lane : lanes_) {
      if (!p_.atoms.DependsOn(index, lane.var)) continue;
      return absl::UnimplementedError(absl::StrCat(
          "the branch or bound on ", p_.atoms.ToString(index), " differs between lanes"));
    }
    return Value(index);
  }

  bool Holds(const std::vector<Condition>& conditions) const {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      const int64_t value = Value(condition.index);
      return value >= 0 && value < condition.extent;
    });
  }

  // `gathered`: the value of the index in the dimension `gather`, if that is not −1.
  absl::StatusOr<int64_t> Offset(BufferId buffer, const ir::IndexList& indices, int gather = -1,
                                 int64_t gathered = 0) const {
    const auto outside = [&](const Index& index, int64_t value, int64_t extent) {
      return absl::OutOfRangeError(absl::StrCat("index ", p_.atoms.ToString(index), " of ",
                                                p_.buffers[buffer].name, " is ", value,
                                                ", the extent ", extent));
    };
    if (!p_.storage.empty()) {
      const int64_t offset = Value(indices[0]) + gathered;
      const int64_t elements = memory_.ElementsOf(buffer);
      if (offset < 0 || offset >= elements) return outside(indices[0], offset, elements);
      return offset;
    }
    const ir::Shape& shape = p_.buffers[buffer].shape;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t value = static_cast<int>(d) == gather
                                ? std::clamp<int64_t>(gathered, 0, shape[d] - 1)
                                : Value(indices[d]);
      if (value < 0 || value >= shape[d]) return outside(indices[d], value, shape[d]);
      offset = offset * shape[d] + value;
    }
    return offset;
  }

  absl::StatusOr<Scalar> Read(const ir::Expr& load, int64_t gathered) {
    HONE_ASSIGN_OR_RETURN(const int64_t offset,
                          Offset(load.buffer, p_.pool.IndicesOf(load), load.gathered, gathered));
    return memory_.Read(load.buffer, offset);
  }

  absl::StatusOr<Tuple> Values(const Stmt& store) {
    Tuple values;
    for (const ir::ExprId value : store.values) {
      HONE_ASSIGN_OR_RETURN(values.emplace_back(),
                            ir::Evaluate(p_.pool, p_.atoms, vars_, value,
                                         [this](const ir::Expr& load, int64_t gathered) {
                                           return Read(load, gathered);
                                         }));
    }
    return values;
  }

  absl::StatusOr<Tuple> Accumulated(const Stmt& store, int64_t offset) {
    Tuple old;
    if (store.reducer == ir::Reducer::kNone) return old;
    for (const BufferId output : store.outputs) {
      HONE_ASSIGN_OR_RETURN(old.emplace_back(), memory_.ReadAccumulated(output, offset));
    }
    return old;
  }

  absl::Status Write(const Stmt& store, int64_t offset, const Tuple& old, const Tuple& values) {
    for (size_t c = 0; c < store.outputs.size(); ++c) {
      const BufferId output = store.outputs[c];
      const ir::DType dtype = p_.buffers[output].dtype;
      if (store.reducer == ir::Reducer::kNone) {
        HONE_RETURN_IF_ERROR(memory_.Write(output, offset, values[c]));
        if (store.is_async) memory_.MakeAsync(output, offset);
        continue;
      }
      const Scalar combined =
          ir::CombineScalars(store.reducer, static_cast<int>(c), dtype, old, values);
      // Until PromoteAccumulators, sums of short floats are added up in their buffers.
      HONE_RETURN_IF_ERROR(ir::AccumulatorOf(store.reducer, dtype) != dtype
                               ? memory_.Accumulate(output, offset, combined)
                               : memory_.Write(output, offset, combined));
    }
    return absl::OkStatus();
  }

  // Calls `run` for every combination of values of the variables.
  absl::Status ForEach(absl::Span<const LaneVar> lanes, absl::FunctionRef<absl::Status()> run) {
    if (lanes.empty()) return run();
    for (int64_t i = 0; i < lanes[0].extent; ++i) {
      vars_[lanes[0].var] = i;
      HONE_RETURN_IF_ERROR(ForEach(lanes.subspan(1), run));
    }
    return absl::OkStatus();
  }

  absl::Status Step() {
    if (++steps_ <= max_steps_) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("more than ", max_steps_, " stores"));
  }

  // Writes to an element that nothing reads: code may do the same.
  absl::Status LeaveGarbage(const Stmt& store) {
    if (!store.may_leave_garbage) return absl::OkStatus();
    const bool unread = std::any_of(
        store.conditions.begin(), store.conditions.end(), [&](const Condition& condition) {
          return !Holds({condition}) &&
                 std::none_of(store.reduce_vars.begin(), store.reduce_vars.end(),
                              [&](AtomId var) { return p_.atoms.DependsOn(condition.index, var); });
        });
    if (!unread) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const int64_t offset, Offset(store.outputs[0], store.indices));
    for (const BufferId output : store.outputs) {
      const bool is_float = ir::IsFloat(p_.buffers[output].dtype);
      const ir::Scalar garbage = is_float ? ir::Scalar(std::nan("")) : ir::Scalar(85);
      HONE_RETURN_IF_ERROR(memory_.Write(output, offset, garbage));
    }
    return absl::OkStatus();
  }

  // Runs a store for one element.
  absl::Status RunOne(const Stmt& store) {
    HONE_RETURN_IF_ERROR(Step());
    const bool initializes = store.has_init && Holds(store.conditions) && Holds(store.first);
    const bool updates = Holds(store.conditions) && Holds(store.guards);
    if (!initializes && !updates) return LeaveGarbage(store);
    HONE_ASSIGN_OR_RETURN(const int64_t offset, Offset(store.outputs[0], store.indices));
    if (initializes) {
      for (size_t c = 0; c < store.outputs.size(); ++c) {
        const BufferId output = store.outputs[c];
        HONE_RETURN_IF_ERROR(memory_.Write(
            output, offset,
            ir::ReducerIdentity(store.reducer, static_cast<int>(c), p_.buffers[output].dtype)));
      }
    }
    if (!updates) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const Tuple values, Values(store));
    HONE_ASSIGN_OR_RETURN(const Tuple old, Accumulated(store, offset));
    return Write(store, offset, old, values);
  }

  absl::Status RunStore(const Stmt& store) {
    // The terms of an instruction, and the lanes of one sum, are added up in sequence.
    std::vector<LaneVar> lanes = lanes_;
    bool reduces = store.has_init || !store.tensor_vars.empty();
    for (const AtomId var : store.tensor_vars) {
      lanes.push_back({var, p_.atoms[var].range.extent()});
    }
    for (const LaneVar& lane : lanes_) {
      reduces |= store.reducer != ir::Reducer::kNone &&
                 std::find(store.reduce_vars.begin(), store.reduce_vars.end(), lane.var) !=
                     store.reduce_vars.end();
    }
    if (reduces || lanes.empty()) {
      return ForEach(lanes, [&] { return RunOne(store); });
    }
    struct Lane {
      int64_t offset;
      Tuple old, values;
    };
    std::vector<Lane> live;
    HONE_RETURN_IF_ERROR(ForEach(lanes, [&]() -> absl::Status {
      HONE_RETURN_IF_ERROR(Step());
      if (!Holds(store.conditions) || !Holds(store.guards)) return LeaveGarbage(store);
      Lane lane;
      HONE_ASSIGN_OR_RETURN(lane.offset, Offset(store.outputs[0], store.indices));
      HONE_ASSIGN_OR_RETURN(lane.values, Values(store));
      HONE_ASSIGN_OR_RETURN(lane.old, Accumulated(store, lane.offset));
      live.push_back(std::move(lane));
      return absl::OkStatus();
    }));
    for (const Lane& lane : live) {
      HONE_RETURN_IF_ERROR(Write(store, lane.offset, lane.old, lane.values));
    }
    return absl::OkStatus();
  }

  const LoweredProgram& p_;
  int64_t max_steps_;
  int64_t steps_ = 0;
  ThreadOrder order_;
  MemoryModel memory_;
  std::vector<int64_t> vars_;
  std::vector<LaneVar> lanes_;
  bool in_parallel_ = false;
};

// Empty before AssignStorage.
ir::Shape StridesOf(const LoweredProgram& program, BufferId buffer) {
  return program.storage.empty() ? ir::Shape() : program.storage[buffer].strides;
}

absl::Status WritePacked(const LoweredProgram& program, BufferId id, const ir::Scalars& elements,
                         MemoryModel& memory) {
  std::vector<uint8_t> bytes((elements.size() + 1) / 2);
  for (size_t e = 0; e < elements.size(); ++e) {
    ir::WriteElement(*program.storage[id].packed_dtype, bytes.data(), static_cast<int64_t>(e),
                     elements[e]);
  }
  for (size_t b = 0; b < bytes.size(); ++b) {
    const auto at = static_cast<int64_t>(b);
    HONE_RETURN_IF_ERROR(
        memory.Write(id, at, ir::ReadElement(program.buffers[id].dtype, bytes.data(), at)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ir::Scalars>> Interpret(const LoweredProgram& program,
                                                   const ir::Workload& workload,
                                                   absl::Span<const ir::Scalars> inputs,
                                                   int64_t max_steps, ThreadOrder order) {
  const std::vector<BufferId> input_ids = workload.Inputs();
  if (inputs.size() != input_ids.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload ", workload.name, " has ", input_ids.size(), " inputs, not ", inputs.size()));
  }
  Machine machine(program, max_steps, order);
  MemoryModel& memory = machine.memory();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BufferId id = input_ids[i];
    const ir::Tensor& tensor = workload.tensors[id];
    const auto elements = static_cast<int64_t>(inputs[i].size());
    if (elements != ir::ElementsOf(tensor.shape)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", tensor.name, " has ",
                                                     ir::ElementsOf(tensor.shape),
                                                     " elements, not ", elements));
    }
    if (!program.storage.empty() && program.storage[id].packed_dtype.has_value()) {
      HONE_RETURN_IF_ERROR(WritePacked(program, id, inputs[i], memory));
      continue;
    }
    const ir::Shape strides = StridesOf(program, id);
    for (int64_t e = 0; e < elements; ++e) {
      HONE_RETURN_IF_ERROR(memory.Write(id, OffsetOf(tensor.shape, strides, e), inputs[i][e]));
    }
  }
  HONE_RETURN_IF_ERROR(machine.Run());
  std::vector<ir::Scalars> outputs;
  for (const BufferId id : workload.Outputs()) {
    const ir::Shape& shape = workload.tensors[id].shape;
    const ir::Shape strides = StridesOf(program, id);
    ir::Scalars& output = outputs.emplace_back(ir::ElementsOf(shape));
    for (size_t e = 0; e < output.size(); ++e) {
      HONE_ASSIGN_OR_RETURN(output[e],
                            memory.Read(id, OffsetOf(shape, strides, static_cast<int64_t>(e))));
    }
  }
  return outputs;
}

}  // namespace hone::lower
