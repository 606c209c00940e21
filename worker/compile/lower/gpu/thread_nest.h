#ifndef HONE_WORKER_COMPILE_LOWER_GPU_THREAD_NEST_H_
#define HONE_WORKER_COMPILE_LOWER_GPU_THREAD_NEST_H_

#include <array>
#include <vector>

#include "common/ir/program.h"

// Facts about the loops of a launch that SinkSerialLoops and InsertBarriers use.
namespace hone::lower {

// 0, 1 or 2 for x, y or z.
int Dimension(ir::ThreadAxis axis);

inline bool IsBoundTo(const ir::Program& program, ir::NodeId id, bool (*kind)(ir::ThreadAxis)) {
  return program.IsLoop(id) && program.node(id).loop == ir::LoopKind::kBound &&
         kind(program.node(id).axis);
}
// Whether a loop inside this node, or the node itself if `self`, is bound to an axis of threads.
bool HasThreadLoop(const ir::Program& program, ir::NodeId id, bool self);

// Whether a single thread runs these blocks in an iteration of the loop, because no loop over
// threads is inside that loop.
bool IsWithinThread(const ir::Program& program, const std::vector<ir::NodeId>& blocks,
                    ir::NodeId loop);

// The thread loops of a launch after SinkSerialLoops: the variable of each axis, or kNoAtom if the
// launch has one thread along it.
struct ThreadVars {
  std::array<ir::AtomId, 3> vars = {ir::kNoAtom, ir::kNoAtom, ir::kNoAtom};
  ir::NodeId innermost = ir::kNoNode;  // the loop whose children are the thread program
  bool Contains(ir::AtomId var) const { return var == vars[0] || var == vars[1] || var == vars[2]; }
};
ThreadVars ThreadVarsOf(const ir::Program& program, ir::NodeId kernel);

// An access of a block to a buffer, as indices over the loops.
struct Access {
  ir::NodeId block;
  bool writes;   // also true for an update of a reduction, which reads as well
  bool gathers;  // one of the indices is computed
  ir::IndexList indices;
};
std::vector<Access> AccessesOf(ir::Program& program, ir::NodeId scope, ir::BufferId buffer);

// How a buffer's indices in one dimension depend on threads: index = low + thread + high, where
// 0 <= low < unit, `thread` is a sum over thread variables whose coefficients are multiples of
// `unit`, and `high` is a multiple of `period`, which exceeds low + thread.
struct Digits {
  ir::Index thread;
  int64_t unit = 1;
  int64_t period = 1;
};

// If each element of a buffer is accessed by only one thread in all statements, returns the digits
// of every dimension (a dimension that does not depend on the thread has an empty `thread`). Empty
// if this cannot be proved.
std::vector<Digits> OwnersOf(const ir::Program& program, const ThreadVars& threads,
                             const std::vector<Access>& accesses);

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_GPU_THREAD_NEST_H_
