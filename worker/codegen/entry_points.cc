#include "worker/codegen/entry_points.h"

#include "common/target/kernel_abi.h"
#include "llvm/IR/InlineAsm.h"

namespace hone::codegen {

using llvm::IRBuilder;
using llvm::Value;

namespace {

class EntryPoints {
 public:
  EntryPoints(ModuleState& state, const target::Target& target)
      : state_(state), target_(target), module_(*state.module), context_(module_.getContext()), b_(context_) {}

  void Run(llvm::Function* prepack, llvm::Function* main) {
    const lower::LoweredProgram& program = state_.program;
    const bool has_range = state_.last_parallel.body != nullptr && !state_.last_parallel.captures;
    Constant(target::kAbiSymbol, b_.getInt32(target::kKernelAbiVersion));
    Constant(target::kWorkspaceSymbol, b_.getInt64(program.workspace_bytes));
    Constant(target::kPackedSymbol, b_.getInt64(program.packed_bytes));
    Constant(target::kRangeExtentSymbol, b_.getInt64(has_range ? state_.last_parallel.extent : 0));
    EmitCpuGuard();
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
  llvm::Function* Function(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters, bool visible) {
    auto* function = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false),
                                            visible ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, name, module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function));
    return function;
  }

  void Constant(llvm::StringRef name, llvm::ConstantInt* value) {
    Function(name, value->getType(), {}, true);
    b_.CreateRet(value);
  }

  void Store(Value* context, int slot, Value* value) {
    b_.CreateStore(value, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), context, slot));
  }

  // Leaves with a code unless `holds`.
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
    return b_.CreateAnd(b_.CreateICmpEQ(low, b_.getInt64(0)), b_.CreateICmpNE(bits, b_.getInt64(0)));
  }

  template <typename F>
  void Entry(llvm::StringRef name, llvm::ArrayRef<llvm::Type*> parameters, F&& call) {
    llvm::Function* function = Function(name, b_.getInt32Ty(), parameters, true);
    const lower::LoweredProgram& program = state_.program;
    Value* context = b_.CreateAlloca(b_.getInt64Ty(), b_.getInt32(state_.CaptureSlot() + kMaxCaptures));
    Require(b_.CreateCall(cpu_guard_), target::kKernelUnsupportedCpu);
    const bool is_prepack = name == target::kPrepackSymbol;
    for (int i = 0; i < program.arguments; ++i) {
      Value* buffer = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function->getArg(0), i));
      if (!is_prepack) Require(IsAligned(buffer), target::kKernelMisalignedBuffer);
      Store(context, i, buffer);
    }
    if (program.packed_bytes > 0) Require(IsAligned(function->getArg(1)), target::kKernelMisalignedBuffer);
    if (!is_prepack && program.workspace_bytes > 0) Require(IsAligned(function->getArg(2)), target::kKernelMisalignedBuffer);
    call(function, context);
    b_.CreateRet(b_.getInt32(target::kKernelOk));
  }

  // i1 cpu_guard(): asks CPUID once and remembers the answer (CPUID leaves a virtual machine and costs microseconds).
  void EmitCpuGuard() {
    auto* i32 = b_.getInt32Ty();
    cpu_guard_ = Function("hone_cpu_guard", b_.getInt1Ty(), {}, false);
    if (target_.arch != "x86_64") {
      b_.CreateRet(b_.getTrue());
      return;
    }
    auto* known = new llvm::GlobalVariable(module_, i32, false, llvm::GlobalValue::InternalLinkage, b_.getInt32(0), "hone_cpu_state");
    auto* ask = llvm::BasicBlock::Create(context_, "ask", cpu_guard_);
    auto* done = llvm::BasicBlock::Create(context_, "done", cpu_guard_);
    auto* load = b_.CreateLoad(i32, known);
    load->setAtomic(llvm::AtomicOrdering::Monotonic);
    b_.CreateCondBr(b_.CreateICmpEQ(load, b_.getInt32(0)), ask, done);
    b_.SetInsertPoint(done);
    b_.CreateRet(b_.CreateICmpEQ(load, b_.getInt32(1)));
    b_.SetInsertPoint(ask);
    auto* result = llvm::StructType::get(i32, i32, i32, i32);
    auto* cpuid = llvm::InlineAsm::get(llvm::FunctionType::get(result, {i32, i32}, false), "cpuid",
                                       "={eax},={ebx},={ecx},={edx},{eax},{ecx},~{dirflag},~{fpsr},~{flags}", true);
    const auto leaf = [&](uint32_t n, uint32_t sub = 0) { return b_.CreateCall(cpuid, {b_.getInt32(n), b_.getInt32(sub)}); };
    Value* highest = b_.CreateExtractValue(leaf(0), 0);
    Value* leaf1 = leaf(1);
    Value* leaf7 = leaf(7);
    Value* ok = b_.CreateICmpUGE(highest, b_.getInt32(7));
    const auto need = [&](absl::string_view feature, Value* leaf_value, unsigned reg, uint32_t bit) {
      if (!target_.HasFeature(feature)) return;
      Value* bits = b_.CreateExtractValue(leaf_value, reg);
      ok = b_.CreateAnd(ok, b_.CreateICmpNE(b_.CreateAnd(bits, b_.getInt32(uint32_t{1} << bit)), b_.getInt32(0)));
    };
    need("fma", leaf1, 2, 12);
    need("avx", leaf1, 2, 28);
    need("f16c", leaf1, 2, 29);
    need("avx2", leaf7, 1, 5);
    need("avx512f", leaf7, 1, 16);
    need("avx512dq", leaf7, 1, 17);
    need("avx512bw", leaf7, 1, 30);
    need("avx512vl", leaf7, 1, 31);
    need("avx512vnni", leaf7, 2, 11);
    need("amx-bf16", leaf7, 3, 22);
    need("amx-int8", leaf7, 3, 25);
    if (target_.HasFeature("avx512bf16")) need("avx512bf16", leaf(7, 1), 0, 5);
    auto* store = b_.CreateStore(b_.CreateSelect(ok, b_.getInt32(1), b_.getInt32(2)), known);
    store->setAtomic(llvm::AtomicOrdering::Monotonic);
    b_.CreateRet(ok);
  }

  ModuleState& state_;
  const target::Target& target_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  IRBuilder<> b_;
  llvm::Function* cpu_guard_ = nullptr;
};

}  // namespace

void EmitEntryPoints(ModuleState& state, const target::Target& target, llvm::Function* prepack, llvm::Function* main) {
  EntryPoints(state, target).Run(prepack, main);
}

}  // namespace hone::codegen
