// Stores that one instruction computes: those that tensorize matched against the table in
// common/ir/intrinsic.h.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/intrinsic.h"
#include "worker/codegen/function_emitter.h"
#include "worker/codegen/tensor.h"

namespace hone::codegen {

using ir::Index;
using ir::Intrinsic;
using llvm::Value;
using lower::Stmt;
using lower::StmtId;

namespace {

const Intrinsic* IntrinsicOf(const Stmt& store) {
  return ir::FindIntrinsic(ir::ValueOf(store.annotations, ir::Annotation::Key::kIntrinsic, -1));
}

llvm::StringRef NameOf(const Intrinsic& intrinsic) {
  return {intrinsic.llvm.data(), intrinsic.llvm.size()};
}

}  // namespace

absl::Status CheckIntrinsics(const lower::LoweredProgram& program, const target::Target& target) {
  for (const Stmt& stmt : program.stmts) {
    if (stmt.kind != Stmt::Kind::kStore) continue;
    const Intrinsic* intrinsic = IntrinsicOf(stmt);
    if (intrinsic == nullptr ||
        (target.arch == intrinsic->arch && target.HasFeature(intrinsic->feature)))
      continue;
    return absl::UnimplementedError(absl::StrCat(intrinsic->name, " needs ", intrinsic->arch,
                                                 " with ", intrinsic->feature, "; the target is ",
                                                 target.arch, " ", target.cpu, " without it"));
  }
  return absl::OkStatus();
}

int64_t FunctionEmitter::StepOf(const Index& offset, ir::AtomId var, int64_t value) {
  const int64_t base = SplitIndex(offset).constant;
  variables_[var].constant = value;
  const int64_t moved = SplitIndex(offset).constant;
  variables_[var].constant = 0;
  return moved - base;
}

absl::Status FunctionEmitter::EmitIntrinsic(StmtId id, const Stmt& store, Value* mask) {
  const Intrinsic& intrinsic = *IntrinsicOf(store);
  if (mask != nullptr) return absl::InternalError("an instruction under a mask");
  for (ir::AtomId var : store.tensor_vars) variables_[var] = {Variable::Kind::kConstant, 0};
  std::vector<Operand> operands;
  state_.program.pool.VisitLoads(store.values[0], [&](const ir::Expr& load) {
    operands.push_back({load.buffer, state_.program.pool.IndicesOf(load)[0]});
  });
  if (operands.size() != 2)
    return absl::InternalError(
        absl::StrCat(intrinsic.name, " with ", operands.size(), " operands"));
  const bool dot = intrinsic.shape == Intrinsic::Shape::kDot;
  const absl::Status status = dot ? EmitDot(id, store, operands) : EmitTile(store, operands);
  for (ir::AtomId var : store.tensor_vars) variables_[var] = {};
  return status;
}

absl::Status FunctionEmitter::EmitDot(StmtId id, const Stmt& store,
                                      std::vector<Operand>& operands) {
  lower::LoweredProgram& program = state_.program;
  const Intrinsic& intrinsic = *IntrinsicOf(store);
  const int64_t group = ir::DescriptionOf(intrinsic).stages.back().reduce[0].extent;
  // Broadcasts the operand that does not move with the lanes.
  if (SplitIndex(operands[0].offset).lane != 0) std::swap(operands[0], operands[1]);
  std::vector<Value*> values;
  for (const Operand& operand : operands) {
    const ir::DType dtype = program.buffers[operand.buffer].dtype;
    Split split = SplitIndex(operand.offset);
    const bool broadcast = values.empty();
    if (split.irregular || split.lane != (broadcast ? 0 : group) ||
        StepOf(operand.offset, store.tensor_vars[0], 1) != 1) {
      return absl::InternalError(absl::StrCat(
          intrinsic.name, ": ", program.buffers[operand.buffer].name, " does not lie as it needs"));
    }
    split.lane = 0;
    llvm::Type* word = builder_.getIntNTy(static_cast<unsigned>(group * ir::DTypeBytes(dtype) * 8));
    llvm::Type* type = broadcast ? word : llvm::FixedVectorType::get(word, lanes_);
    Value* value = builder_.CreateAlignedLoad(type, Address(operand.buffer, split),
                                              llvm::Align(ir::DTypeBytes(dtype)));
    if (broadcast) value = builder_.CreateVectorSplat(lanes_, value);
    llvm::Type* element = intrinsic.operand == ir::DType::kBF16 ? builder_.getBFloatTy()
                          : intrinsic.operand == ir::DType::kI8
                              ? builder_.getInt8Ty()
                              : static_cast<llvm::Type*>(builder_.getInt32Ty());
    const auto bits = static_cast<int64_t>(word->getIntegerBitWidth()) * lanes_;
    values.push_back(builder_.CreateBitCast(
        value, llvm::FixedVectorType::get(element, bits / element->getScalarSizeInBits())));
  }
  auto& combined = combined_[id];
  if (combined.empty()) {
    combined.push_back(program.pool.Load(store.outputs[0], program.buffers[store.outputs[0]].dtype,
                                         store.indices));
  }
  HONE_ASSIGN_OR_RETURN(Value * sum, EmitLoad(program.pool[combined[0]], nullptr));
  auto* type = llvm::FunctionType::get(
      sum->getType(), {sum->getType(), values[0]->getType(), values[1]->getType()}, false);
  Value* result = builder_.CreateCall(state_.module->getOrInsertFunction(NameOf(intrinsic), type),
                                      {sum, values[0], values[1]});
  return StoreTo(store.outputs[0], store.indices[0], result, nullptr);
}

absl::Status FunctionEmitter::EmitTile(const Stmt& store, std::vector<Operand>& operands) {
  const lower::LoweredProgram& program = state_.program;
  const Intrinsic& intrinsic = *IntrinsicOf(store);
  const ir::Workload& description = ir::DescriptionOf(intrinsic);
  const ir::Stage& stage = description.stages.back();
  const ir::AtomId row = store.tensor_vars[0], depth = store.tensor_vars[2];
  if (StepOf(operands[0].offset, row, 1) == 0) std::swap(operands[0], operands[1]);
  const Operand sum{store.outputs[0], store.indices[0]};
  const auto bytes = [&](const Operand& operand) {
    return static_cast<int64_t>(ir::DTypeBytes(program.buffers[operand.buffer].dtype));
  };
  const auto i16 = [&](int64_t value) { return builder_.getInt16(static_cast<uint16_t>(value)); };
  const int64_t rows = stage.spatial[0].extent, columns = stage.spatial[1].extent,
                steps = stage.reduce[0].extent;
  const int64_t group = description.tensors[1].shape[2];
  auto* amx = llvm::Type::getX86_AMXTy(context_);
  auto* i64 = builder_.getInt64Ty();
  auto* ptr = builder_.getPtrTy();
  struct Memory {
    Value* pointer;
    Value* stride;  // in bytes
    Value* rows;
    Value* columns;  // in bytes
  };
  const auto memory = [&](const Operand& operand, ir::AtomId var, int64_t step, int64_t height,
                          int64_t width) -> absl::StatusOr<Memory> {
    const Split split = SplitIndex(operand.offset);
    const int64_t stride = StepOf(operand.offset, var, step);
    if (split.irregular || stride < 1) {
      return absl::InternalError(absl::StrCat(
          intrinsic.name, ": ", program.buffers[operand.buffer].name, " does not lie as it needs"));
    }
    return Memory{Address(operand.buffer, split), I64(stride * bytes(operand)), i16(height),
                  i16(width)};
  };
  HONE_ASSIGN_OR_RETURN(const Memory a,
                        memory(operands[0], row, 1, rows, steps * bytes(operands[0])));
  HONE_ASSIGN_OR_RETURN(const Memory b, memory(operands[1], depth, group, steps / group,
                                               columns * group * bytes(operands[1])));
  HONE_ASSIGN_OR_RETURN(const Memory c, memory(sum, row, 1, rows, columns * bytes(sum)));
  auto* short_type = builder_.getInt16Ty();
  auto load = state_.module->getOrInsertFunction(
      "llvm.x86.tileloadd64.internal",
      llvm::FunctionType::get(amx, {short_type, short_type, ptr, i64}, false));
  const auto tile = [&](const Memory& m) {
    return builder_.CreateCall(load, {m.rows, m.columns, m.pointer, m.stride});
  };
  Value* tile_c = tile(c);
  Value* tile_a = tile(a);
  Value* tile_b = tile(b);
  auto multiply = state_.module->getOrInsertFunction(
      NameOf(intrinsic),
      llvm::FunctionType::get(amx, {short_type, short_type, short_type, amx, amx, amx}, false));
  Value* result =
      builder_.CreateCall(multiply, {c.rows, c.columns, a.columns, tile_c, tile_a, tile_b});
  auto store_tile = state_.module->getOrInsertFunction(
      "llvm.x86.tilestored64.internal",
      llvm::FunctionType::get(builder_.getVoidTy(), {short_type, short_type, ptr, i64, amx},
                              false));
  builder_.CreateCall(store_tile, {c.rows, c.columns, c.pointer, c.stride, result});
  return absl::OkStatus();
}

}  // namespace hone::codegen
