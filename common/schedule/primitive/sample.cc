#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

namespace {

absl::Status SampleTile(Call& call, Site::Kind kind) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  const ir::Extent extent = call.program().node(loop).extent;
  return call.ReturnDecision({.kind = kind,
                              .extent = extent.value,
                              .derivation = extent.derivation,
                              .max_inner = call.Number("max_inner", 0)});
}

absl::Status SampleRows(Call& call, int columns) {
  std::vector<int64_t> rows = call.Numbers("candidates");
  if (rows.empty() || rows.size() % columns != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("candidates must be a list of rows of ", columns));
  }
  return call.ReturnDecision({.kind = Site::Kind::kChoice, .rows = std::move(rows)});
}

}  // namespace

absl::Status ApplySamplePerfectTile(Call& call) {
  return SampleTile(call, Site::Kind::kPerfectTile);
}
absl::Status ApplySampleTile(Call& call) { return SampleTile(call, Site::Kind::kTile); }
absl::Status ApplySampleCategorical(Call& call) { return SampleRows(call, 1); }
absl::Status ApplySampleRegisterTile(Call& call) { return SampleRows(call, 2); }

}  // namespace hone::schedule
