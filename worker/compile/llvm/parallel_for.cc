#include "worker/compile/llvm/parallel_for.h"

#include "llvm/IR/Module.h"

namespace hone::codegen {

using llvm::Value;

void EmitParallelFor(llvm::IRBuilder<>& b, llvm::Function* body, Value* context, Value* runtime,
                     int64_t extent, int threads, int64_t chunk) {
  auto* const ptr = b.getPtrTy();
  auto* const i32 = b.getInt32Ty();
  auto* const i64 = b.getInt64Ty();
  // HoneRuntime.
  auto* const layout = llvm::StructType::get(ptr, i32);
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  const auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  };
  auto* const ask = block("runtime");
  auto* const fork = block("fork");
  auto* const alone = block("alone");
  auto* const join = block("joined");
  b.CreateCondBr(b.CreateIsNull(runtime), alone, ask);
  b.SetInsertPoint(ask);
  Value* const available = b.CreateLoad(i32, b.CreateStructGEP(layout, runtime, 1));
  Value* const used =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, available, b.getInt32(threads));
  b.CreateCondBr(b.CreateICmpSGT(used, b.getInt32(1)), fork, alone);
  b.SetInsertPoint(fork);
  auto* const type = llvm::FunctionType::get(b.getVoidTy(), {ptr, i64, i64, i32, ptr, ptr}, false);
  Value* const parallel_for = b.CreateLoad(ptr, b.CreateStructGEP(layout, runtime, 0));
  b.CreateCall(type, parallel_for,
               {runtime, b.getInt64(extent), b.getInt64(chunk), used, body, context});
  b.CreateBr(join);
  b.SetInsertPoint(alone);
  b.CreateCall(body, {context, b.getInt64(0), b.getInt64(extent), b.getInt64(0)});
  b.CreateBr(join);
  b.SetInsertPoint(join);
}

}  // namespace hone::codegen
