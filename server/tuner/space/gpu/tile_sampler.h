#ifndef HONE_SERVER_TUNER_SPACE_GPU_TILE_SAMPLER_H_
#define HONE_SERVER_TUNER_SPACE_GPU_TILE_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "server/tuner/space/contraction.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/gpu/shared_stage.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

// The contraction that gpu_multi_level_tiling tiles, and how.
struct GpuTileRequest {
  const ir::Program& program;
  const ir::Block& block;
  const Contraction& contraction;
  const GpuTileLimits& limits;
  ir::DType dtype;    // of the result
  int height = -1;    // a second axis of rows, along threadIdx.z; -1: none
  bool wide = false;  // each thread computes a large tile, see CanBeWide
  int64_t terms = 1;  // how many terms of the reduction an instruction adds

  int64_t Extent(int axis) const { return block.iters[axis].extent; }
};

// The sampled numbers that determine the tiles of a contraction.
struct GpuTile {
  using Operand = schedule::Operand;
  using Operands = std::vector<Operand>;

  Operands threads;  // outermost first; the last two are those along the rows and the vectors
  Operand vector_outer, vector_lanes, row_outer, row_inner;
  Operand height_inner;  // if there is a height
  Operands window_tiles;
  Operand reduce_steps, reduce_inner;
  Operand padding;  // of the rows of the copies, if one has rows

  const Operand& ThreadsX() const { return threads.back(); }
  const Operand& ThreadsY() const { return threads[threads.size() - 2]; }
};

// Whether each thread can compute a large tile, as in BLAS libraries.
bool CanBeWide(const GpuTileRequest& request);

// Samples a tile, and adds its constraints to the sketch. `stages`: the copies of the operands in
// shared memory, whose vector widths are sampled, too; empty if the operands are read from global
// memory. REQUIRES: CanBeWide if the request is wide.
GpuTile SampleGpuTile(const GpuTileRequest& request, std::vector<SharedStage>& stages,
                      Sketch& sketch, GpuEditor& edit);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GPU_TILE_SAMPLER_H_
