#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kMaxUnrolledWindow = 8;  // iterations of a loop over taps
constexpr int64_t kMaxHeight = 4;          // rows of outputs in a tile
constexpr int64_t kMaxWidth = 14;

// Which axis the threads split, and the order of the tile loops.
struct Order {
  const char* name;
  bool vectors_first;    // threads split channels instead of rows
  bool vectors_outside;  // channels outside the tiles along the width
};
constexpr Order kOrders[] = {
    {"h_w_c", false, false}, {"h_c_w", false, true}, {"c_h_w", true, true}};

class WindowTiler {
 public:
  WindowTiler(const Sketch& sketch, int nest, const ir::Block& block, const Window& window,
              const TileLimits& limits)
      : sketch_(sketch), nest_(nest), block_(block), w_(window), limits_(limits) {}

  Sketch Run(const Order& order) {
    const std::vector<Operand> loops = edit_.Loops(Block(), block_.iters.size());
    // The tile: height × width outputs of some vectors of channels.
    const std::vector<Operand> tile =
        edit_.Add("sample_register_tile", {}, {{"candidates", Tiles()}});
    const int64_t lanes = std::min(limits_.lanes, Extent(w_.vector));
    const std::vector<Operand> vectors = edit_.Split(loops[w_.vector], {tile[1]});
    std::vector<Operand> outer, heights, widths, inside;
    for (int axis : w_.outer) outer.push_back(loops[axis]);
    std::optional<Operand> height;
    if (w_.height >= 0) {
      height = edit_.Sample(Sizes(Extent(w_.height), kMaxHeight));
      const std::vector<Operand> parts = edit_.Split(loops[w_.height], {*height});
      heights.push_back(parts[0]);
      inside.push_back(parts[1]);
    }
    if (w_.width >= 0) {
      const std::vector<Operand> parts = edit_.Split(loops[w_.width], {tile[0]});
      widths.push_back(parts[0]);
      inside.push_back(parts[1]);
    }
    std::vector<Operand> rolled, unrolled, unroll_factors;
    for (int axis : w_.taps) {
      const int64_t extent = Extent(axis);
      if (extent == 1 || extent > kMaxUnrolledWindow) {
        rolled.push_back(loops[axis]);
        continue;
      }
      const Operand factor = edit_.Sample({1, extent});
      const std::vector<Operand> parts = edit_.Split(loops[axis], {factor});
      rolled.push_back(parts[0]);
      unrolled.push_back(parts[1]);
      unroll_factors.push_back(factor);
    }
    Constrain(DecisionOf(tile[0]), lanes, height, unroll_factors);

    std::vector<Operand> threads = outer, serial;
    if (order.vectors_first || heights.empty()) {
      threads.push_back(vectors[0]);
      Append(serial, heights);
      Append(serial, widths);
    } else {
      Append(threads, heights);
      if (order.vectors_outside) serial.push_back(vectors[0]);
      Append(serial, widths);
      if (!order.vectors_outside) serial.push_back(vectors[0]);
    }
    std::vector<Operand> all = threads;
    for (const auto* part : {&serial, &rolled, &unrolled, &inside}) Append(all, *part);
    all.push_back(vectors[1]);
    edit_.Add("reorder", all);
    edit_.Add("vectorize", {vectors[1]});
    for (const Operand& loop : inside) edit_.Add("unroll", {loop});
    for (const Operand& loop : unrolled) edit_.Add("unroll", {loop});

    Tiling tiling{.rows = tile[0], .vectors = tile[1], .k_unroll = tile[0], .lanes = lanes};
    tiling.contraction.vector = w_.vector;
    tiling.contraction.row = w_.width >= 0 ? w_.width : w_.vector;
    tiling.outer = edit_.Fuse(threads);
    tiling.inner = serial.empty() ? tiling.outer : serial.back();
    tiling.loops_to_inner = 1 + static_cast<int>(serial.size());
    Nest& nest = sketch_.nests[nest_];
    nest.state = Nest::State::kTiled;
    nest.tiling = std::move(tiling);
    sketch_.name.push_back(absl::StrCat("window_", order.name));
    return std::move(sketch_);
  }

