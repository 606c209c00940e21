#ifndef HONE_COMMON_LOWER_GPU_GPU_PASSES_H_
#define HONE_COMMON_LOWER_GPU_GPU_PASSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/program.h"

// Passes that turn a scheduled program with bound loops into one whose kernels are what a single
// thread of a GPU runs. The remaining passes of Lower then see code of one thread.
namespace hone::lower {

// Makes each nest of a kernel a kernel of its own, which becomes one launch. The kernels keep their
// order and get distinct names.
ir::Program SplitLaunches(const ir::Program& program);

inline constexpr int kNoPhase = -1;

// A program whose kernels are what one thread runs. A phase is a piece of it that needs no barrier
// inside, because it was the body of loops over threads.
struct ThreadProgram {
  ir::Program program;
  int phases = 0;
  std::vector<int> phase_of;  // per node: its phase if it is a topmost node of one, else kNoPhase
};

// Shrinks the buffers of each launch to what its threads share at a time, then moves serial loops
// into the thread program: the loops of a kernel become, from the outside, one loop per axis of
// blocks, one per axis of threads, and the code of a thread. Nests that were not bound to an axis
// run on its first thread. vthread loops become unrolled loops.
//
// On return, the scope of a buffer says where it is: kLocal if each thread needs only its own
// elements, kShared if the threads of a block exchange elements, kGlobal if several launches or
// blocks use it or if it was computed ahead of time.
// InvalidArgument: a loop over blocks is inside another loop, blocks exchange elements, or loops of
// one axis have different extents.
absl::StatusOr<ThreadProgram> SinkSerialLoops(const ir::Program& program);

// Puts a barrier between two accesses to an element that the threads of a block exchange, where at
// least one of them is a write and no barrier is between them yet. REQUIRES SinkSerialLoops.
void InsertBarriers(ir::Program& program);

// The program after all of the above.
absl::StatusOr<ir::Program> MapThreads(const ir::Program& program);

}  // namespace hone::lower

#endif  // HONE_COMMON_LOWER_GPU_GPU_PASSES_H_
