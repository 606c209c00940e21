#include "worker/compile/llvm/entry_points.h"

#include <algorithm>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/target/kernel_abi.h"
#include "worker/compile/lower/layout.h"

namespace hone::codegen {

using llvm::IRBuilder;
using llvm::Value;

namespace {

class EntryPoints {
 public:
  EntryPoints(ModuleState& state, llvm::Function* cpu_guard)
      : state_(state),
        module_(*state.module),
        context_(module_.getContext()),
        b_(context_),
        cpu_guard_(cpu_guard),
        read_by_prepack_(state.program.arguments),
        used_by_run_(state.program.arguments) {
    for (const lower::LoweredKernel& kernel : state.program.kernels) {
      MarkUses(kernel.body, kernel.name == ir::kPrepackKernel ? read_by_prepack_ : used_by_run_);
    }
  }

  void Run(llvm::Function* prepack, llvm::Function* main) {
    const lower::LoweredProgram& program = state_.program;
    const bool has_range = state_.last_parallel.body != nullptr && !state_.last_parallel.captures;
    Constant(target::kAbiSymbol, b_.getInt32(target::kKernelAbiVersion));
    Constant(target::kThreadsSymbol, b_.getInt32(program.threads));
    EmitWorkspaceBytes();
    EmitStrides();
    EmitUses();
    Constant(target::kPackedSymbol, b_.getInt64(program.packed_bytes));
    Constant(target::kRangeExtentSymbol, b_.getInt64(has_range ? state_.last_parallel.extent : 0));
    auto* ptr = b_.getPtrTy();
    auto* i64 = b_.getInt64Ty();
    Entry(target::kPrepackSymbol, {ptr, ptr}, [&](llvm::Function* f, Value* context) {
      Store(context, state_.PackedSlot(), f->getArg(1));
      Store(context, state_.RuntimeSlot(), llvm::ConstantPointerNull::get(b_.getPtrTy()));
      if (prepack != nullptr) b_.CreateCall(prepack, {context});
    });
    Entry(target::kRunSymbol, {ptr, ptr, ptr, ptr}, [&](llvm::Function* f, Value* context) {
      Store(context, state_.PackedSlot(), f->getArg(1));
      Store(context, state_.WorkspaceSlot(), f->getArg(2));
      Store(context, state_.RuntimeSlot(), f->getArg(3));
      b_.CreateCall(main, {context});
    });
    const std::vector<llvm::Type*> range = {ptr, ptr, ptr, i64, i64, i64};
    Entry(target::kRangeSymbol, range, [&](llvm::Function* f, Value* context) {
      if (!has_range) return;
      Store(context, state_.PackedSlot(), f->getArg(1));
      Store(context, state_.WorkspaceSlot(), f->getArg(2));
      Store(context, state_.RuntimeSlot(), llvm::ConstantPointerNull::get(b_.getPtrTy()));
      Value* extent = b_.getInt64(state_.last_parallel.extent);
      Value* begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, f->getArg(3), b_.getInt64(0));
      Value* end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, f->getArg(4), extent);
      b_.CreateCall(state_.last_parallel.body, {context, begin, end, f->getArg(5)});
    });
  }

