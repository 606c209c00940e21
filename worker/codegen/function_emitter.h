#ifndef HONE_WORKER_CODEGEN_FUNCTION_EMITTER_H_
#define HONE_WORKER_CODEGEN_FUNCTION_EMITTER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/lower/lowered.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "worker/codegen/conversion.h"
#include "worker/codegen/vector_math/vector_math.h"

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
  int64_t stores = 0;      // statements emitted so far
  int64_t operations = 0;  // in their expressions
  int parallel_bodies = 0;
  ParallelBody last_parallel;
  // Slots of the context that every function receives: buffers, packed constants, workspace, then
  // captured loop variables.
  int PackedSlot() const { return program.arguments; }
  int WorkspaceSlot() const { return program.arguments + 1; }
  int CaptureSlot() const { return program.arguments + 2; }
};
inline constexpr int kMaxCaptures = 32;

// Emits statements into one LLVM function. Static loops become straight-line code. The variables of
// runtime loops are SSA values, and each part of an address is computed once, at the loop of its
// variables. Accumulators are stack slots that the promotion pass turns into registers.
class FunctionEmitter {
 public:
  // Emits void(ptr context) with the whole statement.
  static absl::StatusOr<llvm::Function*> EmitKernel(ModuleState& state, const std::string& name,
                                                    lower::StmtId body);

 private:
  using Index = ir::Index;

  // The current value of a loop variable.
  struct Variable {
    enum class Kind : uint8_t { kUnset, kConstant, kRuntime, kLane } kind = Kind::kUnset;
    int64_t constant = 0;
    llvm::Value* value = nullptr;
    int depth = 0;  // scope where a runtime value lives
  };
  // A region of code that dominates what is emitted inside it.
  struct Scope {
    llvm::Instruction* insert_before;  // position for hoisted values
    std::vector<std::pair<Index, llvm::Value*>> values;
    // For a loop's body: the end of the code before the loop, the buffers that the loop writes, and
    // the loop-invariant values it needs, by expression and constants.
    llvm::Instruction* preheader = nullptr;
    std::set<ir::BufferId> written;
    std::map<std::pair<ir::ExprId, std::vector<int64_t>>, llvm::Value*> invariants;
  };
  // What an expression depends on.
  struct Uses {
    bool floating = true;          // every node except loads' indices; false: not worth hoisting
    std::vector<ir::AtomId> vars;  // loop variables
    std::vector<ir::BufferId> buffers;
  };
  // A split index: Σ runtime (a value) + constant + lane·i, or a vector of values if lanes are
  // irregular.
  struct Split {
    Index runtime;  // terms over runtime variables, no constant
    int64_t constant = 0;
    int64_t lane = 0;
    bool irregular = false;
  };

  explicit FunctionEmitter(ModuleState& state);

  llvm::Function* Begin(const std::string& name, bool body);
  void End();
  void PushScope();
  void PopScope() { scopes_.pop_back(); }

  absl::Status Emit(lower::StmtId id);
  absl::Status EmitFor(const lower::Stmt& loop);
  absl::Status EmitSerial(const lower::Stmt& loop);
  absl::Status EmitParallel(const lower::Stmt& loop);
  absl::Status EmitIf(const lower::Stmt& branch);
  absl::Status EmitStore(lower::StmtId id);
  absl::Status EmitStoreUnder(lower::StmtId id, const lower::Stmt& store, llvm::Value* mask);

  // Whether the store combines all lanes into one element.
  bool ReducesLanes(const lower::Stmt& store) const;
  absl::Status EmitLaneReduction(lower::StmtId id, const lower::Stmt& store, llvm::Value* mask);

  // Reduction steps over a tile of accumulators.
  bool StepsThroughTile(const lower::Stmt& loop) const;
  void SeparateSteps();

  // Cache hints.
  void PrefetchAhead(ir::BufferId buffer, const Index& offset, int64_t bytes);
  // Returns the known alignment of an address.
  llvm::Align AlignmentOf(const Split& split, int64_t element_bytes) const;
  // Makes a store of the current statement non-temporal, if the statement asks for it and the
  // address is aligned to its size.
  void PassCaches(llvm::StoreInst* store, const Split& split, int64_t element_bytes);
  void Fence();

  // Stores that are computed by one instruction.
  struct Operand {
    ir::BufferId buffer;
    Index offset;
  };
  absl::Status EmitIntrinsic(lower::StmtId id, const lower::Stmt& store, llvm::Value* mask);
  absl::Status EmitDot(lower::StmtId id, const lower::Stmt& store, std::vector<Operand>& operands);
  absl::Status EmitTile(const lower::Stmt& store, std::vector<Operand>& operands);
  // Returns how far an offset moves when a variable of the nest changes from 0 to `value`.
  int64_t StepOf(const Index& offset, ir::AtomId var, int64_t value);

