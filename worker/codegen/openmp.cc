#include "worker/codegen/openmp.h"

#include "llvm/IR/Module.h"

namespace hone::codegen {

using llvm::Value;

namespace {

// The function that the runtime calls on every thread: void(ptr context).
struct Task {
  llvm::Function* function;
  Value* number;  // of the thread
};

Task BeginTask(llvm::IRBuilder<>& b, llvm::Module& module, llvm::Function* body) {
  llvm::LLVMContext& context = module.getContext();
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {llvm::PointerType::getUnqual(context)}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                          body->getName() + "_task", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  auto thread_number = module.getOrInsertFunction("omp_get_thread_num",
                                                  llvm::FunctionType::get(b.getInt32Ty(), false));
  Value* number = b.CreateSExt(b.CreateCall(thread_number), b.getInt64Ty());
  return {function, number};
}

void EmitStatic(llvm::IRBuilder<>& builder, llvm::Module& module, llvm::Function* body,
                Value* context, int64_t extent, int threads) {
  llvm::IRBuilder<> t(module.getContext());
  const Task task = BeginTask(t, module, body);
  auto thread_count = module.getOrInsertFunction("omp_get_num_threads",
                                                 llvm::FunctionType::get(t.getInt32Ty(), false));
  Value* count = t.CreateSExt(t.CreateCall(thread_count), t.getInt64Ty());
  const auto share = [&](Value* n) {
    return t.CreateSDiv(t.CreateMul(n, t.getInt64(extent)), count);
  };
  Value* first = share(task.number);
  Value* last = share(t.CreateAdd(task.number, t.getInt64(1)));
  t.CreateCall(body, {task.function->getArg(0), first, last, task.number});
  t.CreateRetVoid();
  auto* i32 = builder.getInt32Ty();
  auto* ptr = builder.getPtrTy();
  auto parallel = module.getOrInsertFunction(
      "GOMP_parallel", llvm::FunctionType::get(builder.getVoidTy(), {ptr, ptr, i32, i32}, false));
  builder.CreateCall(parallel,
                     {task.function, context, builder.getInt32(threads), builder.getInt32(0)});
}

void EmitDynamic(llvm::IRBuilder<>& builder, llvm::Module& module, llvm::Function* body,
                 Value* context, int64_t extent, int threads, int64_t chunk) {
  llvm::IRBuilder<> t(module.getContext());
  const Task task = BeginTask(t, module, body);
  auto* i64 = t.getInt64Ty();  // C's long on every platform with these entry points
  auto* ptr = t.getPtrTy();
  Value* first = t.CreateAlloca(i64);
  Value* last = t.CreateAlloca(i64);
  auto* fetch = llvm::BasicBlock::Create(module.getContext(), "fetch", task.function);
  auto* work = llvm::BasicBlock::Create(module.getContext(), "work", task.function);
  auto* done = llvm::BasicBlock::Create(module.getContext(), "done", task.function);
  t.CreateBr(fetch);
  t.SetInsertPoint(fetch);
  auto next = module.getOrInsertFunction("GOMP_loop_dynamic_next",
                                         llvm::FunctionType::get(t.getInt8Ty(), {ptr, ptr}, false));
  t.CreateCondBr(t.CreateICmpNE(t.CreateCall(next, {first, last}), t.getInt8(0)), work, done);
  t.SetInsertPoint(work);
  t.CreateCall(body, {task.function->getArg(0), t.CreateLoad(i64, first), t.CreateLoad(i64, last),
                      task.number});
  t.CreateBr(fetch);
  t.SetInsertPoint(done);
  t.CreateCall(module.getOrInsertFunction("GOMP_loop_end_nowait",
                                          llvm::FunctionType::get(t.getVoidTy(), false)));
  t.CreateRetVoid();
  auto* i32 = builder.getInt32Ty();
  auto parallel = module.getOrInsertFunction(
      "GOMP_parallel_loop_dynamic",
      llvm::FunctionType::get(builder.getVoidTy(), {ptr, ptr, i32, i64, i64, i64, i64, i32},
                              false));
  builder.CreateCall(parallel, {task.function, context, builder.getInt32(threads),
                                builder.getInt64(0), builder.getInt64(extent), builder.getInt64(1),
                                builder.getInt64(chunk), builder.getInt32(0)});
}

}  // namespace

void EmitFork(llvm::IRBuilder<>& builder, llvm::Function* body, Value* context, int64_t extent,
              int threads, int64_t chunk) {
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  if (chunk == 0) {
    EmitStatic(builder, module, body, context, extent, threads);
  } else {
    EmitDynamic(builder, module, body, context, extent, threads, chunk);
  }
}

}  // namespace hone::codegen
