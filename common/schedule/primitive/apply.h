#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_APPLY_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_APPLY_H_

#include "absl/status/status.h"

// The functions that replay calls, listed in the registry. Each reads its operands from the call
// and applies one primitive.
namespace hone::schedule {

class Call;

absl::Status ApplyAddUnitLoop(Call& call);
absl::Status ApplyAnnotate(Call& call);
absl::Status ApplyAsyncCopy(Call& call);
absl::Status ApplyBind(Call& call);
absl::Status ApplyBlockize(Call& call);
absl::Status ApplyBlock(Call& call);
absl::Status ApplyCacheRead(Call& call);
absl::Status ApplyCacheWrite(Call& call);
absl::Status ApplyComputeAt(Call& call);
absl::Status ApplyComputeInline(Call& call);
absl::Status ApplyDecomposePadding(Call& call);
absl::Status ApplyDecomposeReduction(Call& call);
absl::Status ApplyDoubleBuffer(Call& call);
absl::Status ApplyFuse(Call& call);
absl::Status ApplyLoopKind(Call& call);
absl::Status ApplyLoopPartition(Call& call);
absl::Status ApplyLoops(Call& call);
absl::Status ApplyPadEinsum(Call& call);
absl::Status ApplyParallel(Call& call);
absl::Status ApplyRegisterTile(Call& call);
absl::Status ApplyReorder(Call& call);
absl::Status ApplyReorderBy(Call& call);
absl::Status ApplyReorderSpace(Call& call);
absl::Status ApplyReverseComputeAt(Call& call);
absl::Status ApplyReverseComputeInline(Call& call);
absl::Status ApplyRewrite(Call& call);
absl::Status ApplyRfactor(Call& call);
absl::Status ApplySampleCategorical(Call& call);
absl::Status ApplySampleComputeLocation(Call& call);
absl::Status ApplySamplePerfectTile(Call& call);
absl::Status ApplySampleRegisterTile(Call& call);
absl::Status ApplySampleTile(Call& call);
absl::Status ApplySetScope(Call& call);
absl::Status ApplySoftwarePipeline(Call& call);
absl::Status ApplySplit(Call& call);
absl::Status ApplyStorageAlign(Call& call);
absl::Status ApplyTensorize(Call& call);
absl::Status ApplyThreadCount(Call& call);
absl::Status ApplyTransformLayout(Call& call);
absl::Status ApplyUnroll(Call& call);
absl::Status ApplyVectorize(Call& call);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_APPLY_H_