  // Values are of ValueType, or scalar if all lanes agree.
  absl::StatusOr<llvm::Value*> EmitExpr(ir::ExprId id, llvm::Value* mask);
  absl::StatusOr<llvm::Value*> EmitNewExpr(ir::ExprId id, llvm::Value* mask);
  // Returns the outermost enclosing loop, as its scope, in which a loaded or computed float is
  // invariant. Returns -1 if there is none, or if its loads could leave the buffers before the
  // loop's conditions are checked.
  int InvariantScope(ir::ExprId id);
  absl::StatusOr<llvm::Value*> EmitInvariant(ir::ExprId id, int scope);
  const Uses& UsesOf(ir::ExprId id);
  // Marks the innermost scope as a loop's body.
  void EnterLoop(llvm::Instruction* preheader, lower::StmtId body);
  absl::StatusOr<llvm::Value*> EmitLoad(const ir::Expr& load, llvm::Value* mask);
  absl::StatusOr<llvm::Value*> EmitOp(const ir::Expr& expr, llvm::Value* a, llvm::Value* b);
  absl::Status StoreTo(ir::BufferId buffer, const Index& offset, llvm::Value* value,
                       llvm::Value* mask);
  // Memory forms of all lanes, `stride` elements apart.
  llvm::Value* LoadLanes(ir::BufferId buffer, Split split, llvm::Type* scalar, llvm::Align align);
  llvm::Value* LanePointers(ir::BufferId buffer, const Index& offset, const Split& split);

  // Returns the distance of each lane's element from `base`, if it is known for an irregular index.
  std::optional<std::vector<int64_t>> LaneTable(const Index& offset, Split& base);
  // Loads lanes that alternate among two or four rows of small integers; nullptr if they do not.
  // Words are little-endian.
  llvm::Value* LoadInterleaved(ir::BufferId buffer, const Index& offset, llvm::IntegerType* scalar);

  Split SplitIndex(const Index& original);
  // Returns the runtime part as an i64, hoisted to the scopes of its variables; nullptr if it is 0.
  llvm::Value* RuntimeValue(const Index& runtime);
  llvm::Value* AtomValue(ir::AtomId atom);
  int DepthOf(ir::AtomId atom) const;
  llvm::Value* ScalarIndex(const Index& index);  // REQUIRES: no lanes
  llvm::Value* VectorIndex(
      const Index& index);  // <lanes x i32> if every value fits, else <lanes x i64>
  llvm::Value* VectorIndexIn(const Index& index, llvm::Type* integer);
  bool FitsInt32(const Index& index) const;  // with a margin: below 2^30
  llvm::Value* Address(ir::BufferId buffer, const Split& split);
  llvm::Value* BasePointer(ir::BufferId buffer);
  llvm::AllocaInst* RegisterSlot(ir::BufferId buffer, int64_t offset);
  llvm::Value* StoreContextSlot(int slot, llvm::Value* value);

  llvm::Type* ValueType(ir::DType dtype) {
    return Conversion::Lanes(convert_.ValueType(dtype), lanes_);
  }
  llvm::Value* Widen(llvm::Value* value);  // to a vector if there are lanes
  llvm::Value* I64(int64_t value) { return builder_.getInt64(value); }

  ModuleState& state_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
  Conversion convert_;
  VectorMath math_;
  llvm::Function* function_ = nullptr;
  llvm::Value* context_argument_ = nullptr;
  llvm::Value* thread_ = nullptr;
  std::vector<Variable> variables_;
  std::vector<Scope> scopes_;
  std::map<ir::BufferId, llvm::Value*> bases_;
  std::map<std::pair<ir::BufferId, int64_t>, llvm::AllocaInst*> registers_;
  struct Prefetch {
    ir::AtomId var;    // of the loop that prefetches
    int64_t distance;  // in its iterations
    std::set<std::tuple<ir::BufferId, std::string, int64_t>>
        lines;  // already prefetched: runtime part, line number
  };
  std::vector<Prefetch> prefetches_;  // of the enclosing loops
  bool nontemporal_ = false;          // whether the current statement asks for it
  bool unfenced_ = false;             // non-temporal stores were emitted since the last fence
  int64_t lanes_ = 0;                 // 0: outside a vectorized loop
  std::map<ir::ExprId, Uses> uses_;
  std::map<lower::StmtId, absl::InlinedVector<ir::ExprId, 2>> combined_;
  std::vector<std::pair<ir::ExprId, llvm::Value*>>
      emitted_;  // by the current statement; shared expressions are emitted once
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_FUNCTION_EMITTER_H_
