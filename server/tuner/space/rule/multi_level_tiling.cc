#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/row_group.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {
namespace {

using schedule::Operand;

// One choice of the loop orders.
struct Variant {
  bool outer_row_first;  // order of the outer tile loops, which are fused
  bool inner_row_first;  // order of the inner tile loops
  bool tile_reduction;   // false: all reductions run inside the inner tile loops
  int minor;
};

class Tiler {
 public:
  // `joined`: axes that are fused with the rows, outermost first.
  Tiler(const Sketch& sketch, int nest, const ir::Program& program, const ir::Block& block,
        const Contraction& contraction, const std::vector<int>& joined, const TileLimits& limits)
      : sketch_(sketch),
        nest_(nest),
        program_(program),
        block_(block),
        c_(contraction),
        joined_(joined),
        limits_(limits) {}

  Sketch Run(const Variant& variant) {
    Nest& nest = sketch_.nests[nest_];
    Tiling tiling{.contraction = c_,
                  .lanes = std::min(limits_.lanes, Extent(c_.vector)),
                  .joined_rows = !joined_.empty()};
    std::vector<Operand> loops = edit_.Loops(nest.block, block_.iters.size());
    if (tiling.joined_rows) {
      std::vector<Operand> rows;
      for (int axis : joined_) rows.push_back(loops[axis]);
      rows.push_back(loops[c_.row]);
      loops[c_.row] = edit_.Add("fuse", std::move(rows))[0];
      tiling.contraction.row_operand.panel_dimension = -1;  // the rows span several dimensions
    }
    SampleRegisterTile(tiling);
    const Operand k_unroll = edit_.Sample(KUnrolls(limits_, Extent(c_.reduce)));
    tiling.k_unroll = k_unroll;
    const std::vector<Operand> tiled =
        edit_.Add("register_tile", {nest.block, loops[c_.row], loops[c_.vector], loops[c_.reduce],
                                    tiling.rows, tiling.vectors, Literal(tiling.lanes), k_unroll});
    TileDecisions decisions{.rows = DecisionOf(tiling.rows),
                            .vectors = DecisionOf(tiling.vectors),
                            .k_unroll = DecisionOf(k_unroll),
                            .reduction = Extent(c_.reduce),
                            .guarded = !block_.guards.empty(),
                            .short_steps = Extent(c_.reduce) < limits_.few_steps &&
                                           Extent(c_.reduce) > 1 && !c_.windows.empty()};

    // Outer and inner tile loops per group of axes.
    std::vector<Operand> shared_outer, row_outer, vector_outer, row_inner, vector_inner, windows;
    for (int axis : c_.shared)
      Cut("sample_perfect_tile", loops[axis], axis, decisions.others, shared_outer, row_inner);
    for (int axis : c_.row_like) {
      if (!absl::c_linear_search(joined_, axis))
        Cut("sample_perfect_tile", loops[axis], axis, decisions.others, row_outer, row_inner);
    }
    std::vector<Tile> vector_tile, row_tile;
    Cut("sample_tile", tiled[1], c_.vector, vector_tile, vector_outer, vector_inner);
    Cut("sample_tile", tiled[0], c_.row, row_tile, row_outer, row_inner);
    decisions.vector = vector_tile[0];
    decisions.row = row_tile[0];

    std::vector<Operand> unrolled_windows;
    CutWindows(loops, decisions, windows, unrolled_windows);
    Operand steps = tiled[2];
    if (variant.tile_reduction) {
      const SketchEditor::Tiles parts = edit_.SplitInTwo("sample_tile", tiled[2]);
      decisions.reduce = Tile{DecisionOf(parts.size)};
      tiling.reduce_outer = parts.outer;
      steps = parts.inner;
    }

    // S S R S S R: outer tiles, tiles of the reduction, inner tiles, windows, steps of the
    // micro-kernel.
    std::vector<Operand> outer = shared_outer;
    Append(outer, variant.outer_row_first ? row_outer : vector_outer);
    Append(outer, variant.outer_row_first ? vector_outer : row_outer);
    std::vector<Operand> inner = variant.inner_row_first ? row_inner : vector_inner;
    Append(inner, variant.inner_row_first ? vector_inner : row_inner);
    std::vector<Operand> order = outer;
    if (tiling.reduce_outer.has_value()) order.push_back(*tiling.reduce_outer);
    Append(order, inner);
    Append(order, windows);
    order.push_back(steps);
    Append(order, unrolled_windows);
    edit_.Add("reorder", order);
    for (const Operand& loop : unrolled_windows) edit_.Add("unroll", {loop});
    const Operand ahead = StreamsNarrowConstant() ? Literal(limits_.prefetch_stream)
                                                  : edit_.Sample({0, limits_.prefetch_steps});
    edit_.Add("annotate", {steps, schedule::Text("prefetch"), ahead});
    tiling.outer = edit_.Add("fuse", outer)[0];
    tiling.inner = inner.back();
    tiling.loops_to_inner = 1 + static_cast<int>(inner.size());

    AddTileConstraints(limits_, decisions, Shape(variant.inner_row_first, tiling.lanes),
                       sketch_.constraints);
    nest.state = Nest::State::kTiled;
    nest.tiling = std::move(tiling);
    sketch_.minor += variant.minor;
    Name(variant);
    return std::move(sketch_);
  }

