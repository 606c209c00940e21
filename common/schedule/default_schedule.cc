#include "common/schedule/default_schedule.h"

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/primitive/register_tile.h"

namespace hone::schedule {

using ir::ExtentTable;
using ir::NodeId;

namespace {

absl::Status ScheduleBlock(ir::Program& program, NodeId block, int lanes) {
  constexpr int kRows = 4, kVectors = 2;
  std::vector<NodeId> spatial, reduce;
  for (NodeId loop : program.LoopsAbove(block)) {
    (program.IsReductionLoop(loop, program.BlockOf(block)) ? reduce : spatial).push_back(loop);
  }
  const auto constant = [](int64_t value) { return ExtentTable::Constant(value); };
  const bool wide = !spatial.empty() && program.node(spatial.back()).extent.value > 1;
  if (spatial.size() >= 2 && !reduce.empty() && program.BlockOf(block).outputs.size() == 1) {
    HONE_ASSIGN_OR_RETURN(
        const RegisterTiled tiled,
        RegisterTile(program, block, spatial[spatial.size() - 2], spatial.back(), reduce.back(),
                     constant(kRows), constant(kVectors), lanes, constant(1)));
    spatial[spatial.size() - 2] = tiled.row;
    spatial.back() = tiled.vector;
  } else if (wide) {
    const int64_t extent = program.node(spatial.back()).extent.value;
    HONE_ASSIGN_OR_RETURN(
        const std::vector<NodeId> parts,
        Split(program, spatial.back(), {constant(0), constant(std::min<int64_t>(lanes, extent))}));
    if (!reduce.empty()) {
      std::vector<NodeId> order = {parts[0]};
      order.insert(order.end(), reduce.begin(), reduce.end());
      order.push_back(parts[1]);
      HONE_RETURN_IF_ERROR(Reorder(program, order));
    }
    HONE_RETURN_IF_ERROR(Vectorize(program, parts[1]));
    spatial.back() = parts[0];
  }
  if (spatial.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const NodeId fused, Fuse(program, spatial));
  return Parallel(program, fused);
}

}  // namespace

absl::Status ApplyDefaultSchedule(ir::Program& program, int lanes) {
  for (NodeId block : program.AllBlocks())
    HONE_RETURN_IF_ERROR(ScheduleBlock(program, block, lanes));
  return absl::OkStatus();
}

}  // namespace hone::schedule
