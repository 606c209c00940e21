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
  bool captures = false;  // uses variables of loops around it
};

// What the functions of one module share.
struct ModuleState {
  lower::LoweredProgram program;  // a copy: emission adds expressions
  llvm::Module* module = nullptr;
  const target::Target* target = nullptr;
  int64_t stores = 0;      // statements emitted so far
  int64_t operations = 0;  // of their expressions
  int parallel_bodies = 0;
  ParallelBody last_parallel;
  // Slots of the context that every function gets: buffers, packed constants, workspace, then
  // captured loop variables.
  int PackedSlot() const { return program.arguments; }
  int WorkspaceSlot() const { return program.arguments + 1; }
  int CaptureSlot() const { return program.arguments + 2; }
};
inline constexpr int kMaxCaptures = 32;

// Emits statements into one LLVM function. Loops that are static become straight code; the
// variables of runtime loops are SSA values, and each part of an address is computed at the loop
// that its variables belong to, once. Accumulators are stack slots that the promotion pass turns
// into registers.
class FunctionEmitter {
 public:
  // Emits void(ptr context) with the whole statement.
  static absl::StatusOr<llvm::Function*> EmitKernel(ModuleState& state, const std::string& name,
                                                    lower::StmtId body);

 private:
  using Index = ir::Index;

  // A loop variable as it is known here.
  struct Variable {
    enum class Kind : uint8_t { kUnset, kConstant, kRuntime, kLane } kind = Kind::kUnset;
    int64_t constant = 0;
    llvm::Value* value = nullptr;
    int depth = 0;  // scope where a runtime value lives
  };
  // A stretch of code that dominates what is emitted inside it.
  struct Scope {
    llvm::Instruction* insert_before;  // where hoisted values go
    std::vector<std::pair<Index, llvm::Value*>> values;
    // Of a loop's body: the end of what precedes the loop, what the loop writes, and what it needs
    // of values that no iteration changes, by expression and constants.
    llvm::Instruction* preheader = nullptr;
    std::set<ir::BufferId> written;
    std::map<std::pair<ir::ExprId, std::vector<int64_t>>, llvm::Value*> invariants;
  };
  // What an expression depends on.
  struct Uses {
    bool floating = true;          // every node, but for loads' indices; false: not worth it
    std::vector<ir::AtomId> vars;  // of loops
    std::vector<ir::BufferId> buffers;
  };
  // An index split by what is known: Σ runtime (a value) + constant + lane·i, or a vector of values
  // when lanes are irregular.
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

  // Stores of one element that all lanes are combined to.
  bool ReducesLanes(const lower::Stmt& store) const;
  absl::Status EmitLaneReduction(lower::StmtId id, const lower::Stmt& store, llvm::Value* mask);

  // Steps of a reduction through a tile of accumulators.
  bool StepsThroughTile(const lower::Stmt& loop) const;
  void SeparateSteps();

  // Hints to the caches.
  void PrefetchAhead(ir::BufferId buffer, const Index& offset, int64_t bytes);
  // What is known of an address: at least this many bytes divide it.
  llvm::Align AlignmentOf(const Split& split, int64_t element_bytes) const;
  // Lets a store of the statement at hand pass the caches, if that is asked for and its place is
  // aligned to its size.
  void PassCaches(llvm::StoreInst* store, const Split& split, int64_t element_bytes);
  void Fence();

  // Stores that one instruction computes.
  struct Operand {
    ir::BufferId buffer;
    Index offset;
  };
  absl::Status EmitIntrinsic(lower::StmtId id, const lower::Stmt& store, llvm::Value* mask);
  absl::Status EmitDot(lower::StmtId id, const lower::Stmt& store, std::vector<Operand>& operands);
  absl::Status EmitTile(const lower::Stmt& store, std::vector<Operand>& operands);
  // How far an offset moves when a variable of the nest, now 0, takes a value.
  int64_t StepOf(const Index& offset, ir::AtomId var, int64_t value);

