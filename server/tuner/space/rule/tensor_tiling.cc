#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/intrinsic.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"
#include "server/tuner/space/tensor_product.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {
namespace {

// Of AMX: a sum is complete after 52 cycles, and an instruction starts every 16 cycles (Intel's
// optimization manual).
constexpr int64_t kTileRegisters = 8, kTilesInFlight = 4;
constexpr int64_t kLongestVector = 64;  // that the primitive vectorize accepts

using schedule::Operand;

Tile TileOf(const SketchEditor::Tiles& tiles) { return {DecisionOf(tiles.size)}; }

struct TensorVariant {
  absl::string_view name;  // "": the usual one
  bool tile_reduction = false;
  bool pack_at_tile = false;  // each outer tile packs its rows; otherwise they are packed first
};
constexpr TensorVariant kTensorVariants[] = {{""}, {"at", false, true}, {"tiled", true, false}};

class TensorTiler {
 public:
  // `consumer`: see ElementwiseConsumer.
  TensorTiler(const Sketch& sketch, int nest, const NestBlock& found,
              const Contraction& contraction, const TensorProduct& product, int consumer)
      : sketch_(sketch),
        nest_(nest),
        program_(found.program),
        block_(found.block()),
        c_(contraction),
        product_(product),
        consumer_(consumer),
        limits_(found.limits),
        register_(sketch.nests[nest].block) {
    limits_.lanes = 1;  // register tiles are counted in blocks of the instruction
    // Several instructions multiply two parts of each operand.
    if (product.instruction->instructions > 1) limits_.registers_per_operand = 2;
    if (product.is_tile()) {
      limits_.vector_registers = kTileRegisters;
      limits_.accumulators = kTilesInFlight;
    }
  }

  bool Allows(const TensorVariant& variant) const {
    // A window leaves out some of its taps at the edge of an image, so the whole sum stays in
    // registers.
    if (variant.tile_reduction && !c_.windows.empty()) return false;
    return !variant.pack_at_tile || (PacksRows() && PacksPanels() && !PadsRows() &&
                                     !program_.buffers[c_.row_operand.buffer].constant);
  }

  Sketch Run(const TensorVariant& variant) {
    const std::optional<Operand> reader = Reader(Pad());
    std::vector<Operand> loops = edit_.Loops(register_, block_.iters.size());
    const std::optional<Operand> rows = SplitOff(loops[c_.row], product_.rows);
    const Operand columns = *SplitOff(loops[c_.vector], product_.columns);
    const Operand terms = *SplitOff(loops[c_.reduce], product_.terms);
    SampleTile();
    std::vector<Operand> unit;
    if (rows.has_value()) unit.push_back(*rows);
    unit.insert(unit.end(), {columns, terms});
    const Placed placed = Order(loops, unit, variant.tile_reduction);
    if (PacksRows() && !PacksPanels()) {
      CopyRows(*row_copy_);
    } else if (PacksRows()) {
      Pack(c_.row_operand, row_copy_, tile_[0], product_.rows, product_.terms,
           variant.pack_at_tile ? std::optional(placed.outer) : std::nullopt);
    }
    Pack(c_.vector_operand, vector_copy_, tile_[1], product_.columns, product_.group, std::nullopt);
    if (reader.has_value()) edit_.Add("reverse_compute_at", {*reader, placed.complete});
    if (product_.joins_rows())
      edit_.Add("transform_layout", {register_, schedule::Text(BlockLayout())});
    edit_.Add("tensorize", {unit[0], schedule::Text(std::string(product_.instruction->name))});
    edit_.Add("parallel", {placed.outer});
    sketch_.nests[nest_].state = Nest::State::kDone;
    if (reader.has_value()) FuseReader(*reader, placed.loops);
    sketch_.name.push_back(std::string(product_.instruction->name));
    if (!variant.name.empty()) {
      sketch_.name.push_back(std::string(variant.name));
      ++sketch_.minor;
    }
    return std::move(sketch_);
  }

 private:
  // The loops around the register tiles.
  struct Placed {
    Operand outer;     // all outer tile loops, fused
    Operand complete;  // the innermost loop in which sums are complete
    int loops;         // number of loops down to `complete`
  };

  int64_t Extent(int axis) const { return block_.iters[axis].extent; }
  int64_t Blocks(int axis, int64_t size) const { return ir::CeilDivInt(Extent(axis), size); }
  bool IsUneven(int axis, int64_t size) const { return Extent(axis) % size != 0; }
  bool PadsTerms() const { return IsUneven(c_.reduce, product_.terms); }
  bool PadsRows() const { return IsUneven(c_.row, product_.rows) || PadsTerms(); }
  bool PadsColumns() const { return IsUneven(c_.vector, product_.columns) || PadsTerms(); }

