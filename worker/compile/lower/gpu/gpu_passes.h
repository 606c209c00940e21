#ifndef HONE_WORKER_COMPILE_LOWER_GPU_GPU_PASSES_H_
#define HONE_WORKER_COMPILE_LOWER_GPU_GPU_PASSES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/program.h"

// Passes that turn a scheduled program with bound loops into one whose kernels are the code of a
// single GPU thread. The remaining passes of Lower then see the code of one thread.
namespace hone::lower {

// Turns each nest into a separate kernel, which is launched once. The kernels keep their order and
// get distinct names.
ir::Program SplitLaunches(const ir::Program& program);

// Reductions over a loop of threads: each thread computes a partial result, and the threads combine
// them as a tree in shared memory, in log2(n) steps.
//   for tx in n: C += A[tx]  →  for tx: P[tx] += A[tx]; for tx: if tx < n / 2: P[tx] += P[tx + n /
//   2];
//                               …; for tx: if tx = 0: C = P[0]
// If n divides `shuffle_width` (target::ShuffleWidth) or is a multiple of it, the threads of a
// sub-group exchange values instead, and shared memory only holds one value of each sub-group:
//   for tx: Q[tx] = P[tx ^ 16]; P[tx] += Q[tx]; …
// This needs every thread of a sub-group. So a predicate that depends on the thread, or an axis of
// threads that only other nests of the launch have, leaves the tree in shared memory.
// InvalidArgument: a primitive after bind made a form that cannot be divided (fuse of spatial and
// reduction loops).
absl::Status ReduceThreads(ir::Program& program, int shuffle_width = 1);

// Runs copies ahead of their use: in a loop annotated as a software pipeline of n stages, and for
// blocks annotated as double-buffered (n = 2), copies to buffers that later nests of the same
// iteration read run n − 1 iterations ahead, into n alternating buffers. Threads then wait once per
// iteration, and wait less for memory.
//   for k: {S = A[k]; use S}  →  S[0] = A[0]; for k: {S[(k + 1) % 2] = A[k + 1]; use S[k % 2]}
void PipelineCopies(ir::Program& program);

// Adds dimensions to buffers that are private to each iteration of an outer thread loop but shared
// by the threads of loops inside it: one dimension for each of the outer loops.
void ExpandOverThreads(ir::Program& program);

inline constexpr int kNoPhase = -1;

// A program whose kernels are the code of one thread. A phase is a part that needs no barrier
// inside, because it was the body of loops over threads.
struct ThreadProgram {
  ir::Program program;
  // Per buffer: whether all of its uses were in one iteration of the loops over threads.
  std::vector<bool> within_thread;
  int phases = 0;
  std::vector<int> phase_of;  // per node: its phase if it is a topmost node of one, else kNoPhase
};

// Moves serial loops into the thread program: the loops of a kernel become, from the outside, one
// loop per axis of blocks, one per axis of threads, and the code of a thread. Nests that were not
// bound to an axis run on its first thread. vthread loops become unrolled loops. REQUIRES compact
// buffers. InvalidArgument: a loop over blocks is inside another loop, or loops of one axis have
// different extents.
absl::StatusOr<ThreadProgram> SinkSerialLoops(const ir::Program& program);

// Chooses the scope of every buffer: kLocal if each thread needs only its own elements, kShared if
// the threads of a block exchange elements, kGlobal if several launches use it or if it is computed
// ahead of time. Removes the thread variables from the indices of kLocal buffers.
// InvalidArgument: the private array of a thread would be too large.
absl::Status PlaceBuffers(ThreadProgram& threads);

// Puts a barrier between two accesses to an element that the threads of a block exchange, if at
// least one of them is a write and there is no barrier between them yet.
void InsertBarriers(ThreadProgram& threads);

// The program after all of the above.
absl::StatusOr<ir::Program> MapThreads(const ir::Program& program, int shuffle_width);

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_GPU_GPU_PASSES_H_
