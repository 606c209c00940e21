#ifndef HONE_WORKER_COMPILE_LLVM_EXPR_EMITTER_H_
#define HONE_WORKER_COMPILE_LLVM_EXPR_EMITTER_H_

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compile/llvm/index_emitter.h"
#include "worker/compile/llvm/memory_emitter.h"
#include "worker/compile/llvm/vector_math/math_builder.h"

namespace hone::codegen {

// Emits expressions: scalars outside vectorized loops, vectors inside. Values are of ValueType, or
// scalar if all lanes agree. Loop-invariant floats, such as a row's maximum or the reciprocal root
// of its variance, are computed before the loop.
class ExprEmitter {
 public:
  ExprEmitter(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory)
      : f_(f), index_(index), memory_(memory), math_(f.b, *f.state.machine) {}

  // Marks the innermost scope as the body of a loop. `preheader` is the instruction that ends the
  // code before it.
  void EnterLoop(llvm::Instruction* preheader, lower::StmtId body);
  void LeaveLoop() { loops_.pop_back(); }

  // Begins a statement: within it, shared expressions are emitted once.
  void BeginStatement() { emitted_.clear(); }
  // Gives an expression a value until the next statement begins.
  void Define(ir::ExprId id, llvm::Value* value) { emitted_.emplace_back(id, value); }
  absl::StatusOr<llvm::Value*> Emit(ir::ExprId id, llvm::Value* mask);

 private:
  using Variable = IndexEmitter::Variable;

  // An enclosing loop: its body's scope, the number of its stores, the buffers that they write, and
  // the invariant values it needs, by expression and constants.
  struct Loop {
    int scope;
    llvm::Instruction* preheader;
    int stores = 0;
    std::set<ir::BufferId> written;
    std::map<std::pair<ir::ExprId, std::vector<int64_t>>, llvm::Value*> invariants;
    std::map<llvm::Value*, llvm::Value*> splats;  // of invariants, by their scalars
  };
  // The dependencies of an expression.
  struct Uses {
    // Whether the value, and every node of it except loads and their indices, is a float. Others
    // are not worth hoisting.
    bool floating = true;
    std::vector<ir::AtomId> vars;  // loop variables
    std::vector<ir::BufferId> buffers;
  };

  absl::StatusOr<llvm::Value*> EmitNew(ir::ExprId id, llvm::Value* mask);
  // Emits an operation whose operands, of type `operand`, are known.
  absl::StatusOr<llvm::Value*> EmitOp(ir::Op op, ir::DType operand, ir::DType result,
                                      llvm::Value* a, llvm::Value* b);
  // Returns the outermost enclosing loop in which a loaded or computed float is invariant; nullptr
  // if there is none, or if its loads could leave the buffers before the loop's conditions are
  // checked. Loops with other stores do not count, during which the value would occupy a register.
  Loop* InvariantLoop(ir::ExprId id);
  absl::StatusOr<llvm::Value*> EmitInvariant(ir::ExprId id, Loop& loop);
  const Uses& UsesOf(ir::ExprId id);
  // Converts a scalar to a vector if there are lanes; an invariant before its loop.
  llvm::Value* Widen(llvm::Value* value);
  // Converts the values to vectors if one of them is a vector.
  void Unify(std::initializer_list<llvm::Value**> values);

  FunctionContext& f_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  MathBuilder math_;
  std::vector<Loop> loops_;  // enclosing, the innermost last
  std::map<ir::ExprId, Uses> uses_;
  std::vector<std::pair<ir::ExprId, llvm::Value*>> emitted_;  // by the current statement
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_EXPR_EMITTER_H_