  // Whether the row operand is packed. An instruction for a single row or for tiles reads it in
  // place if it is contiguous along the reduction.
  bool PacksRows() const {
    return product_.joins_rows() || PadsRows() ||
           !ReadsInPlace(program_, block_, c_.row_operand, c_.reduce);
  }

  // Whether the packed rows form panels. Otherwise the copy is only longer than the operand.
  bool PacksPanels() const { return c_.windows.empty() && c_.row_operand.panel_dimension >= 0; }

  // Rounds the axes up to whole blocks. Returns the block that copies the result back, if there is
  // one.
  std::optional<Operand> Pad() {
    if (!PadsRows() && !PadsColumns()) return std::nullopt;
    std::vector<Operand> operands(block_.iters.size(), Literal(1));
    operands[c_.row] = Literal(product_.rows);
    operands[c_.vector] = Literal(product_.columns);
    operands[c_.reduce] = Literal(product_.terms);
    operands.insert(operands.begin(), register_);
    const bool crops = IsUneven(c_.row, product_.rows) || IsUneven(c_.vector, product_.columns);
    const int copies = (PadsRows() ? 1 : 0) + (PadsColumns() ? 1 : 0);
    const std::vector<Operand> made =
        edit_.Add("pad_einsum", std::move(operands), {}, copies + (crops ? 1 : 0));
    std::vector<ir::BufferId> loaded;  // the copies are in the order of the loads
    program_.pool.VisitLoads(block_.values[0],
                             [&](const ir::Expr& load) { loaded.push_back(load.buffer); });
    const size_t rows_at = loaded[0] == c_.row_operand.buffer || !PadsColumns() ? 0 : 1;
    if (PadsRows()) row_copy_ = made[rows_at];
    if (PadsColumns()) vector_copy_ = made[PadsRows() ? 1 - rows_at : 0];
    return crops ? std::optional(made.back()) : std::nullopt;
  }

  // Returns the block that reads the sums at the tile, and takes blocks of them apart: the consumer
  // or one that copies; nullopt if the sums are computed in their place.
  std::optional<Operand> Reader(const std::optional<Operand>& cropped) {
    if (consumer_ >= 0) {
      if (cropped.has_value()) edit_.Add("compute_inline", {*cropped});
      return sketch_.nests[consumer_].block;
    }
    if (cropped.has_value() || !product_.joins_rows()) return cropped;
    return edit_.Add("cache_write", {register_, schedule::Text("global")})[0];
  }

  // Splits a loop whose extent is a multiple of `size`; afterwards `loop` is the outer loop.
  // Returns the inner one, or nullopt if the size is 1.
  std::optional<Operand> SplitOff(Operand& loop, int64_t size) {
    if (size == 1) return std::nullopt;
    const std::vector<Operand> parts = edit_.Split(loop, {Literal(size)});
    loop = parts[0];
    return parts[1];
  }

  void SampleTile() {
    tile_ = edit_.Add("sample_register_tile", {},
                      {{"candidates", RegisterTiles(limits_, Blocks(c_.row, product_.rows),
                                                    Blocks(c_.vector, product_.columns))}});
    k_unroll_ = edit_.Sample(KUnrolls(limits_, Blocks(c_.reduce, product_.terms)));
  }

  // Schedules the padded copy of an image, whose layout stays the same, because windows overlap.
  void CopyRows(const Operand& copy) {
    std::vector<Operand> loops =
        edit_.Loops(copy, program_.buffers[c_.row_operand.buffer].shape.size());
    edit_.Add("vectorize", {loops.back()});
    loops.pop_back();
    edit_.Add("parallel", {edit_.Fuse(loops)});
  }

