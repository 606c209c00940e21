#include "server/research/feature/touch.h"

namespace hone::feature {
namespace {

// Returns the level of a loop: 2 for GPU blocks, which contain threads; 1 for threads and CPU
// cores, which run serial code; otherwise 0.
int ParallelLevel(const NestLoop& loop) {
  switch (loop.axis) {
    case ir::ThreadAxis::kBlockX:
    case ir::ThreadAxis::kBlockY:
    case ir::ThreadAxis::kBlockZ:
      return 2;
    case ir::ThreadAxis::kThreadX:
    case ir::ThreadAxis::kThreadY:
    case ir::ThreadAxis::kThreadZ:
      return 1;
    case ir::ThreadAxis::kNone:
    case ir::ThreadAxis::kVThread:
      break;
  }
  return loop.kind == ir::LoopKind::kParallel ? 1 : 0;
}

}  // namespace

void TouchesOf(const Statement& statement, const Access& access,
               absl::InlinedVector<Touch, 24>& touches) {
  const int depth = static_cast<int>(statement.loops.size());
  touches.assign(depth, Touch());
  double count = 1, reuse = 1;
  for (int d = depth - 1; d >= 0; --d) {
    ((access.varies >> d & 1) != 0 ? count : reuse) *=
        static_cast<double>(statement.loops[d].extent);
    touches[d].count = count;
    touches[d].reuse = reuse;
  }
  // A loop of level n is compared with the outermost loop of level n - 1 directly inside a loop of
  // level n.
  for (int d = 0; d < depth; ++d) {
    const int level = ParallelLevel(statement.loops[d]);
    for (int inner = d + 1; inner < depth && level > 0; ++inner) {
      if (ParallelLevel(statement.loops[inner]) != level - 1 ||
          ParallelLevel(statement.loops[inner - 1]) != level)
        continue;
      touches[d].thread_count = touches[d].count / touches[inner].count;
      touches[d].thread_reuse = touches[d].reuse / touches[inner].reuse;
      break;
    }
  }
}

}  // namespace hone::feature