 private:
  const Operand& Block() const { return sketch_.nests[nest_].block; }
  int64_t Extent(int axis) const { return block_.iters[axis].extent; }

  // Returns tile sizes along an axis: its divisors, and small sizes that leave a remainder.
  static std::vector<int64_t> Sizes(int64_t extent, int64_t most) {
    std::vector<int64_t> sizes;
    for (int64_t size = 1; size <= std::min(most, extent); ++size) {
      if (extent % size == 0 || size == 2 || size == 4) sizes.push_back(size);
    }
    return sizes;
  }

  // (width, lanes) pairs whose accumulators fit the limit in one row of outputs.
  std::vector<int64_t> Tiles() const {
    std::vector<int64_t> tiles;
    const std::vector<int64_t> widths =
        w_.width >= 0 ? Sizes(Extent(w_.width), kMaxWidth) : std::vector<int64_t>{1};
    for (const int64_t lanes : RowWidths(limits_, Extent(w_.vector))) {
      for (const int64_t width : widths) {
        if (width * ir::CeilDivInt(lanes, limits_.lanes) <= limits_.window_accumulators)
          tiles.insert(tiles.end(), {width, lanes});
      }
    }
    return tiles;
  }

  void Constrain(int tile, int64_t lanes, const std::optional<Operand>& height,
                 const std::vector<Operand>& unrolled) {
    const int at_height = height.has_value() ? DecisionOf(*height) : -1;
    const auto accumulators = [=](absl::Span<const int64_t> d) {
      return (at_height < 0 ? 1 : d[at_height]) * d[tile] * ir::CeilDivInt(d[tile + 1], lanes);
    };
    if (at_height >= 0) {
      sketch_.constraints.push_back(
          {"accumulators", at_height + 1, [=, most = limits_.window_accumulators](auto d) {
             return d[at_height] == 1 || accumulators(d) <= most;
           }});
    }
    if (unrolled.empty()) return;
    std::vector<int> factors;
    for (const Operand& factor : unrolled) factors.push_back(DecisionOf(factor));
    sketch_.constraints.push_back(
        {"statements of the window", factors.back() + 1,
         [=, most = limits_.window_statements](absl::Span<const int64_t> d) {
           int64_t points = 1;
           for (int factor : factors) points *= d[factor];
           return points == 1 || points * accumulators(d) <= most;
         }});
  }

  Sketch sketch_;
  SketchEditor edit_{sketch_};
  int nest_;
  const ir::Block& block_;
  const Window& w_;
  const TileLimits& limits_;
};

}  // namespace

// Schedules windows without a sum over channels: depthwise convolutions, pooling, sums of columns.
std::vector<Sketch> ApplyWindowReduction(const RuleContext& context, const Sketch& sketch,
                                         int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Block& block = found->block();
  const TileLimits& limits = found->limits;
  const std::optional<Window> window = AnalyzeWindow(found->program, block);
  if (!window.has_value()) return {};
  // Each vector would need masks for its taps. PaddedWindows (generate.cc) offers a padded copy.
  if (window->slides_along_vectors && !block.guards.empty()) return {};
  std::vector<Sketch> sketches;
  for (const Order& order : kOrders) {
    // Orders matter only if there are several tiles along both axes.
    const bool one_vector = block.iters[window->vector].extent <= limits.lanes;
    if ((one_vector || window->width < 0) && &order != &kOrders[0]) continue;
    if (window->height < 0 && order.vectors_outside && !order.vectors_first) continue;
    sketches.push_back(WindowTiler(sketch, nest, block, *window, limits).Run(order));
  }
  return sketches;
}

}  // namespace hone::space
