#ifndef HONE_TESTS_ORACLES_MEMORY_MODEL_H_
#define HONE_TESTS_ORACLES_MEMORY_MODEL_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/dtype.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// The elements of all buffers of a lowered program, for the interpreter. Remembers who accessed an
// element last, to find races and reads of elements that were not written.
//
// A block is an iteration of a parallel loop or a block of a GPU launch. Blocks run between
// EnterBlocks and LeaveBlocks, and no block may access what another one writes. The serial code in
// between counts as one block. The threads of a GPU block may read what others have written before
// the last barrier. Before AssignStorage, every buffer of a CPU program has its own memory, which
// all blocks share, and races are not detected.
class MemoryModel {
 public:
  explicit MemoryModel(const LoweredProgram& program);

  // The number of elements of a buffer; of one thread's part, if each thread has its own.
  int64_t ElementsOf(ir::BufferId buffer) const { return buffers_[buffer].elements; }

  // Begins the first of several blocks of `threads` threads; begins the next one; ends the last.
  void EnterBlocks(int64_t threads = 1);
  void NextBlock();
  void LeaveBlocks() { EnterBlocks(); }
  // The threads of the block wait for each other.
  void Barrier() { ++epoch_; }
  // Ends a group of the elements passed to MakeAsync; waits for all groups but the last `pending`
  // ones. The elements of a finished group count as written at the time of the wait.
  void CommitCopies() { copies_.emplace_back(); }
  void WaitForCopies(int64_t pending);
  bool HasUnfinishedCopies() const;
  // Sets the thread that makes the following accesses.
  void SetThread(int64_t thread) { thread_ = thread; }
  // Sets the store that makes the following accesses.
  void SetStore(StmtId store) { store_ = store; }
  // After a race was found: the store with which the last access raced, or kNoStmt if unknown.
  StmtId RacedWith() const { return raced_with_; }

  // REQUIRES an element of the buffer. FailedPrecondition: see Interpret().
  absl::StatusOr<ir::Scalar> Read(ir::BufferId buffer, int64_t element);
  // Reads the unrounded partial result of a reduction.
  absl::StatusOr<ir::Scalar> ReadAccumulated(ir::BufferId buffer, int64_t element);
  absl::Status Write(ir::BufferId buffer, int64_t element, ir::Scalar value);
  // Writes without rounding to the dtype.
  absl::Status Accumulate(ir::BufferId buffer, int64_t element, ir::Scalar value);
  // Makes the current thread's last write to an element of shared memory asynchronous. Accesses to
  // the element before the wait for it are errors.
  void MakeAsync(ir::BufferId buffer, int64_t element);

 private:
  static constexpr int64_t kSeveral = -1;

  // Who made an access: a thread of a block, between two barriers.
  struct Access {
    int64_t epoch = 0;   // 0: no access
    int64_t thread = 0;  // kSeveral: several threads in that epoch
    StmtId store = kNoStmt;
  };
  struct Cell {
    ir::Scalar value;
    Access writer, reader;      // the last ones
    int64_t foreign_epoch = 0;  // of the last read by a block other than that of `reader`
    bool unfinished = false;    // an asynchronous copy to it has not finished
  };
  enum class Owner : uint8_t { kAll, kBlock, kThread };  // who shares an element
  struct BufferMemory {
    Owner owner = Owner::kAll;
    int64_t elements = 0;
    std::vector<Cell> cells;  // for kThread on GPUs: one per element and thread
    int region = -1;          // position in regions_, if buffers may share memory
    int64_t first_granule = 0;
    int64_t elements_per_granule = 1;
  };
  // A granule of memory that several buffers share: kBufferAlignment bytes, so that buffers that do
  // not overlap have no granule in common. `owner` is the buffer that last wrote to it.
  struct Granule {
    ir::BufferId owner = -1;
    Access last;         // of the owner's elements, by any thread
    int unfinished = 0;  // asynchronous copies to the owner's elements
  };
  using Region = std::vector<Granule>;

  std::string NameOf(ir::BufferId buffer, int64_t element) const;
  Cell& CellOf(BufferMemory& memory, int64_t element);
  // nullptr if the buffer shares no memory.
  Granule* GranuleOf(ir::BufferId buffer, int64_t element);
  // Records an access by the current thread.
  void Note(Granule& granule);
  // Whether an access by the current thread races with `access`: nothing orders it after that one.
  bool IsConcurrent(const BufferMemory& memory, const Access& access) const;
  // Describes, for a message, who made an access that races with the current one. Sets raced_with_.
  absl::string_view Others(const Access& access);

  const LoweredProgram& program_;
  bool detects_races_;
  std::vector<BufferMemory> buffers_;
  std::vector<Region> regions_;
  // Elements of groups of asynchronous copies, the oldest first; the last one is not committed.
  using CopyGroup = std::vector<std::pair<ir::BufferId, int64_t>>;
  std::deque<CopyGroup> copies_ = std::deque<CopyGroup>(1);
  int64_t epoch_ = 1;
  int64_t first_of_blocks_ = 1;  // the first epoch of the blocks that may run at the same time
  int64_t first_of_block_ = 1;   // the first epoch of the current block
  int64_t threads_ = 1;
  int64_t thread_ = 0;
  StmtId store_ = kNoStmt;
  StmtId raced_with_ = kNoStmt;
};

}  // namespace hone::lower

#endif  // HONE_TESTS_ORACLES_MEMORY_MODEL_H_
