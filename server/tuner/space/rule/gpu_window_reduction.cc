#include <algorithm>
#include <utility>

#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/gpu/tile_size.h"
#include "server/tuner/space/rule/rules.h"

namespace hone::space {
namespace {

using schedule::Operand;
using Operands = std::vector<Operand>;
using Decisions = absl::Span<const int64_t>;

constexpr int64_t kMostTile = 8;          // maximum results per thread along width or height
constexpr int64_t kMostUnrolledTaps = 8;  // maximum extent of an unrolled loop over taps

// Keeps the results in registers and unrolls the window over them:
//   blockIdx | threadIdx: width, channels | taps | height × width × channels of a thread
class GpuWindowTiler {
 public:
  GpuWindowTiler(const Sketch& sketch, int nest, const NestBlock& found, const Window& window,
                 const GpuTileLimits& limits)
      : sketch_(sketch),
        nest_(nest),
        block_(found.block()),
        dtype_(found.output().dtype),
        w_(window),
        limits_(limits) {}

  // `consumer`: the nest of the block's element-wise consumer, or -1.
  Sketch Run(int consumer) {
    const Operand& block = sketch_.nests[nest_].block;
    if (consumer >= 0) edit_.Add("set_scope", {block, schedule::Text("local")});
    const Operands loops = edit_.Loops(block, block_.iters.size());
    const int64_t most = limits_.max_threads;
    const Operand lanes = edit_.Sample(VectorWidths(limits_, Extent(w_.vector), dtype_));
    const Operand x = edit_.Sample(ThreadCounts(Extent(w_.vector), 8, std::min<int64_t>(64, most)));
    TileSize threads{.decisions = {DecisionOf(x)}}, results{.decisions = {DecisionOf(lanes)}};
    Constrain("tile", x,
              [extent = Extent(w_.vector), at = DecisionOf(x),
               wide = DecisionOf(lanes)](Decisions d) { return d[at] * d[wide] < 2 * extent; });
    const Operands c = edit_.Split(loops[w_.vector], {x, lanes});
    Operands outer, grid, bound, registers;
    for (const int axis : w_.outer) outer.push_back(loops[axis]);
    if (w_.height >= 0) {
      const Operand size = edit_.Sample(RegisterSizes(Extent(w_.height), kMostTile));
      results.decisions.push_back(DecisionOf(size));
      ConstrainRegisters(size, results);
      const Operands h = edit_.Split(loops[w_.height], {size});
      outer.push_back(h[0]);
      registers.push_back(h[1]);
    }
    if (w_.width >= 0) {
      const Operand y = edit_.Sample(ThreadCounts(Extent(w_.width), 1, 32));
      threads.decisions.push_back(DecisionOf(y));
      Constrain("threads", y, [=](Decisions d) { return threads.Of(d) <= most; });
      const Operand size = edit_.Sample(RegisterSizes(Extent(w_.width), kMostTile));
      results.decisions.push_back(DecisionOf(size));
      ConstrainRegisters(size, results);
      Constrain("tile", size,
                [extent = Extent(w_.width), at = DecisionOf(y),
                 wide = DecisionOf(size)](Decisions d) { return d[at] * d[wide] < 2 * extent; });
      const Operands w = edit_.Split(loops[w_.width], {y, size});
      grid.push_back(w[0]);
      bound.push_back(w[1]);
      registers.push_back(w[2]);
    }
    grid.push_back(c[0]);
    bound.push_back(c[1]);
    registers.push_back(c[2]);
    Operands rolled, unrolled;
    Taps(loops, results, rolled, unrolled);

    Operands order = outer;
    for (const Operands* part : {&grid, &bound, &rolled, &unrolled, &registers})
      Append(order, *part);
    edit_.Add("reorder", order);
    int64_t points = w_.height >= 0 ? Extent(w_.height) : 1;
    for (const int axis : w_.outer) points *= Extent(axis);
    if (w_.width >= 0) points = std::max(points, Extent(w_.width));
    grid = edit_.Grid(outer, points, grid, limits_.max_grid);
    edit_.BindBlocks(grid);
    edit_.BindThreads(bound);
    Append(unrolled, registers);
    edit_.Unroll(unrolled);
    if (consumer >= 0) {
      const Operand& reader = sketch_.nests[consumer].block;
      edit_.Add("reverse_compute_at", {reader, bound.back()});
      const Operands inside =
          edit_.Loops(reader, grid.size() + bound.size() + block_.indices.size());
      edit_.Vectorize(edit_.Split(inside.back(), {lanes})[1]);
      sketch_.nests[consumer].state = Nest::State::kDone;
    }
    sketch_.nests[nest_].state = Nest::State::kDone;
    sketch_.name.push_back("window");
    return std::move(sketch_);
  }

 private:
  int64_t Extent(int axis) const { return block_.iters[axis].extent; }

  void Constrain(std::string name, const Operand& last, std::function<bool(Decisions)> holds) {
    sketch_.constraints.push_back({std::move(name), DecisionOf(last) + 1, std::move(holds)});
  }
  void ConstrainRegisters(const Operand& last, const TileSize& results) {
    Constrain("registers", last, [=, most = limits_.registers](Decisions d) {
      return 2 * results.Of(d) + GpuTileLimits::kOtherRegisters <= most;
    });
  }

  // Decides for each short loop over taps whether it is unrolled. Long ones are not unrolled.
  void Taps(const Operands& loops, const TileSize& results, Operands& rolled, Operands& unrolled) {
    TileSize statements = results;
    const int64_t most = block_.guards.empty() ? limits_.statements : limits_.guarded_statements;
    for (const int axis : w_.taps) {
      if (Extent(axis) == 1 || Extent(axis) > kMostUnrolledTaps) {
        rolled.push_back(loops[axis]);
        continue;
      }
      const Operand factor = edit_.Sample({1, Extent(axis)});
      statements.decisions.push_back(DecisionOf(factor));
      Constrain("statements", factor, [=, at = DecisionOf(factor)](Decisions d) {
        return d[at] == 1 || statements.Of(d) <= most;
      });
      const Operands parts = edit_.Split(loops[axis], {factor});
      rolled.push_back(parts[0]);
      unrolled.push_back(parts[1]);
    }
  }

  Sketch sketch_;
  GpuEditor edit_{sketch_};
  const int nest_;
  const ir::Block& block_;
  const ir::DType dtype_;
  const Window& w_;
  const GpuTileLimits& limits_;
};

}  // namespace

// Schedules windows without a sum over channels on a GPU: depthwise convolutions, pooling, sums of
// columns.
std::vector<Sketch> ApplyGpuWindowReduction(const RuleContext& context, const Sketch& sketch,
                                            int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const std::optional<Window> window = AnalyzeWindow(found->program, found->block());
  if (!window.has_value() || window->slides_along_vectors ||
      CopiesElements(found->program, found->block()))
    return {};
  const GpuTileLimits limits = GpuTileLimits::Of(*context.target);
  return {GpuWindowTiler(sketch, nest, *found, *window, limits)
              .Run(ElementwiseConsumer(sketch, found->program, found->id))};
}

}  // namespace hone::space
