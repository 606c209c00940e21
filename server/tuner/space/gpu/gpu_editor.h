#ifndef HONE_SERVER_TUNER_SPACE_GPU_GPU_EDITOR_H_
#define HONE_SERVER_TUNER_SPACE_GPU_GPU_EDITOR_H_

#include <cstdint>
#include <vector>

#include "common/ir/program.h"
#include "common/schedule/trace.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

// Writes the schedule of a kernel for a GPU: loops over blocks outermost, then serial loops, then
// phases, i.e. sibling nests of loops over the same threads.
class GpuEditor : public SketchEditor {
 public:
  using SketchEditor::SketchEditor;

  // Returns the loops over blocks: the loops `outer`, which have `points` iterations, fused, then
  // those of `inner`. If `points` exceeds `limit`, the maximum of a grid's y and z axes, all loops
  // are fused. REQUIRES: the loops are nested in this order, and at most 2 are in `inner`.
  Operands Grid(const Operands& outer, int64_t points, const Operands& inner, int64_t limit);
  // Binds up to 3 loops, outermost first, to blockIdx.z, y and x; the last one is always x.
  void BindBlocks(const Operands& loops);
  // Binds loops to threadIdx.z, y and x in the same way.
  void BindThreads(const Operands& loops);
  // Vectorizes the last loop and unrolls the others.
  void Unroll(const Operands& loops);
  void Vectorize(const Operand& loop) { Add("vectorize", {loop}); }

  // Divides a phase among threads. Of the `loops` loops around the block, the innermost `rank` are
  // fused and split into threads (`threads`: their numbers, outermost first), a serial loop and
  // vectors of `vector` elements. Other loops may be inside of them (`inside`: their number).
  void Cooperate(const Operand& block, size_t loops, size_t rank, const Operands& threads,
                 const Operand& vector, size_t inside = 0);
};

// Schedules a nest for a GPU without tiling: all results are divided among blocks and threads, and
// each thread computes a vector of them.
//   blockIdx.x | threadIdx.x | reductions | vector
// If `sampled`, the number of threads and the width are decisions; otherwise each block has 64
// threads, and each thread computes one result.
void ScheduleGpuNest(schedule::TraceBuilder& trace, const schedule::Operand& block_register,
                     const ir::Block& block, const GpuTileLimits& limits,
                     const std::vector<int64_t>& widths, bool sampled);

// Returns the vector widths that a nest may have: 1, and more if the block is contiguous along its
// last spatial axis and no condition depends on that axis.
std::vector<int64_t> NestWidths(const ir::Program& program, const ir::Block& block,
                                const GpuTileLimits& limits);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GPU_GPU_EDITOR_H_
