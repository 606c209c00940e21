#include "common/base/status_macros.h"
#include "worker/compile/lower/gpu/gpu_passes.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

absl::StatusOr<ir::Program> MapThreads(const ir::Program& program, int shuffle_width) {
  ir::Program launches = SplitLaunches(program);
  HONE_RETURN_IF_ERROR(ReduceThreads(launches, shuffle_width));
  ir::Program compact = CompactBuffers(launches);
  PipelineCopies(compact);
  ExpandOverThreads(compact);
  HONE_ASSIGN_OR_RETURN(ThreadProgram threads, SinkSerialLoops(compact));
  HONE_RETURN_IF_ERROR(PlaceBuffers(threads));
  InsertBarriers(threads);
  return std::move(threads.program);
}

}  // namespace hone::lower
