#ifndef HONE_SERVER_TUNER_SPACE_GPU_GPU_NEST_H_
#define HONE_SERVER_TUNER_SPACE_GPU_GPU_NEST_H_

#include <cstdint>
#include <vector>

#include "common/ir/program.h"
#include "common/schedule/trace.h"
#include "server/tuner/space/gpu/gpu_limits.h"

namespace hone::space {

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

#endif  // HONE_SERVER_TUNER_SPACE_GPU_GPU_NEST_H_
