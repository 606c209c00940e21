#include "common/lower/lower.h"

#include "common/base/status_macros.h"
#include "common/lower/passes.h"

namespace hone::lower {

absl::StatusOr<LoweredProgram> Lower(const ir::Program& program, const target::Target& target) {
  const ir::Program compact = CompactBuffers(RemoveDeadBlocks(program));
  LoweredProgram lowered = BuildTree(compact);
  HONE_RETURN_IF_ERROR(PromoteAccumulators(lowered));
  LowerInits(lowered);
  NarrowDomain(lowered);
  HONE_RETURN_IF_ERROR(AssignStorage(lowered, compact, target));
  return lowered;
}

}  // namespace hone::lower