  // Values are of ValueType, or scalar where all lanes agree.
  absl::StatusOr<llvm::Value*> EmitExpr(ir::ExprId id, llvm::Value* mask);
  absl::StatusOr<llvm::Value*> EmitNewExpr(ir::ExprId id, llvm::Value* mask);
  // The outermost loop around, as its scope, in which a float that is loaded or computed from loads
  // is the same in every iteration; -1: none, or what it loads may lie outside the buffers before
  // the loop's conditions.
  int InvariantScope(ir::ExprId id);
  absl::StatusOr<llvm::Value*> EmitInvariant(ir::ExprId id, int scope);
  const Uses& UsesOf(ir::ExprId id);
  // Tells the innermost scope that it is a loop's body.
  void EnterLoop(llvm::Instruction* preheader, lower::StmtId body);
  absl::StatusOr<llvm::Value*> EmitLoad(const ir::Expr& load, llvm::Value* mask);
  absl::StatusOr<llvm::Value*> EmitOp(const ir::Expr& expr, llvm::Value* a, llvm::Value* b);
  absl::Status StoreTo(ir::BufferId buffer, const Index& offset, llvm::Value* value,
                       llvm::Value* mask);
  // Memory forms of all lanes, at `stride` elements from each other.
  llvm::Value* LoadLanes(ir::BufferId buffer, Split split, llvm::Type* scalar, llvm::Align align);
  llvm::Value* LanePointers(ir::BufferId buffer, const Index& offset, const Split& split);

  // The distance of each lane's element from `base`, where that is known for an irregular index.
  std::optional<std::vector<int64_t>> LaneTable(const Index& offset, Split& base);
  // Lanes that take turns among two or four rows of small integers; nullptr: they do not. (Words
  // are little endian.)
  llvm::Value* LoadInterleaved(ir::BufferId buffer, const Index& offset, llvm::IntegerType* scalar);

  Split SplitIndex(const Index& original);
  // The runtime part as an i64; nullptr when it is 0. Hoisted to the scopes of its variables.
  llvm::Value* RuntimeValue(const Index& runtime);
  llvm::Value* AtomValue(ir::AtomId atom);
  int DepthOf(ir::AtomId atom) const;
  llvm::Value* ScalarIndex(const Index& index);  // REQUIRES no lane
  llvm::Value* VectorIndex(
      const Index& index);  // <lanes x i32> where every value fits, else <lanes x i64>
  llvm::Value* VectorIndexIn(const Index& index, llvm::Type* integer);
  bool FitsInt32(const Index& index) const;  // with room: below 2^30
  llvm::Value* Address(ir::BufferId buffer, const Split& split);
  llvm::Value* BasePointer(ir::BufferId buffer);
  llvm::AllocaInst* RegisterSlot(ir::BufferId buffer, int64_t offset);
  llvm::Value* StoreContextSlot(int slot, llvm::Value* value);

  llvm::Type* ValueType(ir::DType dtype) {
    return Conversion::Lanes(convert_.ValueType(dtype), lanes_);
  }
  llvm::Value* Widen(llvm::Value* value);  // to a vector when there are lanes
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
    ir::AtomId var;    // of the loop that asks for it
    int64_t distance;  // in its iterations
    std::set<std::tuple<ir::BufferId, std::string, int64_t>>
        lines;  // asked for: runtime part, number of the line
  };
  std::vector<Prefetch> prefetches_;  // of the loops around
  bool nontemporal_ = false;          // the statement at hand asks for it
  bool unfenced_ = false;             // stores that passed the caches since the last fence
  int64_t lanes_ = 0;                 // 0: outside a vectorized loop
  std::map<ir::ExprId, Uses> uses_;
  std::map<lower::StmtId, absl::InlinedVector<ir::ExprId, 2>> combined_;
  std::vector<std::pair<ir::ExprId, llvm::Value*>>
      emitted_;  // by the statement at hand: shared expressions are emitted once
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_FUNCTION_EMITTER_H_
