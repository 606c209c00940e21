#ifndef HONE_COMMON_LOWER_GPU_LAUNCH_INTERPRETER_H_
#define HONE_COMMON_LOWER_GPU_LAUNCH_INTERPRETER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/lower/interpreter.h"
#include "common/lower/lowered.h"
#include "common/lower/memory_model.h"

namespace hone::lower {

// Runs the blocks and threads of one launch for the interpreter. Each thread runs up to the next
// barrier before the next thread runs.
class LaunchInterpreter {
 public:
  // `vars` holds the values of all loop variables. `run` interprets a statement without barriers
  // with these values, on `memory`.
  LaunchInterpreter(const LoweredProgram& program, ThreadOrder order, std::vector<int64_t>& vars,
                    MemoryModel& memory, absl::FunctionRef<absl::Status(StmtId)> run)
      : p_(program), order_(order), vars_(vars), memory_(memory), run_(run) {}

  // FailedPrecondition: only some threads of a block would wait at a barrier. Errors of `run`.
  absl::Status Run(const LoweredKernel& kernel);

 private:
  struct ThreadVar {
    ir::AtomId var;
    int64_t extent;
  };
  // A piece of the thread program without barriers, with the values of the loops around it.
  struct Piece {
    StmtId stmt;
    std::vector<std::pair<ir::AtomId, int64_t>> values;
  };

  // Sets the variables of loops to those of block or thread `number`.
  void SetVars(absl::Span<const ThreadVar> vars, int64_t number);
  // Follows the control flow around barriers, which is the same for all threads, and collects the
  // pieces between barriers.
  absl::Status WalkThreads(StmtId id, int64_t threads);
  // The value of an index that controls a loop or branch around a barrier.
  absl::StatusOr<int64_t> OfAllThreads(const ir::Index& index, int64_t threads);
  // Lets every thread run the pieces that were collected.
  absl::Status RunPieces(int64_t threads);
  void Shuffle(std::vector<int64_t>& order);

  const LoweredProgram& p_;
  ThreadOrder order_;
  std::vector<int64_t>& vars_;
  MemoryModel& memory_;
  absl::FunctionRef<absl::Status(StmtId)> run_;
  Rng rng_{1};  // for kShuffled
  std::vector<ThreadVar> thread_vars_;
  std::vector<Piece> pieces_;                          // until the next barrier
  std::vector<std::pair<ir::AtomId, int64_t>> outer_;  // variables of the loops around them
};

}  // namespace hone::lower

#endif  // HONE_COMMON_LOWER_GPU_LAUNCH_INTERPRETER_H_
