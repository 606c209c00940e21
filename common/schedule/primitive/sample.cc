#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/replay.h"

namespace hone::schedule {
namespace {

using ir::NodeId;

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

absl::Status ApplyBlock(Call& call) {
  HONE_ASSIGN_OR_RETURN(const std::string name, call.Text(0));
  const NodeId block = call.program().FindBlock(name);
  if (block == ir::kNoNode) {
    return absl::NotFoundError(
        absl::StrCat("unknown block '", name.substr(0, 64), "' in\n", call.program().ToText()));
  }
  return call.Return({block});
}

absl::Status ApplyLoops(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  std::vector<NodeId> loops = call.program().LoopsAbove(block);
  if (call.operands() > 1) {
    HONE_ASSIGN_OR_RETURN(const ir::Extent innermost, call.Int(1));
    const auto above = static_cast<int64_t>(loops.size());
    if (call.operands() > 2 || innermost.value < 1 || innermost.value > above) {
      return absl::InvalidArgumentError(
          absl::StrCat("loops takes one number from 1 to the ", above, " loops around the block"));
    }
    loops.erase(loops.begin(), loops.end() - static_cast<ptrdiff_t>(innermost.value));
  }
  return call.Return(loops);
}

absl::Status ApplySamplePerfectTile(Call& call) {
  return SampleTile(call, Site::Kind::kPerfectTile);
}
absl::Status ApplySampleTile(Call& call) { return SampleTile(call, Site::Kind::kTile); }
absl::Status ApplySampleCategorical(Call& call) { return SampleRows(call, 1); }
absl::Status ApplySampleRegisterTile(Call& call) { return SampleRows(call, 2); }

// Samples a place for compute_at: a legal loop above the block's first reader, outermost first, or
// −1 to leave the block where it is. With outermost=n, only the first n of these loops, without −1.
// The candidates depend only on the program, so equal earlier decisions give equal candidates.
// FailedPrecondition: there is no such loop.
absl::Status ApplySampleComputeLocation(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  const ir::Program& program = call.program();
  const int64_t outermost = call.Number("outermost", 0);
  Site site{.kind = Site::Kind::kChoice};
  if (outermost == 0) site.rows.push_back(-1);
  const std::vector<NodeId> readers = program.ReadersOf(program.BlockOf(block).outputs[0]);
  const std::vector<NodeId> loops =
      readers.empty() ? std::vector<NodeId>{} : program.LoopsAbove(readers[0]);
  for (size_t i = 0; i < loops.size(); ++i) {
    if (outermost > 0 && static_cast<int64_t>(i) >= outermost) break;
    ir::Program tried = program;
    if (ComputeAt(tried, block, loops[i]).ok()) site.rows.push_back(static_cast<int64_t>(i));
  }
  if (site.rows.empty())
    return Illegal(program, block,
                   "sample_compute_location: compute_at is legal at none of the loops");
  return call.ReturnLocation(std::move(site), loops);
}

}  // namespace hone::schedule
