#include <utility>

#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/rule/rules.h"

namespace hone::space {
namespace {

using schedule::Operand;
using Operands = std::vector<Operand>;
using Decisions = absl::Span<const int64_t>;

constexpr int64_t kLeastSharedTerms = 256;   // minimum length of a sum that several threads share
constexpr int64_t kFewSharedResults = 1024;  // per compute unit
constexpr int64_t kMostResults = 64;         // per block, along threadIdx
constexpr int64_t kMostPerThread = 4;

// Returns the size of all operands that are contiguous along an iteration variable.
int64_t ContiguousBytes(const ir::Program& program, const ir::Block& block, int axis) {
  int64_t bytes = 0;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList indices = program.pool.IndicesOf(load);
    if (indices.empty() || indices.back().CoeffOf(block.iters[axis].var) != 1) return;
    const ir::Buffer& buffer = program.buffers[load.buffer];
    bytes += ir::ElementsOf(buffer.shape) * ir::DTypeBytes(buffer.dtype);
  });
  return bytes;
}

}  // namespace

// Schedules contractions with few results, such as matrix times vector: several threads of a block
// share a sum. The threads along x run along the axis on which the larger operand is contiguous, so
// that they load consecutive elements.
//   blockIdx: results_0 | threadIdx.y: k_1, threadIdx.x: results_1 | k_0 | results_2
std::vector<Sketch> ApplyGpuCrossThreadReduction(const RuleContext& context, const Sketch& sketch,
                                                 int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Block& block = found->block();
  const GpuTileLimits limits = GpuTileLimits::Of(*context.target);
  const std::optional<Contraction> contraction = AnalyzeContraction(found->program, found->id);
  if (!contraction.has_value() || found->output().constant ||
      ReadsCopyNest(sketch, found->program, found->id)) {
    return {};
  }
  // gpu_split_reduction makes blocks whose extents are decisions. They are not supported.
  for (const ir::NodeId loop : found->program.LoopsAbove(found->id)) {
    if (found->program.node(loop).extent.derivation >= 0) return {};
  }
  const int64_t terms = block.iters[contraction->reduce].extent;
  const int64_t sums = PointsOf(block, AxesOf(block).spatial);
  if (terms < kLeastSharedTerms || sums > kFewSharedResults * limits.units) return {};

  Sketch bound = sketch;
  GpuEditor edit(bound);
  const Operand& whole = bound.nests[nest].block;
  const Operands loops = edit.Loops(whole, block.iters.size());
  const int64_t along = block.iters[contraction->vector].extent;
  const Operand threads = edit.Sample(ThreadCounts(terms, 4, limits.max_threads));
  const Operand side = edit.Sample(ThreadCounts(along, 1, kMostResults));
  bound.constraints.push_back(
      {"threads", DecisionOf(side) + 1,
       [t = DecisionOf(threads), s = DecisionOf(side), all = limits.max_threads](Decisions d) {
         return d[t] * d[s] <= all;
       }});
  const Operand each = edit.Sample(RegisterSizes(along, kMostPerThread));
  bound.constraints.push_back(
      {"shared memory", DecisionOf(each) + 1,
       [t = DecisionOf(threads), s = DecisionOf(side), e = DecisionOf(each), along,
        bytes = ir::DTypeBytes(found->output().dtype), all = limits.shared_bytes](Decisions d) {
         return d[t] * d[s] * d[e] * bytes <= all && d[s] * d[e] < 2 * along;
       }});
  const Operands results = edit.Split(loops[contraction->vector], {side, each});
  const Operands parts = edit.Split(loops[contraction->reduce], {threads});
  Operands outer, order;
  int64_t points = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (block.iters[i].reduce || i == contraction->vector) continue;
    outer.push_back(loops[i]);
    points *= block.iters[i].extent;
  }
  const bool along_sum = ContiguousBytes(found->program, block, contraction->reduce) >
                         ContiguousBytes(found->program, block, contraction->vector);
  const Operands lanes =
      along_sum ? Operands{results[1], parts[1]} : Operands{parts[1], results[1]};
  order = outer;
  order.push_back(results[0]);
  Append(order, lanes);
  order.push_back(parts[0]);
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (block.iters[i].reduce && i != contraction->reduce) order.push_back(loops[i]);
  }
  order.push_back(results[2]);
  edit.Add("reorder", order);
  edit.BindBlocks(edit.Grid(outer, points, {results[0]}, limits.max_grid));
  edit.BindThreads(lanes);
  edit.Add("unroll", {results[2]});
  bound.nests[nest].state = Nest::State::kDone;
  bound.name.push_back("threads");
  return {sketch, std::move(bound)};
}

}  // namespace hone::space
