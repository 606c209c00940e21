#ifndef HONE_WORKER_COMPILE_LLVM_FUNCTION_CONTEXT_H_
#define HONE_WORKER_COMPILE_LLVM_FUNCTION_CONTEXT_H_

#include "common/target/target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "worker/compile/llvm/conversion.h"
#include "worker/compile/llvm/machine.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// The parallel loop that hone_kernel_range runs.
struct ParallelBody {
  llvm::Function* body = nullptr;  // void(context, begin, end, thread)
  int64_t extent = 0;
  bool captures = false;  // uses variables of enclosing loops
};

// State shared by the functions of one module.
struct ModuleState {
  lower::LoweredProgram program;  // a copy: emission adds expressions
  llvm::Module* module = nullptr;
  const target::Target* target = nullptr;
  const Machine* machine = nullptr;
  int64_t stores = 0;      // statements emitted so far
  int64_t operations = 0;  // in their expressions
  int parallel_bodies = 0;
  ParallelBody last_parallel;
  // Slots of the context that every function receives: buffers, packed constants, workspace, the
  // runtime, then captured loop variables.
  int PackedSlot() const { return program.arguments; }
  int WorkspaceSlot() const { return program.arguments + 1; }
  int RuntimeSlot() const { return program.arguments + 2; }
  int CaptureSlot() const { return program.arguments + 3; }
};
inline constexpr int kMaxCaptures = 32;

// State shared by the emitters of one function.
struct FunctionContext {
  explicit FunctionContext(ModuleState& module_state)
      : state(module_state), b(state.module->getContext()), convert(b, *state.machine) {}

  ModuleState& state;
  llvm::IRBuilder<> b;
  Conversion convert;
  llvm::Function* function = nullptr;  // void(ptr context, …)
  llvm::Value* thread = nullptr;       // number of the thread, an i64
  int64_t loop_lanes = 0;              // of the current vectorized loop; 0: outside
  int64_t lanes = 0;                   // that the current statement computes

  llvm::Value* I64(int64_t value) { return b.getInt64(value); }
  llvm::BasicBlock* Block(const char* name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  }
  // Returns the address of a slot of the function's context.
  llvm::Value* Slot(int64_t position) {
    return b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), function->getArg(0), position);
  }
  llvm::Type* ValueType(ir::DType dtype) {
    return Conversion::Lanes(convert.ValueType(dtype), lanes);
  }
  // Converts a scalar to a vector if there are lanes.
  llvm::Value* Widen(llvm::Value* value) {
    const bool wide = lanes == 0 || value->getType()->isVectorTy();
    return wide ? value : b.CreateVectorSplat(lanes, value);
  }
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_FUNCTION_CONTEXT_H_
