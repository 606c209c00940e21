#include <algorithm>

#include "common/ir/cases.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/rule/rules.h"

namespace hone::space {
namespace {

using schedule::Operand;
using Operands = std::vector<Operand>;
using Decisions = absl::Span<const int64_t>;

// An element-wise block that reads a tensor that is contiguous along one axis and writes a result
// that is contiguous along another. Axes are positions in the block's iters.
struct Transpose {
  int write = -1;  // the result is contiguous along it
  int read = -1;   // the tensor is contiguous along it
  ir::BufferId buffer = -1;
};

std::optional<Transpose> FindTranspose(const ir::Program& program, const ir::Block& block) {
  if (block.reducer != ir::Reducer::kNone || block.outputs.size() != 1 || block.iters.size() < 2 ||
      !block.predicates.empty() || ir::HasGuardedValue(program.pool, block.values)) {
    return std::nullopt;
  }
  Transpose transpose{.write = AxisOf(block, block.indices.back())};
  if (transpose.write < 0) return std::nullopt;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    if (transpose.buffer >= 0 || load.gathered >= 0 || indices.size() < 2 ||
        program.buffers[load.buffer].padded) {
      return;
    }
    const int read = AxisOf(block, indices.back());
    const bool crosses = std::any_of(indices.begin(), indices.end() - 1, [&](const auto& index) {
      return AxisOf(block, index) == transpose.write;
    });
    if (read < 0 || read == transpose.write || !crosses) return;
    transpose.read = read;
    transpose.buffer = load.buffer;
  });
  if (transpose.buffer < 0) return std::nullopt;
  int reads = 0;
  program.pool.VisitLoads(block.values[0],
                          [&](const ir::Expr& load) { reads += load.buffer == transpose.buffer; });
  return reads == 1 ? std::optional(transpose) : std::nullopt;
}

}  // namespace

// Schedules transposes through square tiles in shared memory, so that threads both load and store
// contiguous elements. A tile's rows are padded, so that the elements of a column are in different
// banks.
//   blockIdx: tiles { threadIdx: copy of a tile | threadIdx: results of the tile }
std::vector<Sketch> ApplyGpuTranspose(const RuleContext& context, const Sketch& sketch, int nest) {
  constexpr int64_t kLeastTile = 8, kMostTile = 32;
  const GpuTileLimits limits = GpuTileLimits::Of(*context.target);
  if (!limits.shared_memory) return {};
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value() || found->output().constant) return {};
  const ir::Block& block = found->block();
  const std::optional<Transpose> transpose = FindTranspose(found->program, block);
  if (!transpose.has_value()) return {};
  const int64_t shortest =
      std::min(block.iters[transpose->read].extent, block.iters[transpose->write].extent);
  const ir::Buffer& buffer = found->program.buffers[transpose->buffer];
  const int64_t bytes = kMostTile * (kMostTile + 1) * ir::DTypeBytes(buffer.dtype);
  if (shortest < kLeastTile || bytes > limits.shared_bytes) return {};

  Sketch tiled = sketch;
  GpuEditor edit(tiled);
  const Operand& whole = tiled.nests[nest].block;
  const Operands loops = edit.Loops(whole, block.iters.size());
  const Operand tile = edit.Sample(Doublings(kLeastTile, std::min(kMostTile, shortest)));
  const Operand rows = edit.Sample(Doublings(1, std::min(kMostTile, shortest)));
  tiled.constraints.push_back(
      {"threads", DecisionOf(rows) + 1,
       [t = DecisionOf(tile), r = DecisionOf(rows), most = limits.max_threads](Decisions d) {
         return d[r] <= d[t] && d[t] * d[r] <= most;
       }});
  const Operands write = edit.Split(loops[transpose->write], {tile});
  const Operands read = edit.Split(loops[transpose->read], {tile});
  const Operands steps = edit.Split(read[1], {rows});
  Operands others;
  int64_t points = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (i == transpose->write || i == transpose->read) continue;
    others.push_back(loops[i]);
    points *= block.iters[i].extent;
  }
  Operands order = others;
  Append(order, {read[0], write[0], steps[1], write[1], steps[0]});
  edit.Add("reorder", order);
  const Operands grid = edit.Grid(others, std::max(points, block.iters[transpose->read].extent),
                                  {read[0], write[0]}, limits.max_grid);
  const Operand copy =
      edit.Add("cache_read", {whole, schedule::Text(buffer.name), schedule::Text("shared")})[0];
  const int rank = static_cast<int>(buffer.shape.size());
  edit.Add("storage_align", {copy, Literal(rank - 2), Literal(kMostTile), Literal(1)});
  edit.Add("compute_at", {copy, grid.back()});
  edit.BindBlocks(grid);
  edit.BindThreads({steps[1], write[1]});
  edit.Cooperate(copy, grid.size() + rank, rank, {rows, tile}, Literal(1));
  tiled.nests[nest].state = Nest::State::kDone;
  tiled.name.push_back("transpose");
  return {std::move(tiled), sketch};
}

}  // namespace hone::space
