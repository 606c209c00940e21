#include "worker/codegen/llvm/entry_points.h"

#include <vector>

#include "absl/functional/function_ref.h"
#include "common/target/kernel_abi.h"

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
        cpu_guard_(cpu_guard) {}

  void Run(llvm::Function* prepack, llvm::Function* main) {
    const lower::LoweredProgram& program = state_.program;
    const bool has_range = state_.last_parallel.body != nullptr && !state_.last_parallel.captures;
    Constant(target::kAbiSymbol, b_.getInt32(target::kKernelAbiVersion));
    Constant(target::kThreadsSymbol, b_.getInt32(program.threads));
    EmitWorkspaceBytes();
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

  // Requires that no output overlaps another buffer. Constants that are packed are not read by run,
  // and may be gone.
  void RequireApart(llvm::ArrayRef<Value*> buffers) {
    const lower::LoweredProgram& program = state_.program;
    std::vector<int64_t> bytes(buffers.size());
    std::vector<bool> written(buffers.size());
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const lower::Storage& storage = program.storage[b];
      if (storage.kind != lower::Storage::Kind::kArgument) continue;
      if (program.buffers[b].constant && program.packed_bytes > 0) continue;
      bytes[storage.position] = storage.elements * ir::DTypeBytes(program.buffers[b].dtype);
      written[storage.position] = program.buffers[b].output;
    }
    auto* const i64 = b_.getInt64Ty();
    Value* apart = b_.getTrue();
    for (size_t x = 0; x < buffers.size(); ++x) {
      for (size_t y = 0; y < x; ++y) {
        if ((!written[x] && !written[y]) || bytes[x] == 0 || bytes[y] == 0) continue;
        // They are apart if x − y, as an unsigned number, is at least y's size and at most 2^64
        // minus x's size.
        Value* const distance =
            b_.CreateSub(b_.CreatePtrToInt(buffers[x], i64), b_.CreatePtrToInt(buffers[y], i64));
        Value* const range = b_.CreateSub(distance, b_.getInt64(bytes[y]));
        apart = b_.CreateAnd(apart,
                             b_.CreateICmpULE(range, b_.getInt64(-static_cast<uint64_t>(bytes[x]) -
                                                                 static_cast<uint64_t>(bytes[y]))));
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

  Value* IsAligned(Value* pointer) {
    Value* bits = b_.CreatePtrToInt(pointer, b_.getInt64Ty());
    Value* low = b_.CreateAnd(bits, b_.getInt64(target::kBufferAlignment - 1));
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
    std::vector<Value*> buffers;
    for (int i = 0; i < program.arguments; ++i) {
      Value* buffer = b_.CreateLoad(
          b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function->getArg(0), i));
      if (!is_prepack) Require(IsAligned(buffer), target::kKernelMisalignedBuffer);
      Store(context, i, buffer);
      buffers.push_back(buffer);
    }
    if (!is_prepack) RequireApart(buffers);
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
};

}  // namespace

void EmitEntryPoints(ModuleState& state, llvm::Function* cpu_guard, llvm::Function* prepack,
                     llvm::Function* main) {
  EntryPoints(state, cpu_guard).Run(prepack, main);
}

}  // namespace hone::codegen
