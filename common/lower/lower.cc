#include "common/lower/lower.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/lower/passes.h"

namespace hone::lower {

absl::Span<const Pass> PassesFor(target::Kind kind) {
  static constexpr Pass kCpu[] = {
      {"PromoteAccumulators", PromoteAccumulators},
      {"LowerInits", LowerInits},
      {"NarrowDomain", NarrowDomain},
  };
  return kind == target::Kind::kCpu ? absl::Span<const Pass>(kCpu) : absl::Span<const Pass>();
}

absl::StatusOr<LoweredProgram> Lower(const ir::Program& program, const target::Target& target,
                                     const ArgumentStrides& strides) {
  const absl::Span<const Pass> passes = PassesFor(target.kind);
  if (passes.empty()) {
    return absl::UnimplementedError(absl::StrCat("no passes lower programs for targets of kind ",
                                                 target::KindName(target.kind)));
  }
  const ir::Program compact = CompactBuffers(RemoveDeadBlocks(program));
  LoweredProgram lowered = BuildTree(compact);
  for (const Pass& pass : passes) HONE_RETURN_IF_ERROR(pass.run(lowered));
  HONE_RETURN_IF_ERROR(AssignStorage(lowered, compact, target, strides));
  return lowered;
}

}  // namespace hone::lower
