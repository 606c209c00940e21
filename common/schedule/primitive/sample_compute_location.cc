#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

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
