#ifndef HONE_WORKER_COMPILE_LLVM_INDEX_EMITTER_H_
#define HONE_WORKER_COMPILE_LLVM_INDEX_EMITTER_H_

#include <optional>
#include <utility>
#include <vector>

#include "worker/compile/llvm/function_context.h"

namespace hone::codegen {

// Emits the values of indices. Keeps the values of the loop variables and the scopes around the
// current statement. Each part of an index is computed once, in the outermost scope in which all
// its variables are defined.
class IndexEmitter {
 public:
  // The current value of a loop variable.
  struct Variable {
    enum class Kind : uint8_t { kUnset, kConstant, kRuntime, kLane } kind = Kind::kUnset;
    int64_t constant = 0;
    llvm::Value* value = nullptr;
    int depth = 0;  // scope where a runtime value lives
  };
  // A split index: Σ runtime (a value) + constant + lane·i, or a vector of values if lanes are
  // irregular.
  struct Split {
    ir::Index runtime;  // terms over runtime variables, no constant
    int64_t constant = 0;
    int64_t lane = 0;
    bool irregular = false;
    bool is_uniform() const { return lane == 0 && !irregular; }
  };

  explicit IndexEmitter(FunctionContext& f) : f_(f), variables_(f.state.program.atoms.size()) {}

  const std::vector<Variable>& variables() const { return variables_; }
  const Variable& operator[](ir::AtomId var) const { return variables_[var]; }
  void Set(ir::AtomId var, Variable variable) { variables_[var] = variable; }
  void SetConstant(ir::AtomId var, int64_t value) {
    variables_[var] = {Variable::Kind::kConstant, value};
  }
  // A value that is computed in the innermost scope.
  void SetRuntime(ir::AtomId var, llvm::Value* value) {
    variables_[var] = {Variable::Kind::kRuntime, 0, value, depth()};
  }
  void Unset(ir::AtomId var) { variables_[var] = {}; }

  // A scope is a region of code that dominates what is emitted inside it.
  void PushScope();
  void PopScope() { scopes_.pop_back(); }
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  // The insertion point for values that the whole function uses.
  llvm::Instruction* outermost() const { return scopes_[0].insert_before; }

  Split SplitOf(const ir::Index& index);
  // Returns how far an index moves when a variable changes from 0 to `value`. REQUIRES: the
  // variable is the constant 0.
  int64_t StepOf(const ir::Index& index, ir::AtomId var, int64_t value);
  // Returns the runtime part as an i64, hoisted to the scopes of its variables; nullptr if it is 0.
  llvm::Value* RuntimeValue(const ir::Index& runtime);
  // Returns the value of an index without lanes.
  llvm::Value* Scalar(const ir::Index& index);
  // Returns <lanes x i32> if every value fits, else <lanes x i64>.
  llvm::Value* Vector(const ir::Index& index);
  // Returns the distance of each lane's index from `base`, if it is known for an irregular index.
  std::optional<std::vector<int64_t>> LaneTable(const ir::Index& index, Split& base);

 private:
  struct Scope {
    llvm::Instruction* insert_before;  // position for hoisted values
    std::vector<std::pair<ir::Index, llvm::Value*>> values;
  };
  int DepthOf(ir::AtomId atom) const;
  llvm::Value* AtomValue(ir::AtomId atom);
  // Returns the value of a floordiv or mod.
  llvm::Value* Quotient(const ir::Atom& atom, llvm::Value* argument, llvm::Value* divisor);
  bool FitsInt32(const ir::Index& index) const;  // with a margin: below 2^30
  llvm::Value* VectorIn(const ir::Index& index, llvm::Type* integer);

  FunctionContext& f_;
  std::vector<Variable> variables_;
  std::vector<Scope> scopes_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_INDEX_EMITTER_H_
