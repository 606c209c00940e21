#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/lower/intrinsics.h"
#include "worker/codegen/llvm/tensor.h"

namespace hone::codegen {

using ir::Index;
using ir::Intrinsic;
using llvm::Value;
using lower::Stmt;
using lower::StmtId;

namespace {

// Emits one store that an instruction computes.
class TensorEmitter {
 public:
  TensorEmitter(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory, const Stmt& store)
      : f_(f),
        index_(index),
        memory_(memory),
        store_(store),
        intrinsic_(*lower::IntrinsicOf(store)) {}

  absl::Status Emit();

 private:
  struct Operand {
    ir::BufferId buffer;
    Index offset;
  };
  absl::Status EmitDot();
  absl::Status EmitTile();
  // Returns how far an offset moves when a variable of the nest changes from 0 to `value`.
  int64_t StepOf(const Index& offset, ir::AtomId var, int64_t value);
  absl::Status MisplacedError(const Operand& operand) const {
    return absl::InternalError(absl::StrCat(intrinsic_.name, ": ",
                                            f_.state.program.buffers[operand.buffer].name,
                                            " does not have the layout that it needs"));
  }

  FunctionContext& f_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  const Stmt& store_;
  const Intrinsic& intrinsic_;
  std::vector<Operand> operands_;
};

int64_t TensorEmitter::StepOf(const Index& offset, ir::AtomId var, int64_t value) {
  const int64_t base = index_.SplitOf(offset).constant;
  index_.SetConstant(var, value);
  const int64_t moved = index_.SplitOf(offset).constant;
  index_.SetConstant(var, 0);
  return moved - base;
}

absl::Status TensorEmitter::Emit() {
  for (ir::AtomId var : store_.tensor_vars) index_.SetConstant(var, 0);
  const ir::ExprPool& pool = f_.state.program.pool;
  pool.VisitLoads(store_.values[0], [&](const ir::Expr& load) {
    operands_.push_back({load.buffer, pool.IndicesOf(load)[0]});
  });
  if (operands_.size() != 2) {
    return absl::InternalError(
        absl::StrCat(intrinsic_.name, " with ", operands_.size(), " operands"));
  }
  const bool dot = intrinsic_.shape == Intrinsic::Shape::kDot;
  const absl::Status status = dot ? EmitDot() : EmitTile();
  for (ir::AtomId var : store_.tensor_vars) index_.Unset(var);
  return status;
}

absl::Status TensorEmitter::EmitDot() {
  HONE_ASSIGN_OR_RETURN(const DotCode code, f_.state.machine->DotOf(intrinsic_));
  lower::LoweredProgram& program = f_.state.program;
  const int64_t group = ir::DescriptionOf(intrinsic_).stages.back().reduce[0].extent;
  // Broadcasts the operand that does not move with the lanes.
  if (index_.SplitOf(operands_[0].offset).lane != 0) std::swap(operands_[0], operands_[1]);
  std::vector<Value*> values;
  for (const Operand& operand : operands_) {
    const ir::DType dtype = program.buffers[operand.buffer].dtype;
    IndexEmitter::Split split = index_.SplitOf(operand.offset);
    const bool broadcast = values.empty();
    if (split.irregular || split.lane != (broadcast ? 0 : group) ||
        StepOf(operand.offset, store_.tensor_vars[0], 1) != 1) {
      return MisplacedError(operand);
    }
    split.lane = 0;
    llvm::Type* word = f_.b.getIntNTy(static_cast<unsigned>(group * ir::DTypeBytes(dtype) * 8));
    llvm::Type* type = broadcast ? word : llvm::FixedVectorType::get(word, f_.lanes);
    Value* value = f_.b.CreateAlignedLoad(type, memory_.Address(operand.buffer, split),
                                          llvm::Align(ir::DTypeBytes(dtype)));
    if (broadcast) value = f_.b.CreateVectorSplat(f_.lanes, value);
    llvm::Type* element = code.operand == ir::DType::kBF16 ? f_.b.getBFloatTy()
                          : code.operand == ir::DType::kI8
                              ? f_.b.getInt8Ty()
                              : static_cast<llvm::Type*>(f_.b.getInt32Ty());
    const auto bits = static_cast<int64_t>(word->getIntegerBitWidth()) * f_.lanes;
    values.push_back(f_.b.CreateBitCast(
        value, llvm::FixedVectorType::get(element, bits / element->getScalarSizeInBits())));
  }
  HONE_ASSIGN_OR_RETURN(Value * sum, memory_.Load(store_.outputs[0], store_.indices[0], nullptr));
  auto* type = llvm::FunctionType::get(
      sum->getType(), {sum->getType(), values[0]->getType(), values[1]->getType()}, false);
  Value* result = f_.b.CreateCall(f_.state.module->getOrInsertFunction(
                                      llvm::StringRef(code.name.data(), code.name.size()), type),
                                  {sum, values[0], values[1]});
  return memory_.Store(store_.outputs[0], store_.indices[0], result, nullptr);
}

absl::Status TensorEmitter::EmitTile() {
  const lower::LoweredProgram& program = f_.state.program;
  const ir::Workload& description = ir::DescriptionOf(intrinsic_);
  const ir::Stage& stage = description.stages.back();
  const ir::AtomId row = store_.tensor_vars[0], depth = store_.tensor_vars[2];
  if (StepOf(operands_[0].offset, row, 1) == 0) std::swap(operands_[0], operands_[1]);
  const int64_t rows = stage.spatial[0].extent, columns = stage.spatial[1].extent,
                steps = stage.reduce[0].extent;
  const int64_t group = description.tensors[1].shape[2];
  // Describes a tile of `height` rows of `width` elements; the rows are as far apart as `var` ·
  // `step` moves the offset.
  const auto memory = [&](const Operand& operand, ir::AtomId var, int64_t step, int64_t height,
                          int64_t width) -> absl::StatusOr<TileMemory> {
    const IndexEmitter::Split split = index_.SplitOf(operand.offset);
    const int64_t stride = StepOf(operand.offset, var, step);
    if (split.irregular || stride < 1) return MisplacedError(operand);
    const int64_t bytes = ir::DTypeBytes(program.buffers[operand.buffer].dtype);
    return TileMemory{memory_.Address(operand.buffer, split), f_.I64(stride * bytes), height,
                      width * bytes};
  };
  HONE_ASSIGN_OR_RETURN(const TileMemory left, memory(operands_[0], row, 1, rows, steps));
  HONE_ASSIGN_OR_RETURN(const TileMemory right,
                        memory(operands_[1], depth, group, steps / group, columns * group));
  HONE_ASSIGN_OR_RETURN(const TileMemory sum,
                        memory({store_.outputs[0], store_.indices[0]}, row, 1, rows, columns));
  return f_.state.machine->EmitTile(f_.b, intrinsic_, left, right, sum);
}

}  // namespace

absl::Status EmitIntrinsic(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory,
                           const Stmt& store, Value* mask) {
  if (mask != nullptr) return absl::InternalError("a tensor instruction is under a mask");
  return TensorEmitter(f, index, memory, store).Emit();
}

}  // namespace hone::codegen
