#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/status_macros.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/plain_nest.h"
#include "server/tuner/space/rule.h"

namespace hone::space {
namespace {

using schedule::Operand;

// Sums of more terms than this are computed in parts. If a million equal f32 terms were added one
// after the other, the error would be one percent.
constexpr int64_t kLongSum = 1 << 14;
// The maximum number of elements in the buffer that stores the sums of all parts.
constexpr int64_t kMostPartElements = int64_t{1} << 24;

// Returns the position of the reduction iterator with the largest extent; -1 if the block has none.
int LongestReduction(const ir::Block& block) {
  int longest = -1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    const ir::BlockIter& iter = block.iters[i];
    if (iter.reduce && (longest < 0 || iter.extent > block.iters[longest].extent)) longest = i;
  }
  return longest;
}

// Returns the number of parts of a block's sum; 1 if the sum is not long. If a sum of K terms is
// computed in √K parts of √K terms, its error grows with √K instead of K.
int64_t PartsOf(const ir::Block& block, ir::DType dtype) {
  if (block.reducer != ir::Reducer::kSum || !ir::IsFloat(dtype)) return 1;
  if (block.indices.size() >= ir::kMaxRank) return 1;  // the parts need another dimension
  const BlockAxes axes = AxesOf(block);
  const int64_t terms = PointsOf(block, axes.reduce);
  if (terms <= kLongSum) return 1;
  const int64_t elements = PointsOf(block, axes.spatial);
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(terms)));
  return std::max<int64_t>(1, std::min({root, block.iters[LongestReduction(block)].extent,
                                        kMostPartElements / elements}));
}

// Writes the schedule of one stage, which may become several blocks.
class DefaultNest {
 public:
  DefaultNest(schedule::TraceBuilder& trace, const target::Target& target)
      : trace_(trace), target_(target) {}

  void Schedule(const Operand& nest, const ir::Block& block, ir::DType dtype) {
    const int64_t parts = PartsOf(block, dtype);
    if (parts < 2) return Plain(nest, block, dtype);
    const ir::DType wide = ir::AccumulatorOf(block.reducer, dtype);
    if (wide != dtype) {
      const Operand copy = trace_.Add("cache_write", {nest, schedule::Text("global")})[0];
      Plain(copy, Spatial(block), dtype);
    }
    InParts(nest, block, wide, parts);
  }

 private:
  void Plain(const Operand& nest, const ir::Block& block, ir::DType dtype) {
    if (target_.kind != target::Kind::kCpu) {
      ScheduleGpuNest(trace_, nest, block, GpuTileLimits::Of(target_), {1}, /*sampled=*/false);
      return;
    }
    const int64_t lanes = TileLimits::Of(target_, dtype).lanes;
    SchedulePlainNest(trace_, nest, block, lanes, /*sampled=*/false);
  }
  static ir::Block Spatial(const ir::Block& block) {
    ir::Block spatial;
    for (const ir::BlockIter& iter : block.iters) {
      if (!iter.reduce) spatial.iters.push_back(iter);
    }
    return spatial;
  }

  // for i, k: C[i] += …  →  for part, i, k_1: C_rf[part, i] += …;  for i, part: C[i] += C_rf
  void InParts(const Operand& nest, const ir::Block& block, ir::DType dtype, int64_t parts) {
    const int axis = LongestReduction(block);
    const int64_t extent = block.iters[axis].extent;
    const int64_t size = (extent + parts - 1) / parts;
    const std::vector<Operand> loops =
        trace_.Add("loops", {nest}, {}, static_cast<int>(block.iters.size()));
    const std::vector<Operand> cut =
        trace_.Add("split", {loops[axis], Literal(0), Literal(size)}, {}, 2);
    const ir::BlockIter part{.extent = (extent + size - 1) / size};
    ir::Block partial = Spatial(block), combining = Spatial(block);
    partial.iters.insert(partial.iters.begin(), part);
    combining.iters.push_back(part);
    combining.iters.back().reduce = true;
    std::vector<Operand> order = {cut[0]}, reductions;
    for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
      if (!block.iters[i].reduce) {
        order.push_back(loops[i]);
        continue;
      }
      reductions.push_back(i == axis ? cut[1] : loops[i]);
      partial.iters.push_back(block.iters[i]);
      if (i == axis) partial.iters.back().extent = size;
    }
    order.insert(order.end(), reductions.begin(), reductions.end());
    trace_.Add("reorder", order);
    const Operand part_sums = trace_.Add("rfactor", {nest, cut[0], Literal(0)})[0];
    Plain(nest, combining, dtype);
    Plain(part_sums, partial, dtype);
  }

  schedule::TraceBuilder& trace_;
  const target::Target& target_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DesignSpace>> DefaultCandidate(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target) {
  HONE_RETURN_IF_ERROR(workload->Validate());
  const ir::Program program = ir::Program::FromWorkload(workload);
  schedule::TraceBuilder trace;
  const std::vector<ir::NodeId> blocks = program.AllBlocks();
  std::vector<Operand> nests;
  for (const ir::NodeId block : blocks) {
    const std::string& name = program.BlockOf(block).name;
    nests.push_back(trace.Add("block", {schedule::Text(name)})[0]);
  }
  for (size_t b = 0; b < nests.size(); ++b) {
    const ir::Block& block = program.BlockOf(blocks[b]);
    DefaultNest(trace, target).Schedule(nests[b], block, program.buffers[block.outputs[0]].dtype);
  }
  return DesignSpace::Create("default", std::move(workload), std::move(trace).Build());
}

}  // namespace hone::space
