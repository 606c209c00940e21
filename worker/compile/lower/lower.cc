#include "worker/compile/lower/lower.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/capabilities.h"
#include "worker/compile/lower/gpu/async_copies.h"
#include "worker/compile/lower/gpu/gpu_passes.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {

const ir::Intrinsic* IntrinsicOf(const Stmt& store) {
  return ir::FindIntrinsic(ir::ValueOf(store.annotations, ir::Annotation::Key::kIntrinsic, -1));
}

absl::Status CheckIntrinsics(const LoweredProgram& program, const target::Target& target) {
  for (const Stmt& stmt : program.stmts) {
    if (stmt.kind != Stmt::Kind::kStore) continue;
    const ir::Intrinsic* intrinsic = IntrinsicOf(stmt);
    if (intrinsic == nullptr ||
        (target.arch == intrinsic->arch && target.HasFeature(intrinsic->feature)))
      continue;
    return absl::UnimplementedError(absl::StrCat(intrinsic->name, " needs ", intrinsic->arch,
                                                 " with ", intrinsic->feature, "; the target is ",
                                                 target.arch, " ", target.cpu, " without it"));
  }
  return absl::OkStatus();
}

absl::Span<const Pass> Passes() {
  static constexpr Pass kPasses[] = {
      {"PackConstants", PackConstants}, {"PromoteAccumulators", PromoteAccumulators},
      {"HoistFactors", HoistFactors},   {"LowerInits", LowerInits},
      {"NarrowDomain", NarrowDomain},
  };
  return kPasses;
}

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
  for (const Pass& pass : Passes()) HONE_RETURN_IF_ERROR(pass.run(lowered));
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
