#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/chain_group.h"
#include "server/tuner/space/panel_copy.h"
#include "server/tuner/space/row_group.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {
namespace {

using schedule::Operand;

// Computing a block of rows at a time saves several transfers of its intermediate results, which
// fit into L2, to and from a farther cache. This is worth rereading vector operands of up to this
// many times the size of L2.
constexpr int64_t kMostVectors = 4;

// Computes every stage at a block of rows of the last one. A block consists of whole register
// tiles, so that no contraction has a remainder.
//   parallel batch, blocks of rows
//     contraction  | columns_0 | reduction_0 | columns_1 | register tiles of the block | steps
//     reduction of rows, element-wise stage  | rows of the block | columns in vectors
class RowChainer {
 public:
  RowChainer(const Sketch& sketch, const ir::Program& program, const target::Target& target,
             const ChainGroup& group, const TileLimits& limits)
      : sketch_(sketch), program_(program), target_(target), group_(group), limits_(limits) {
    const ir::Block& first = program_.BlockOf(group_.first().block);
    const Contraction& c = *group_.first().contraction;
    tiles_ = RegisterTiles(TileLimits::Of(target_, DTypeOf(first)), first.iters[c.row].extent,
                           first.iters[c.vector].extent);
    least_rows_ = tiles_[0];
    for (size_t t = 0; t < tiles_.size(); t += 2) least_rows_ = std::min(least_rows_, tiles_[t]);
  }

  // Whether there are rows for all cores. Only rows are divided among threads.
  bool HasRowsForAll() const {
    return group_.batch * ir::CeilDivInt(group_.height, least_rows_) >= limits_.cores;
  }

  // Whether computing whole tensors instead can seldom pay: they do not fit into the L2 caches of
  // all cores, and the vector operands, which every block of rows reads again, are small.
  bool IsClearlyBetter() const {
    return group_.batch * group_.height * group_.row_bytes > limits_.cores * limits_.block_bytes &&
           group_.vector_bytes <= kMostVectors * limits_.block_bytes;
  }

  Sketch Run() {
    const std::vector<Operand> tile =
        edit_.Add("sample_register_tile", {}, {{"candidates", tiles_}});
    rows_ = tile[0];
    first_vectors_ = tile[1];

    const ChainGroup::Member& last = group_.members.back();
    const ir::Block& block = program_.BlockOf(last.block);
    const Operand& block_register = sketch_.NestOf(block.name).block;
    std::vector<Operand> loops = edit_.Loops(block_register, block.iters.size());
    if (last.contraction.has_value()) {
      Contract(last, block, loops);
    } else {
      const int row = AxesOf(block).spatial[group_.rows - 1];
      CutRows(block, loops, edit_.Split(loops[row], {rows_})[0]);
      if (HasColumns(block)) vectors_.Columns(loops.back(), block.iters.back().extent);
    }
    for (size_t m = group_.members.size() - 1; m-- > 0;) AtBlockOfRows(group_.members[m]);
    for (const ChainGroup::Member& member : group_.members)
      sketch_.NestOf(program_.BlockOf(member.block).name).state = Nest::State::kDone;
    edit_.Add("parallel", {*threads_});
    sketch_.name.push_back("chain");
    return std::move(sketch_);
  }

 private:
  ir::DType DTypeOf(const ir::Block& block) const {
    return program_.buffers[block.outputs[0]].dtype;
  }

  bool HasColumns(const ir::Block& block) const {
    return static_cast<int>(block.iters.size()) > group_.rows;
  }

  // Splits the loop over the register tiles of all rows into blocks, and fuses these with the other
  // row axes for threads. Returns the loop over a block's register tiles.
  Operand CutRows(const ir::Block& block, const std::vector<Operand>& loops, const Operand& tiles) {
    // More register tiles than this do not fit.
    const int64_t most =
        std::max<int64_t>(1, limits_.block_bytes / (least_rows_ * group_.row_bytes));
    const std::vector<Operand> sizes =
        edit_.Add("sample_tile", {tiles}, {{"parts", {2}}, {"max_inner", {most}}});
    const std::vector<Operand> parts = edit_.Add("split", {tiles, sizes[0], sizes[1]}, {}, 2);
    row_tile_ = Tile{DecisionOf(sizes[0])};
    const BlockAxes axes = AxesOf(block);
    std::vector<Operand> outer;
    for (int d = 0; d + 1 < group_.rows; ++d) outer.push_back(loops[axes.spatial[d]]);
    outer.push_back(parts[0]);
    threads_ = edit_.Fuse(outer);
    ConstrainRows();
    return parts[1];
  }

