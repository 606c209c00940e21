#ifndef HONE_WORKER_COMPILE_LLVM_TILE_EMITTER_H_
#define HONE_WORKER_COMPILE_LLVM_TILE_EMITTER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/intrinsic.h"
#include "worker/compile/llvm/index_emitter.h"
#include "worker/compile/llvm/machine.h"
#include "worker/compile/llvm/memory_emitter.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Whether an instruction of the shape kTile computes a store.
bool IsTileStore(const lower::Stmt& store);

// Emits such stores. The sums of a nest that consists of one of them are loaded into tile registers
// before the nest and stored after it. If the statement before the nest sets them to zero, they are
// neither loaded nor set to zero in memory.
class TileEmitter {
 public:
  TileEmitter(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory)
      : f_(f), index_(index), memory_(memory) {}

  // Begins a nest, unless one has begun. Returns false if the statement is something else, or if
  // its sums do not fit into the registers; their part in an inner loop may fit. `init` is the
  // statement before the nest, which must not be emitted if the result is true; or kNoStmt.
  absl::StatusOr<bool> Enter(lower::StmtId nest, lower::StmtId init);
  void Leave();

  // The values of the sums at the begin of a loop inside the nest.
  struct Loop {
    std::vector<llvm::Value*> before;
    std::vector<llvm::PHINode*> phis;
  };
  // Called at the begin of the loop's body, which the block `before` enters.
  Loop BeginLoop(llvm::BasicBlock* before);
  // Called at the end of the body.
  void EndLoop(const Loop& loop);
  // Called behind the loop. `latch` ends the body; `before` may also have skipped it.
  void AfterLoop(const Loop& loop, llvm::BasicBlock* before, llvm::BasicBlock* latch);

  // Emits one store: that of the current nest, one under a condition, or one that sets a tile to
  // zero. Internal: the operands do not have the layout that the instruction needs.
  absl::Status EmitStore(const lower::Stmt& store);
  // Another statement may write to the memory of tiles that have been loaded.
  void Forget() { loaded_.clear(); }

 private:
  // The memory of an operand.
  struct Place {
    ir::BufferId buffer = 0;
    IndexEmitter::Split at;
    TileMemory memory = {};
    llvm::Value* value = nullptr;  // the tile in a register

    bool Matches(const Place& other) const {
      return buffer == other.buffer && at.constant == other.at.constant &&
             at.runtime == other.at.runtime && memory.stride == other.memory.stride &&
             memory.rows == other.memory.rows && memory.row_bytes == other.memory.row_bytes;
    }
  };
  struct Operands {
    Place left, right;
  };

  // Returns the store if the statement is a nest of serial and unrolled loops with one tile store,
  // which is unconditional; otherwise nullptr.
  const lower::Stmt* StoreOf(lower::StmtId nest) const;
  // Adds the places that the nest of a store updates, each once.
  absl::Status CollectSums(lower::StmtId nest, std::vector<Place>& sums);
  // Returns a tile of `rows` rows of `row_elements` elements. The rows are as far apart as setting
  // `var` to `step` moves the offset. REQUIRES: the variables of the tile are 0.
  absl::StatusOr<Place> PlaceOf(const lower::Stmt& store, ir::BufferId buffer,
                                const ir::Index& offset, ir::AtomId var, int64_t step, int64_t rows,
                                int64_t row_elements);
  absl::StatusOr<Place> SumOf(const lower::Stmt& store);
  absl::StatusOr<Operands> OperandsOf(const lower::Stmt& store);
  void StoreSum(const Place& sum, const TileCode& code);
  // Returns the tile at a place, from a register if it is there.
  llvm::Value* Load(const Place& place, const TileCode& code);
  // Keeps so few loaded tiles that they and the sums fit into the registers.
  void LimitLoaded(const TileCode& code);

  FunctionContext& f_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  const TileCode* code_ = nullptr;  // of the current nest; nullptr: none
  std::vector<Place> sums_;         // of the current nest
  std::vector<Place> loaded_;       // in the block `loaded_in_`, the latest use last
  llvm::BasicBlock* loaded_in_ = nullptr;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_TILE_EMITTER_H_
