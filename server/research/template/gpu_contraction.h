#ifndef HONE_SERVER_RESEARCH_TEMPLATE_GPU_CONTRACTION_H_
#define HONE_SERVER_RESEARCH_TEMPLATE_GPU_CONTRACTION_H_

#include <string>
#include <vector>

#include "common/ir/program.h"
#include "server/research/template/builder.h"
#include "server/tuner/space/gpu/gpu_limits.h"

namespace hone::space {

// The part that AutoTVM's templates for GPUs share: a contraction in tiles, with both operands in
// shared memory. Axes are positions in the block's iters.
struct GpuContraction {
  const ir::Program& program;  // no block has been scheduled
  ir::NodeId block;
  std::vector<int> batch;  // spatial; every iteration has its own blocks of threads
  // Spatial, at most 3, those of threadIdx.z, y and x. Each is split in 4: blocks, virtual threads,
  // threads, results of a thread.
  std::vector<int> tiled;
  // Outermost first. Each is split in `reduction_parts`; the operands are copied to shared memory
  // inside all of the outermost parts.
  std::vector<int> reduced;
  int reduction_parts = 2;
  std::string consumer;  // an element-wise block that stores the results; "": the block itself
};

// Whether both operands can be copied to shared memory.
bool FitsGpuContraction(const GpuContraction& contraction, const GpuTileLimits& limits);

// Writes the knobs: tile_z, tile_y, tile_x and the tiles of the reductions; and how many loops are
// unrolled (auto_unroll_max_step). There is no unroll_explicit, because the devices' compilers
// unroll the loops.
//   blockIdx | outer reductions { copies of the operands
//                               | threadIdx | inner reductions | vthread | results } ; results
// REQUIRES FitsGpuContraction.
void WriteGpuContraction(const GpuContraction& contraction, const GpuTileLimits& limits,
                         TemplateBuilder& builder);

}  // namespace hone::space

#endif  // HONE_SERVER_RESEARCH_TEMPLATE_GPU_CONTRACTION_H_
