#ifndef HONE_TESTS_ORACLES_LAUNCH_INTERPRETER_H_
#define HONE_TESTS_ORACLES_LAUNCH_INTERPRETER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/ir/dtype.h"
#include "tests/oracles/interpreter.h"
#include "tests/oracles/memory_model.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

using Tuple = absl::InlinedVector<ir::Scalar, 2>;  // one value per output of a store

// Interprets statements for one thread, with the current values of the loop variables.
class ThreadInterpreter {
 public:
  virtual ~ThreadInterpreter() = default;

  // Runs a statement without barriers and shuffles.
  virtual absl::Status Run(StmtId id) = 0;
  // The values of a shuffle, and a shuffle that got these values.
  virtual absl::StatusOr<Tuple> ValuesOf(StmtId shuffle) = 0;
  virtual absl::Status Write(StmtId shuffle, const Tuple& values) = 0;
};

// Runs the blocks and threads of one launch for the interpreter. Each thread runs up to the next
// barrier or shuffle before the next thread runs.
class LaunchInterpreter {
 public:
  // `vars` holds the values of all loop variables, which `thread` uses on `memory`.
  LaunchInterpreter(const LoweredProgram& program, ThreadOrder order, std::vector<int64_t>& vars,
                    MemoryModel& memory, ThreadInterpreter& thread)
      : p_(program), order_(order), vars_(vars), memory_(memory), thread_(thread) {}

  // FailedPrecondition: only some threads of a block would wait at a barrier or take part in a
  // shuffle, or a shuffle reaches beyond a sub-group. Errors of `thread`.
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
  // Lets all threads exchange values.
  absl::Status RunShuffle(StmtId id, int64_t threads);
  // Calls `run` with the number of each thread, in some order, and with its variables set.
  absl::Status ForEachThread(int64_t threads, absl::FunctionRef<absl::Status(int64_t)> run);

  const LoweredProgram& p_;
  ThreadOrder order_;
  std::vector<int64_t>& vars_;
  MemoryModel& memory_;
  ThreadInterpreter& thread_;
  Rng rng_{1};  // for kShuffled
  std::vector<ThreadVar> thread_vars_;
  std::vector<Piece> pieces_;                          // until the next barrier
  std::vector<std::pair<ir::AtomId, int64_t>> outer_;  // variables of the loops around them
};

}  // namespace hone::lower

#endif  // HONE_TESTS_ORACLES_LAUNCH_INTERPRETER_H_