 private:
  int64_t Extent(int axis) const { return block_.iters[axis].extent; }
  int64_t RowExtent() const {
    int64_t extent = Extent(c_.row);
    for (int axis : joined_) extent *= Extent(axis);
    return extent;
  }

  // Whether the block reads each element of a constant once, and unpacks it from 4 or 8 bits. Such
  // weights come from memory whenever a network runs, but from caches when a task is timed alone,
  // so that no measurement would choose the prefetch. Unpacking is slow enough that what a core
  // does ahead of a load covers some hundred bytes only, fewer than memory needs.
  bool StreamsNarrowConstant() const {
    const ir::Buffer& weights = program_.buffers[c_.vector_operand.buffer];
    const auto is_one = [&](int axis) { return Extent(axis) == 1; };
    return weights.constant && ir::DTypeBytes(weights.dtype) == 1 && RowExtent() == 1 &&
           absl::c_all_of(c_.row_like, is_one);
  }

  void SampleRegisterTile(Tiling& tiling) {
    std::vector<int64_t> candidates = RegisterTiles(limits_, RowExtent(), Extent(c_.vector));
    // Where elements are unpacked, blocks of them have sums of their own, so that a processor
    // always has work, and with two vectors it also begins the next step before a step ends.
    if (StreamsNarrowConstant() && Extent(c_.vector) > tiling.lanes) {
      candidates.insert(candidates.begin(), {1, 2});
    }
    const std::vector<Operand> tile =
        edit_.Add("sample_register_tile", {}, {{"candidates", candidates}});
    tiling.rows = tile[0];
    tiling.vectors = tile[1];
  }

  // Splits a loop into an outer and an inner tile loop; a loop of one iteration stays outside.
  void Cut(absl::string_view sampling, const Operand& loop, int axis, std::vector<Tile>& tiles,
           std::vector<Operand>& outer, std::vector<Operand>& inner) {
    if (Extent(axis) == 1 && axis != c_.row && axis != c_.vector) {
      outer.push_back(loop);
      return;
    }
    const SketchEditor::Tiles parts = edit_.SplitInTwo(sampling, loop);
    tiles.push_back(Tile{DecisionOf(parts.size)});
    outer.push_back(parts.outer);
    inner.push_back(parts.inner);
  }

  // The last window runs as a loop or is unrolled inside the micro-kernel's steps; the others run
  // as loops.
  void CutWindows(const std::vector<Operand>& loops, TileDecisions& decisions,
                  std::vector<Operand>& rolled, std::vector<Operand>& unrolled) {
    for (size_t w = 0; w < c_.windows.size(); ++w) {
      const Operand loop = loops[c_.windows[w]];
      const int64_t extent = Extent(c_.windows[w]);
      decisions.window_points *= extent;
      if (w + 1 < c_.windows.size() || extent == 1 || extent > limits_.whole_unroll) {
        rolled.push_back(loop);
        continue;
      }
      const Operand factor = edit_.Sample({1, extent});
      decisions.window_unroll = DecisionOf(factor);
      const std::vector<Operand> parts = edit_.Split(loop, {factor});
      rolled.push_back(parts[0]);
      unrolled.push_back(parts[1]);
    }
  }

