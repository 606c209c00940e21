#ifndef HONE_COMMON_LOWER_MEMORY_MODEL_H_
#define HONE_COMMON_LOWER_MEMORY_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/scalar.h"
#include "common/lower/lowered.h"

namespace hone::lower {

// The elements of all buffers of a lowered program, for the interpreter. Remembers which task
// accessed an element: a task is an iteration of a parallel loop, or the serial code between two
// parallel loops. Before AssignStorage, every buffer has memory of its own that all tasks share,
// and races are not detected.
class MemoryModel {
 public:
  explicit MemoryModel(const LoweredProgram& program);

  int64_t ElementsOf(ir::BufferId buffer) const {
    return static_cast<int64_t>(buffers_[buffer].cells.size());
  }

  // A parallel loop begins, goes on with its next iteration, ends.
  void EnterParallel(int64_t iterations);
  void NextIteration() { ++task_; }
  void LeaveParallel();

  // REQUIRES an element of the buffer. FailedPrecondition: see Interpret().
  absl::StatusOr<ir::Scalar> Read(ir::BufferId buffer, int64_t element);
  // The unrounded partial result of a reduction.
  absl::StatusOr<ir::Scalar> ReadAccumulated(ir::BufferId buffer, int64_t element);
  absl::Status Write(ir::BufferId buffer, int64_t element, ir::Scalar value);
  // The same without rounding to the dtype.
  absl::Status Accumulate(ir::BufferId buffer, int64_t element, ir::Scalar value);

 private:
  struct Cell {
    ir::Scalar value;
    int64_t writer = 0;  // the task that wrote it last; 0: none
    int64_t reader = 0;  // a task that has read it, or end_task_ if several have
  };
  struct BufferMemory {
    bool is_private = false;  // to each task
    std::vector<Cell> cells;
    int region = -1;  // position in regions_, if buffers may share memory
    int64_t first_granule = 0;
    int64_t elements_per_granule = 1;
  };
  // The buffer that last wrote to each granule of a piece of memory that several buffers share. A
  // granule is kBufferAlignment bytes, so that buffers without common bytes have none in common.
  using Region = std::vector<ir::BufferId>;

  std::string NameOf(ir::BufferId buffer, int64_t element) const;
  // The granule's owner, or nullptr if the buffer shares no memory.
  ir::BufferId* OwnerOf(ir::BufferId buffer, int64_t element);
  bool IsOther(int64_t task) const { return task >= first_task_ && task != task_; }

  const LoweredProgram& program_;
  bool detects_races_;
  std::vector<BufferMemory> buffers_;
  std::vector<Region> regions_;
  int64_t task_ = 1;
  int64_t first_task_ = 1;  // of the current parallel loop or serial code
  int64_t end_task_ = 2;    // behind the last one
};

}  // namespace hone::lower

#endif  // HONE_COMMON_LOWER_MEMORY_MODEL_H_