  // Copies an operand into panels as wide as the register tile. In a panel, groups of `group` terms
  // are adjacent for each row or column: A[i, k] → [i / T, k / g, i % T, k % g]. The copy, `padded`
  // or a new one, runs inside the loop `at`, or before the nest.
  void Pack(const ContractionOperand& operand, const std::optional<Operand>& padded,
            const Operand& tile, int64_t block, int64_t group, const std::optional<Operand>& at) {
    const ir::Buffer& buffer = program_.buffers[operand.buffer];
    const Operand copy = padded.has_value()
                             ? *padded
                             : edit_.Add("cache_read", {register_, schedule::Text(buffer.name),
                                                        schedule::Text("global")})[0];
    const bool inside = at.has_value() && !buffer.constant;
    if (inside) edit_.Add("compute_at", {copy, *at});
    const int panel = operand.panel_dimension,
              terms = ReducedDimension(program_, block_, operand, c_.reduce);
    const auto rank = static_cast<int>(buffer.shape.size());
    const std::string size = block == 1 ? "$0" : absl::StrCat("$0*", block);
    std::vector<std::string> from, to, taps;
    std::vector<int> others;
    for (int d = 0; d < rank; ++d) {
      from.push_back(absl::StrCat("a", d));
      if (d == panel || d == terms) continue;
      others.push_back(d);
      (operand.reduces[d] ? taps : to).push_back(from.back());
    }
    to.push_back(absl::StrCat(from[panel], " / ", size));
    to.insert(to.end(), taps.begin(), taps.end());
    to.push_back(absl::StrCat(from[terms], " / ", group));
    to.push_back(absl::StrCat(from[panel], " % ", size));
    to.push_back(absl::StrCat(from[terms], " % ", group));
    edit_.Add(
        "transform_layout",
        {copy,
         schedule::Text(absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(to, ", "))),
         tile});
    if (buffer.constant) return;  // copied once, ahead of time

    std::vector<Operand> loops = edit_.Loops(copy, rank + (inside ? 1 : 0));
    if (inside) loops.erase(loops.begin());
    std::optional<Operand> inner = SplitOff(loops[panel], block);
    const std::vector<Operand> panels = edit_.Split(loops[panel], {tile});
    const std::vector<Operand> steps = edit_.Split(loops[terms], {Literal(group)});
    std::vector<Operand> outer;
    for (const int d : others) outer.push_back(loops[d]);
    outer.push_back(panels[0]);
    std::vector<Operand> order = outer;
    Append(order, {steps[0], panels[1]});
    if (inner.has_value()) order.push_back(*inner);
    order.push_back(steps[1]);
    edit_.Add("reorder", order);
    // If the terms are not adjacent in memory, the rows of a block are interleaved. A row of a tile
    // is as long as the longest vector.
    const bool interleaves =
        terms != rank - 1 && inner.has_value() && group * block <= kLongestVector;
    edit_.Add("vectorize", {interleaves ? edit_.Fuse({*inner, steps[1]}) : steps[1]});
    if (!inside) edit_.Add("parallel", {edit_.Fuse(outer)});
  }

  // Orders the loops: outer tiles, tiles of the reduction, inner tiles, steps, and the unrolled
  // register tile around the loops of the instruction.
  Placed Order(const std::vector<Operand>& loops, const std::vector<Operand>& unit,
               bool tile_reduction) {
    const std::vector<Operand> row = edit_.Split(loops[c_.row], {tile_[0]});
    const std::vector<Operand> vector = edit_.Split(loops[c_.vector], {tile_[1]});
    const std::vector<Operand> steps = edit_.Split(loops[c_.reduce], {k_unroll_});
    TileDecisions decisions{.rows = DecisionOf(tile_[0]),
                            .vectors = DecisionOf(tile_[1]),
                            .k_unroll = DecisionOf(k_unroll_),
                            .guarded = !block_.guards.empty(),
                            .short_steps = !c_.windows.empty() &&
                                           Blocks(c_.reduce, product_.terms) < limits_.few_steps};
    std::vector<Operand> outer, inner;
    for (int axis : c_.shared) outer.push_back(loops[axis]);
    for (int axis : c_.row_like) {
      if (Extent(axis) == 1) {
        outer.push_back(loops[axis]);
        continue;
      }
      const SketchEditor::Tiles tiles = edit_.SplitInTwo("sample_perfect_tile", loops[axis]);
      decisions.others.push_back(TileOf(tiles));
      outer.push_back(tiles.outer);
      inner.push_back(tiles.inner);
    }
    const SketchEditor::Tiles vector_tiles = edit_.SplitInTwo("sample_tile", vector[0]);
    const SketchEditor::Tiles row_tiles = edit_.SplitInTwo("sample_tile", row[0]);
    decisions.vector = TileOf(vector_tiles);
    decisions.row = TileOf(row_tiles);
    Append(outer, {row_tiles.outer, vector_tiles.outer});
    Append(inner, {row_tiles.inner, vector_tiles.inner});
    std::vector<Operand> order = outer;
    Operand step = steps[0];
    if (tile_reduction) {
      const SketchEditor::Tiles parts = edit_.SplitInTwo("sample_tile", steps[0]);
      decisions.reduce = TileOf(parts);
      order.push_back(parts.outer);
      step = parts.inner;
    }
    Append(order, inner);
    std::vector<Operand> unrolled;
    CutWindows(loops, decisions, order, unrolled);
    order.push_back(step);
    Append(unrolled, {steps[1], row[1], vector[1]});
    Append(order, unrolled);
    Append(order, unit);
    edit_.Add("reorder", order);
    for (const Operand& loop : unrolled) edit_.Add("unroll", {loop});
    const int64_t bytes = ir::DTypeBytes(program_.buffers[c_.row_operand.buffer].dtype);
    AddTileConstraints(limits_, decisions,
                       {.lanes = product_.columns / product_.rows,
                        .element_bytes = product_.rows * product_.terms * bytes},
                       sketch_.constraints);
    const Operand fused = edit_.Fuse(outer);
    if (tile_reduction) return {fused, fused, 1};
    return {fused, vector_tiles.inner, 1 + static_cast<int>(inner.size())};
  }

