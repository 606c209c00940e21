#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

absl::Status SetLoopKind(ir::Program& program, ir::NodeId loop, int64_t kind) {
  if (kind == kKeepSerial) return absl::OkStatus();
  if (kind == kUnroll) return Unroll(program, loop);
  if (kind == kVectorize) return Vectorize(program, loop);
  return absl::InvalidArgumentError(
      absl::StrCat("loop_kind: ", kind, " is not 0 (serial), 1 (unrolled) or 2 (vectorized)"));
}

absl::Status ApplyLoopKind(Call& call) {
  HONE_ASSIGN_OR_RETURN(const ir::NodeId loop, call.Loop(0));
  HONE_ASSIGN_OR_RETURN(const ir::Extent kind, call.Int(1));
  return SetLoopKind(call.program(), loop, kind.value);
}

}  // namespace hone::schedule
