#include "worker/compile/lower/lower.h"

#include "common/base/status_macros.h"
#include "common/target/shuffles.h"
#include "worker/compile/lower/gpu/async_copies.h"
#include "worker/compile/lower/gpu/gpu_passes.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

absl::Span<const Pass> PassesFor(target::Kind) {
  static constexpr Pass kPasses[] = {
      {"PromoteAccumulators", PromoteAccumulators},
      {"LowerInits", LowerInits},
      {"NarrowDomain", NarrowDomain},
  };
  return kPasses;
}

absl::StatusOr<ir::Program> Prepare(const ir::Program& program, const target::Target& target) {
  const ir::Program alive = RemoveDeadBlocks(program);
  if (target.kind == target::Kind::kCpu) return CompactBuffers(alive);
  return MapThreads(alive, target::ShuffleWidth(target));
}

absl::StatusOr<LoweredProgram> Lower(const ir::Program& program, const target::Target& target,
                                     const ArgumentStrides& strides) {
  HONE_ASSIGN_OR_RETURN(const ir::Program prepared, Prepare(program, target));
  LoweredProgram lowered = BuildTree(prepared, target.kind);
  if (lowered.IsForGpu()) lowered.shuffle_width = target::ShuffleWidth(target);
  for (const Pass& pass : PassesFor(target.kind)) HONE_RETURN_IF_ERROR(pass.run(lowered));
  // Drop launches that have no store left.
  if (lowered.IsForGpu()) {
    std::erase_if(lowered.kernels, [](const LoweredKernel& k) { return k.body == kNoStmt; });
  }
  HONE_RETURN_IF_ERROR(AssignStorage(lowered, prepared, target, strides));
  UnpackElements(lowered);
  if (HasAsyncCopies(target)) MakeCopiesAsync(lowered);
  return lowered;
}

}  // namespace hone::lower