  // The last window runs as a loop or is unrolled in the body; the others run as loops.
  void CutWindows(const std::vector<Operand>& loops, TileDecisions& decisions,
                  std::vector<Operand>& rolled, std::vector<Operand>& unrolled) {
    for (const int axis : c_.windows) {
      decisions.window_points *= Extent(axis);
      if (axis != c_.windows.back() || Extent(axis) == 1 || Extent(axis) > limits_.whole_unroll) {
        rolled.push_back(loops[axis]);
        continue;
      }
      const Operand factor = edit_.Sample({1, Extent(axis)});
      decisions.window_unroll = DecisionOf(factor);
      const std::vector<Operand> parts = edit_.Split(loops[axis], {factor});
      rolled.push_back(parts[0]);
      unrolled.push_back(parts[1]);
    }
  }

  // C[…, i, …, j] → […, i / rows, j / columns, i % rows, j % columns].
  std::string BlockLayout() const {
    std::vector<std::string> from, to;
    std::string row, column;
    for (size_t d = 0; d < block_.indices.size(); ++d) {
      from.push_back(absl::StrCat("a", d));
      const ir::AtomId axis = block_.indices[d].SingleAtom();
      if (axis == block_.iters[c_.row].var) {
        row = from.back();
      } else if (axis == block_.iters[c_.vector].var) {
        column = from.back();
      } else {
        to.push_back(from.back());
      }
    }
    to.push_back(absl::StrCat(row, " / ", product_.rows));
    to.push_back(absl::StrCat(column, " / ", product_.columns));
    to.push_back(absl::StrCat(row, " % ", product_.rows));
    to.push_back(absl::StrCat(column, " % ", product_.columns));
    return absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(to, ", "));
  }

  void FuseReader(const Operand& reader, int loops) {
    if (consumer_ < 0) {
      sketch_.nests.push_back(
          {.name = absl::StrCat(sketch_.nests[nest_].name, "_copy"), .block = reader});
    }
    Nest& nest = consumer_ < 0 ? sketch_.nests.back() : sketch_.nests[consumer_];
    nest.state = Nest::State::kFused;
    nest.loops = loops + static_cast<int>(block_.indices.size());
    nest.lanes = product_.columns;
  }

  Sketch sketch_;
  SketchEditor edit_{sketch_};
  const int nest_;
  const ir::Program& program_;
  const ir::Block& block_;
  const Contraction& c_;
  const TensorProduct product_;
  const int consumer_;
  TileLimits limits_;
  const Operand register_;
  std::vector<Operand> tile_;  // rows and vectors of the register tile
  Operand k_unroll_;
  std::optional<Operand> row_copy_, vector_copy_;  // padded copies of the operands
};

}  // namespace

// Tiles a contraction around an instruction that multiplies small matrices or vectors. Also keeps
// the unchanged sketch, for the other rules.
std::vector<Sketch> ApplyTensorTiling(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const std::optional<Contraction> contraction = AnalyzeContraction(found->program, found->id);
  if (!contraction.has_value()) return {};
  const std::vector<TensorProduct> products =
      TensorProductsFor(*context.target, found->program, found->id, *contraction);
  if (products.empty()) return {};
  const int consumer = ElementwiseConsumer(sketch, found->program, found->id);
  std::vector<Sketch> sketches = {sketch};
  for (const TensorProduct& product : products) {
    for (const TensorVariant& variant : kTensorVariants) {
      TensorTiler tiler(sketch, nest, *found, *contraction, product, consumer);
      if (!tiler.Allows(variant)) continue;
      sketches.push_back(tiler.Run(variant));
    }
  }
  return sketches;
}

}  // namespace hone::space
