#include "worker/codegen/llvm/entry_points.h"

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
    Constant(target::kWorkspaceSymbol, b_.getInt64(program.workspace_bytes));
    Constant(target::kPackedSymbol, b_.getInt64(program.packed_bytes));
    Constant(target::kRangeExtentSymbol, b_.getInt64(has_range ? state_.last_parallel.extent : 0));
    auto* ptr = b_.getPtrTy();
    auto* i64 = b_.getInt64Ty();
    Entry(target::kPrepackSymbol, {ptr, ptr}, [&](llvm::Function* f, Value* context) {
      Store(context, state_.PackedSlot(), f->getArg(1));
      if (prepack != nullptr) b_.CreateCall(prepack, {context});
    });
    Entry(target::kRunSymbol, {ptr, ptr, ptr}, [&](llvm::Function* f, Value* context) {
      Store(context, state_.PackedSlot(), f->getArg(1));
      Store(context, state_.WorkspaceSlot(), f->getArg(2));
      b_.CreateCall(main, {context});
    });
    Entry(target::kRangeSymbol, {ptr, ptr, ptr, i64, i64}, [&](llvm::Function* f, Value* context) {
      Store(context, state_.PackedSlot(), f->getArg(1));
      Store(context, state_.WorkspaceSlot(), f->getArg(2));
      if (!has_range) return;
      Value* extent = b_.getInt64(state_.last_parallel.extent);
      Value* begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, f->getArg(3), b_.getInt64(0));
      Value* end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, f->getArg(4), extent);
      b_.CreateCall(state_.last_parallel.body, {context, begin, end, b_.getInt64(0)});
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
    for (int i = 0; i < program.arguments; ++i) {
      Value* buffer = b_.CreateLoad(
          b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function->getArg(0), i));
      if (!is_prepack) Require(IsAligned(buffer), target::kKernelMisalignedBuffer);
      Store(context, i, buffer);
    }
    if (program.packed_bytes > 0)
      Require(IsAligned(function->getArg(1)), target::kKernelMisalignedBuffer);
    if (!is_prepack && program.workspace_bytes > 0)
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