  // Adds constraints: at least as many blocks as cores or register tiles, and the results of all
  // members for one block of rows fit into L2, unless the block is a single register tile.
  void ConstrainRows() {
    const int blocks = row_tile_.outer, size = blocks + 1, rows = DecisionOf(rows_);
    sketch_.constraints.push_back(
        {"parallel", size + 1,
         [=, batch = group_.batch, cores = limits_.cores](absl::Span<const int64_t> d) {
           return batch * d[blocks] >= std::min(cores, batch * d[blocks] * d[size]);
         }});
    sketch_.constraints.push_back(
        {"results of a block of rows", size + 1,
         [=, bytes = group_.row_bytes, most = limits_.block_bytes](absl::Span<const int64_t> d) {
           return d[size] == 1 || d[size] * d[rows] * bytes <= most;
         }});
  }

  void AtBlockOfRows(const ChainGroup::Member& member) {
    constexpr int kAbove = 1;  // the loop over threads
    const ir::Block& block = program_.BlockOf(member.block);
    const Operand& block_register = sketch_.NestOf(block.name).block;
    edit_.Add("compute_at", {block_register, *threads_});
    std::vector<Operand> loops = edit_.Loops(block_register, kAbove + block.iters.size());
    loops.erase(loops.begin(), loops.begin() + kAbove);
    if (member.contraction.has_value()) {
      Contract(member, block, loops);
    } else if (block.reducer != ir::Reducer::kNone) {
      vectors_.Lanes(block_register, loops.back(), block.iters.back().extent, kAbove + group_.rows);
    } else if (HasColumns(block)) {
      vectors_.Columns(loops.back(), block.iters.back().extent);
    }
  }

  // Tiles a contraction for registers and caches. `loops`: one per iter. If it is the last member,
  // also cuts its rows into blocks.
  void Contract(const ChainGroup::Member& member, const ir::Block& block,
                const std::vector<Operand>& loops) {
    const Contraction& c = *member.contraction;
    const Operand& block_register = sketch_.NestOf(block.name).block;
    const TileLimits limits = TileLimits::Of(target_, DTypeOf(block));
    const int64_t columns = block.iters[c.vector].extent;
    const Operand vectors =
        member.block == group_.first().block ? first_vectors_ : SampleVectors(limits, columns);
    const Operand k_unroll = edit_.Sample(KUnrolls(limits, block.iters[c.reduce].extent));
    const Tiling tiling{.contraction = c,
                        .rows = rows_,
                        .vectors = vectors,
                        .k_unroll = k_unroll,
                        .lanes = std::min(limits.lanes, columns)};
    const std::vector<Operand> tiled =
        edit_.Add("register_tile", {block_register, loops[c.row], loops[c.vector], loops[c.reduce],
                                    rows_, vectors, Literal(tiling.lanes), k_unroll});
    const Operand tiles = threads_.has_value() ? tiled[0] : CutRows(block, loops, tiled[0]);
    const SketchEditor::Tiles vector = edit_.SplitInTwo("sample_tile", tiled[1]);
    const SketchEditor::Tiles reduce = edit_.SplitInTwo("sample_tile", tiled[2]);

    std::vector<Operand> order;
    const std::vector<int> spatial = AxesOf(block).spatial;
    for (auto axis = spatial.begin() + group_.rows; axis != spatial.end(); ++axis) {
      if (*axis != c.vector) order.push_back(loops[*axis]);
    }
    order.insert(order.end(), {vector.outer, reduce.outer, vector.inner, tiles});
    for (int axis : c.windows) order.push_back(loops[axis]);
    order.push_back(reduce.inner);
    edit_.Add("reorder", order);

    TileDecisions decisions{.rows = DecisionOf(rows_),
                            .vectors = DecisionOf(vectors),
                            .k_unroll = DecisionOf(k_unroll),
                            .vector = Tile{DecisionOf(vector.size)},
                            .row = row_tile_,
                            .reduce = Tile{DecisionOf(reduce.size)}};
    decisions.window_points = PointsOf(block, c.windows);
    AddCacheConstraints(limits, decisions,
                        {.row_first = false,
                         .lanes = tiling.lanes,
                         .element_bytes = ir::DTypeBytes(DTypeOf(block))},
                        sketch_.constraints);
    if (Packs(c, columns, limits)) {
      PanelCopy(sketch_, block_register, tiling, program_, limits, /*rows=*/false)
          .Run(/*at_tile=*/false);
    }
  }