 private:
  llvm::Function* Function(llvm::StringRef name, llvm::Type* result,
                           llvm::ArrayRef<llvm::Type*> parameters) {
    auto* function = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false),
                                            llvm::GlobalValue::ExternalLinkage, name, module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function));
    return function;
  }

  void Constant(llvm::StringRef name, llvm::ConstantInt* value) {
    Function(name, value->getType(), {});
    b_.CreateRet(value);
  }

  void EmitWorkspaceBytes() {
    const lower::LoweredProgram& program = state_.program;
    llvm::Function* const function =
        Function(target::kWorkspaceSymbol, b_.getInt64Ty(), {b_.getInt32Ty()});
    Value* used =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, function->getArg(0), b_.getInt32(1));
    used = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, used, b_.getInt32(program.threads));
    Value* const parts = b_.CreateMul(b_.CreateSExt(used, b_.getInt64Ty()),
                                      b_.getInt64(program.thread_stride_bytes));
    b_.CreateRet(b_.CreateAdd(parts, b_.getInt64(program.workspace_bytes)));
  }

  // Emits the function kStridesSymbol if some argument has strides.
  void EmitStrides() {
    std::vector<const lower::Storage*> slices;
    for (const lower::Storage& storage : state_.program.storage) {
      if (!storage.strides.empty()) slices.push_back(&storage);
    }
    if (slices.empty()) return;
    llvm::Function* const function =
        Function(target::kStridesSymbol, b_.getPtrTy(), {b_.getInt32Ty()});
    auto* const dense = llvm::BasicBlock::Create(context_, "dense", function);
    llvm::SwitchInst* const choice = b_.CreateSwitch(function->getArg(0), dense);
    b_.SetInsertPoint(dense);
    b_.CreateRet(llvm::ConstantPointerNull::get(b_.getPtrTy()));
    for (const lower::Storage* const storage : slices) {
      const std::vector<uint64_t> strides(storage->strides.begin(), storage->strides.end());
      llvm::Constant* const numbers = llvm::ConstantDataArray::get(context_, strides);
      auto* const slice = llvm::BasicBlock::Create(context_, "slice", function);
      choice->addCase(b_.getInt32(storage->position), slice);
      b_.SetInsertPoint(slice);
      b_.CreateRet(new llvm::GlobalVariable(module_, numbers->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::InternalLinkage, numbers));
    }
  }

  // Marks the arguments that a statement and those inside it read or write.
  void MarkUses(lower::StmtId id, std::vector<bool>& used) const {
    if (id == lower::kNoStmt) return;
    const lower::LoweredProgram& program = state_.program;
    const auto mark = [&](ir::BufferId buffer) {
      const lower::Storage& storage = program.storage[buffer];
      if (storage.kind == lower::Storage::Kind::kArgument) used[storage.position] = true;
    };
    const lower::Stmt& stmt = program.stmts[id];
    for (const ir::BufferId output : stmt.outputs) mark(output);
    for (const ir::ExprId value : stmt.values) {
      program.pool.VisitLoads(value, [&](const ir::Expr& load) { mark(load.buffer); });
    }
    for (const lower::StmtId child : stmt.children) MarkUses(child, used);
  }

  // Emits the function kUsesSymbol if run does not use some argument.
  void EmitUses() {
    llvm::SmallVector<int> unused;
    for (int i = 0; i < state_.program.arguments; ++i) {
      if (!used_by_run_[i]) unused.push_back(i);
    }
    if (unused.empty()) return;
    llvm::Function* const function =
        Function(target::kUsesSymbol, b_.getInt32Ty(), {b_.getInt32Ty()});
    Value* uses = b_.getTrue();
    for (const int i : unused) {
      uses = b_.CreateAnd(uses, b_.CreateICmpNE(function->getArg(0), b_.getInt32(i)));
    }
    b_.CreateRet(b_.CreateZExt(uses, b_.getInt32Ty()));
  }

  // The memory of an argument, in bytes. `span` is 0 if run does not access it; `pitch` is 0 if it
  // is a single row.
  struct Extent {
    int64_t span = 0, row = 0, pitch = 0;
    int64_t alignment = target::kBufferAlignment;
    bool written = false;
  };

  // Arguments that run does not use, such as packed constants, may have been freed.
  std::vector<Extent> ExtentsOfArguments() const {
    const lower::LoweredProgram& program = state_.program;
    std::vector<Extent> extents(program.arguments);
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const lower::Storage& storage = program.storage[b];
      const ir::Buffer& buffer = program.buffers[b];
      if (storage.kind != lower::Storage::Kind::kArgument) continue;
      Extent& extent = extents[storage.position];
      extent.alignment = lower::AlignmentOf(program, static_cast<ir::BufferId>(b));
      if (!used_by_run_[storage.position]) continue;
      const int64_t bytes = ir::DTypeBytes(buffer.dtype);
      extent.written = buffer.output;
      extent.span = extent.row = storage.elements * bytes;
      if (storage.strides.empty()) continue;
      const lower::Rows rows = lower::RowsOf(buffer.shape, storage.strides);
      extent.row = rows.elements * bytes;
      extent.pitch = rows.pitch * bytes;
    }
    return extents;
  }

  // Returns whether the rows of x lie between the rows of y. REQUIRES: their pitches are `pitch`,
  // or one of them is a single row.
  Value* Alternate(const Extent& x, const Extent& y, int64_t pitch, Value* distance) {
    Value* const step = b_.getInt64(pitch);
    // The place of x's rows in the pitch, when y's rows begin at 0.
    Value* const place = b_.CreateSRem(b_.CreateAdd(b_.CreateSRem(distance, step), step), step);
    return b_.CreateAnd(b_.CreateICmpSGE(place, b_.getInt64(y.row)),
                        b_.CreateICmpSLE(place, b_.getInt64(pitch - x.row)));
  }

  // Checks that no output shares memory with another buffer.
  void RequireApart(llvm::ArrayRef<Value*> buffers, llvm::ArrayRef<Extent> extents) {
    auto* const i64 = b_.getInt64Ty();
    Value* apart = b_.getTrue();
    for (size_t x = 0; x < buffers.size(); ++x) {
      for (size_t y = 0; y < x; ++y) {
        const Extent &first = extents[x], &second = extents[y];
        if ((!first.written && !second.written) || first.span == 0 || second.span == 0) continue;
        // They are apart if x − y, as an unsigned number, is at least y's size and at most 2^64
        // minus x's size.
        Value* const distance =
            b_.CreateSub(b_.CreatePtrToInt(buffers[x], i64), b_.CreatePtrToInt(buffers[y], i64));
        Value* const range = b_.CreateSub(distance, b_.getInt64(second.span));
        Value* holds = b_.CreateICmpULE(range, b_.getInt64(-static_cast<uint64_t>(first.span) -
                                                           static_cast<uint64_t>(second.span)));
        const int64_t pitch = std::max(first.pitch, second.pitch);
        const bool one_row = first.pitch == 0 || second.pitch == 0;
        if (pitch > 0 && (one_row || first.pitch == second.pitch))
          holds = b_.CreateOr(holds, Alternate(first, second, pitch, distance));
        apart = b_.CreateAnd(apart, holds);
      }
    }
    Require(apart, target::kKernelOverlap);
  }

  void Store(Value* context, int slot, Value* value) {
    b_.CreateStore(value, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), context, slot));
  }

  void Require(Value* holds, int code) {
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    auto* fail = llvm::BasicBlock::Create(context_, "fail", function);
    auto* pass = llvm::BasicBlock::Create(context_, "pass", function);
    b_.CreateCondBr(holds, pass, fail);
    b_.SetInsertPoint(fail);
    b_.CreateRet(b_.getInt32(code));
    b_.SetInsertPoint(pass);
  }

  Value* IsAligned(Value* pointer, int64_t alignment = target::kBufferAlignment) {
    Value* bits = b_.CreatePtrToInt(pointer, b_.getInt64Ty());
    Value* low = b_.CreateAnd(bits, b_.getInt64(alignment - 1));
    return b_.CreateAnd(b_.CreateICmpEQ(low, b_.getInt64(0)),
                        b_.CreateICmpNE(bits, b_.getInt64(0)));
  }

  void Entry(llvm::StringRef name, llvm::ArrayRef<llvm::Type*> parameters,
             absl::FunctionRef<void(llvm::Function*, Value* context)> call) {
    llvm::Function* function = Function(name, b_.getInt32Ty(), parameters);
    const lower::LoweredProgram& program = state_.program;
    Value* context =
        b_.CreateAlloca(b_.getInt64Ty(), b_.getInt32(state_.CaptureSlot() + kMaxCaptures));
    Require(b_.CreateCall(cpu_guard_), target::kKernelUnsupportedCpu);
    const bool is_prepack = name == target::kPrepackSymbol;
    const std::vector<Extent> extents = ExtentsOfArguments();
    std::vector<Value*> buffers;
    for (int i = 0; i < program.arguments; ++i) {
      Value* buffer = b_.CreateLoad(
          b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function->getArg(0), i));
      if (is_prepack ? read_by_prepack_[i] : used_by_run_[i])
        Require(IsAligned(buffer, extents[i].alignment), target::kKernelMisalignedBuffer);
      Store(context, i, buffer);
      buffers.push_back(buffer);
    }
    if (!is_prepack) RequireApart(buffers, extents);
    if (program.packed_bytes > 0)
      Require(IsAligned(function->getArg(1)), target::kKernelMisalignedBuffer);
    if (!is_prepack && program.WorkspaceBytes(1) > 0)
      Require(IsAligned(function->getArg(2)), target::kKernelMisalignedBuffer);
    call(function, context);
    b_.CreateRet(b_.getInt32(target::kKernelOk));
  }

  ModuleState& state_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  IRBuilder<> b_;
  llvm::Function* cpu_guard_;
  std::vector<bool> read_by_prepack_, used_by_run_;  // by argument
};

}  // namespace

void EmitEntryPoints(ModuleState& state, llvm::Function* cpu_guard, llvm::Function* prepack,
                     llvm::Function* main) {
  EntryPoints(state, cpu_guard).Run(prepack, main);
}

}  // namespace hone::codegen