  TileShape Shape(bool inner_row_first, int64_t lanes) const {
    return {.row_first = inner_row_first,
            .lanes = lanes,
            .element_bytes = ir::DTypeBytes(program_.buffers[block_.outputs[0]].dtype)};
  }

  std::string AxisName(int axis) const { return program_.atoms[block_.iters[axis].var].name; }

  void Name(const Variant& variant) {
    std::string row;
    for (int axis : joined_) row += AxisName(axis);
    row += AxisName(c_.row);
    const std::string vector = AxisName(c_.vector);
    sketch_.name.push_back("tile");
    sketch_.name.push_back(variant.outer_row_first ? absl::StrCat(row, vector)
                                                   : absl::StrCat(vector, row));
    sketch_.name.push_back(variant.inner_row_first ? absl::StrCat(row, vector)
                                                   : absl::StrCat(vector, row));
    if (!variant.tile_reduction) sketch_.name.push_back("whole");
  }

  Sketch sketch_;
  SketchEditor edit_{sketch_};
  int nest_;
  const ir::Program& program_;
  const ir::Block& block_;
  const Contraction& c_;
  const std::vector<int>& joined_;
  const TileLimits& limits_;
};

bool HasElementwiseConsumer(const ir::Program& program, ir::BufferId buffer, ir::NodeId producer) {
  const std::vector<ir::NodeId> readers = program.ReadersOf(buffer);
  return readers.size() == 1 &&
         ElementwiseProducer(program, readers[0], /*transposes=*/true) == producer;
}

// Returns the axes directly outside of the rows that can be fused with them: the pixels of an image
// over which no window slides, or of all images of a batch. Their product has more divisors than an
// image's width and leaves a smaller remainder. Only possible if no other block is computed at the
// tile, because the pixels of a tile are not a box.
std::vector<int> JoinedRows(const ir::Program& program, const ir::Block& block,
                            const Contraction& c) {
  const bool slides =
      absl::c_any_of(c.windows, [&](int axis) { return block.iters[axis].extent > 1; });
  if (slides || !block.guards.empty() || !program.WritersOf(c.row_operand.buffer).empty() ||
      !program.ReadersOf(block.outputs[0]).empty())
    return {};
  const auto joins = [&](int axis) { return absl::c_linear_search(c.row_like, axis); };
  int first = c.row;
  while (first > 0 && joins(first - 1)) --first;
  while (first < c.row && block.iters[first].extent == 1) ++first;
  std::vector<int> joined(c.row - first);
  absl::c_iota(joined, first);
  return joined;
}

}  // namespace

std::vector<Sketch> ApplyMultiLevelTiling(const RuleContext& context, const Sketch& sketch,
                                          int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::Block& block = found->block();
  const TileLimits& limits = found->limits;
  const std::optional<Contraction> contraction = AnalyzeContraction(program, found->id);
  if (!contraction.has_value()) return {};

  // A narrow result, e.g. of a matrix times a vector, has its lanes along the reduction.
  if (block.iters[contraction->vector].extent * 4 <= limits.lanes &&
      FindRowGroup(program, found->id, {}).has_value()) {
    return {};
  }

  const std::vector<int> joined = JoinedRows(program, block, *contraction);
  // Orders matter only if both axes have several tiles.
  const bool one_row = joined.empty() && block.iters[contraction->row].extent == 1;
  const bool one_vector = block.iters[contraction->vector].extent <= limits.lanes;
  std::vector<Variant> variants;
  for (const bool tile_reduction : {true, false}) {
    // If the reduction is not tiled, a consumer can run right after each register tile.
    if (!tile_reduction && !HasElementwiseConsumer(program, block.outputs[0], found->id)) continue;
    for (const bool outer : {true, false}) {
      for (const bool inner : {true, false}) {
        if ((one_row || one_vector) && (!outer || !inner)) continue;
        variants.push_back(
            {outer, inner, tile_reduction, (outer ? 0 : 1) + (tile_reduction ? 0 : 1)});
      }
    }
  }
  std::vector<Sketch> sketches;
  for (const Variant& variant : variants) {
    sketches.push_back(
        Tiler(sketch, nest, program, block, *contraction, joined, limits).Run(variant));
  }
  return sketches;
}

}  // namespace hone::space