  // Samples the vectors of a register tile that has as many rows as that of the first contraction.
  Operand SampleVectors(const TileLimits& limits, int64_t columns) {
    const int64_t most =
        std::min(limits.max_vectors, ir::CeilDivInt(columns, std::min(limits.lanes, columns)));
    std::vector<int64_t> candidates(most);
    for (int64_t v = 0; v < most; ++v) candidates[v] = v + 1;
    const Operand vectors = edit_.Sample(std::move(candidates));
    const int rows = DecisionOf(rows_), at = DecisionOf(vectors);
    const auto fits = [registers = limits.vector_registers, most](int64_t rows, int64_t vectors) {
      return vectors <= most && rows * vectors + vectors + 1 <= registers;
    };
    sketch_.constraints.push_back(
        {"registers", at + 1, [=, least = limits.accumulators](absl::Span<const int64_t> d) {
           return d[at] == 1 ? d[rows] >= least || !fits(d[rows], 2)
                             : fits(d[rows], d[at]) &&
                                   (d[rows] * d[at] >= least || !fits(d[rows], d[at] + 1));
         }});
    return vectors;
  }

  // Whether to copy the vector operand into panels. For a constant, this is done ahead of time and
  // costs nothing. Otherwise it pays if vectors are far apart or not contiguous, because every
  // block of rows reads them again.
  bool Packs(const Contraction& c, int64_t columns, const TileLimits& limits) const {
    if (!HasPanels(program_, c)) return false;
    const ir::Buffer& buffer = program_.buffers[c.vector_operand.buffer];
    const bool far_apart =
        buffer.shape.back() * ir::DTypeBytes(buffer.dtype) >= limits.collision_bytes;
    return !c.vector_contiguous || ((buffer.constant || far_apart) && columns > limits.lanes);
  }

  Sketch sketch_;
  SketchEditor edit_{sketch_};
  const ir::Program& program_;
  const target::Target& target_;
  const ChainGroup& group_;
  const TileLimits& limits_;  // for the last member
  RowVectors vectors_{edit_, limits_};
  std::vector<int64_t> tiles_;    // (rows, vectors) of the first contraction
  int64_t least_rows_ = 1;        // the fewest rows in tiles_
  Operand rows_, first_vectors_;  // the register tile
  Tile row_tile_;                 // register tiles: blocks, and size of a block
  std::optional<Operand> threads_;
};

bool IsPartOfLongerChain(const ir::Program& program, ir::NodeId last,
                         absl::Span<const ir::NodeId> open) {
  return absl::c_any_of(open, [&](ir::NodeId other) {
    if (other == last) return false;
    const std::optional<ChainGroup> group = FindChainGroup(program, other, open);
    return group.has_value() &&
           absl::c_any_of(group->members,
                          [&](const ChainGroup::Member& member) { return member.block == last; });
  });
}

}  // namespace

// Schedules chains of contractions. Without this rule, the tensors between them are computed as a
// whole, and read from memory.
std::vector<Sketch> ApplyRowChain(const RuleContext& context, const Sketch& sketch, int nest) {
  // The rule is applied to the last block first, because a group is found from its last member.
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const std::vector<ir::NodeId> open = OpenBlocks(sketch, program);
  const std::optional<ChainGroup> group = FindChainGroup(program, found->id, open);
  if (!group.has_value() || IsPartOfLongerChain(program, found->id, open)) return {};
  RowChainer chainer(sketch, program, *context.target, *group, found->limits);
  if (!chainer.HasRowsForAll()) return {};
  Sketch whole = sketch;
  if (chainer.IsClearlyBetter()) ++whole.minor;
  return {std::move(whole), chainer.Run()};
}

}  // namespace hone::space
