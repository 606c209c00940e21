#include "worker/codegen/llvm/openmp.h"

#include "llvm/IR/Module.h"

namespace hone::codegen {

using llvm::Value;

namespace {

llvm::FunctionCallee Declare(llvm::Module& module, llvm::StringRef name, llvm::Type* result,
                             llvm::ArrayRef<llvm::Type*> parameters) {
  return module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false));
}

// Begins the function that the runtime calls on every thread: void(ptr context). Returns the
// thread's number.
Value* BeginTask(llvm::IRBuilder<>& t, llvm::Function* body) {
  llvm::Module& module = *body->getParent();
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(t.getVoidTy(), {t.getPtrTy()}, false),
                             llvm::GlobalValue::InternalLinkage, body->getName() + "_task", module);
  t.SetInsertPoint(llvm::BasicBlock::Create(t.getContext(), "entry", function));
  return t.CreateSExt(t.CreateCall(Declare(module, "omp_get_thread_num", t.getInt32Ty(), {})),
                      t.getInt64Ty());
}

void EmitStatic(llvm::IRBuilder<>& b, llvm::Function* body, Value* context, int64_t extent,
                int threads) {
  llvm::Module& module = *body->getParent();
  llvm::IRBuilder<> t(b.getContext());
  Value* number = BeginTask(t, body);
  llvm::Function* task = t.GetInsertBlock()->getParent();
  Value* count = t.CreateSExt(
      t.CreateCall(Declare(module, "omp_get_num_threads", t.getInt32Ty(), {})), t.getInt64Ty());
  const auto share = [&](Value* n) {
    return t.CreateSDiv(t.CreateMul(n, t.getInt64(extent)), count);
  };
  Value* first = share(number);
  Value* last = share(t.CreateAdd(number, t.getInt64(1)));
  t.CreateCall(body, {task->getArg(0), first, last, number});
  t.CreateRetVoid();
  auto* i32 = b.getInt32Ty();
  auto* ptr = b.getPtrTy();
  b.CreateCall(Declare(module, "GOMP_parallel", b.getVoidTy(), {ptr, ptr, i32, i32}),
               {task, context, b.getInt32(threads), b.getInt32(0)});
}

void EmitDynamic(llvm::IRBuilder<>& b, llvm::Function* body, Value* context, int64_t extent,
                 int threads, int64_t chunk) {
  llvm::Module& module = *body->getParent();
  llvm::IRBuilder<> t(b.getContext());
  Value* number = BeginTask(t, body);
  llvm::Function* task = t.GetInsertBlock()->getParent();
  auto* i64 = t.getInt64Ty();  // C's long on every platform with these entry points
  auto* ptr = t.getPtrTy();
  Value* first = t.CreateAlloca(i64);
  Value* last = t.CreateAlloca(i64);
  auto* fetch = llvm::BasicBlock::Create(t.getContext(), "fetch", task);
  auto* work = llvm::BasicBlock::Create(t.getContext(), "work", task);
  auto* done = llvm::BasicBlock::Create(t.getContext(), "done", task);
  t.CreateBr(fetch);
  t.SetInsertPoint(fetch);
  const auto next = Declare(module, "GOMP_loop_dynamic_next", t.getInt8Ty(), {ptr, ptr});
  t.CreateCondBr(t.CreateICmpNE(t.CreateCall(next, {first, last}), t.getInt8(0)), work, done);
  t.SetInsertPoint(work);
  t.CreateCall(body, {task->getArg(0), t.CreateLoad(i64, first), t.CreateLoad(i64, last), number});
  t.CreateBr(fetch);
  t.SetInsertPoint(done);
  t.CreateCall(Declare(module, "GOMP_loop_end_nowait", t.getVoidTy(), {}));
  t.CreateRetVoid();
  auto* i32 = b.getInt32Ty();
  b.CreateCall(Declare(module, "GOMP_parallel_loop_dynamic", b.getVoidTy(),
                       {ptr, ptr, i32, i64, i64, i64, i64, i32}),
               {task, context, b.getInt32(threads), b.getInt64(0), b.getInt64(extent),
                b.getInt64(1), b.getInt64(chunk), b.getInt32(0)});
}

}  // namespace

void EmitFork(llvm::IRBuilder<>& builder, llvm::Function* body, Value* context, int64_t extent,
              int threads, int64_t chunk) {
  if (chunk == 0) {
    EmitStatic(builder, body, context, extent, threads);
  } else {
    EmitDynamic(builder, body, context, extent, threads, chunk);
  }
}

}  // namespace hone::codegen
