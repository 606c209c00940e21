#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/space/rule/rules.h"
#include "server/space/sketch_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

// A copy pays off only if each of its elements is read at least this often.
constexpr int64_t kLeastReuse = 4;

// One operand of a tiled contraction, packed into panels of the register tile's width.
class Packer {
 public:
  Packer(Sketch& sketch, int nest, const ir::Program& program, const TileLimits& limits, bool rows)
      : sketch_(sketch),
        nest_(nest),
        limits_(limits),
        tiling_(*sketch.nests[nest].tiling),
        rows_(rows),
        operand_(rows ? tiling_.contraction.row_operand : tiling_.contraction.vector_operand),
        buffer_(program.buffers[operand_.buffer]) {
    const std::vector<ir::NodeId> writers = program.WritersOf(operand_.buffer);
    for (const Nest& other : sketch.nests) {
      if (!writers.empty() && other.name == program.BlockOf(writers[0]).name) writer_ = &other;
    }
  }

  // If `at_tile`, each tile of the reduction copies what it needs; otherwise everything is copied
  // first.
  void Run(bool at_tile) {
    if (writer_ != nullptr) {  // computed ahead of time, directly into panels
      Layout(writer_->block);
      return;
    }
    const Operand block = sketch_.nests[nest_].block;
    const Operand copy =
        edit_.Add("cache_read", {block, schedule::Text(buffer_.name), schedule::Text("global")})[0];
    const int rank = static_cast<int>(buffer_.shape.size());
    if (at_tile && !buffer_.constant) edit_.Add("compute_at", {copy, *tiling_.reduce_outer});
    in_pieces_ = rows_ && operand_.reduces[rank - 1];
    Layout(copy);
    if (buffer_.constant) return;  // copied once, ahead of time
    const int above = at_tile ? 2 : 0;
    std::vector<Operand> loops = edit_.Loops(copy, above + rank);
    loops.erase(loops.begin(), loops.begin() + above);
    Schedule(loops, at_tile);
  }

 private:
  // Panels: dimensions without reduction, panel number, reduced dimensions, position in the panel.
  // E.g. B[k, j] → [j / T, k, j % T]. Rows are split into pieces with one element for each step of
  // the micro-kernel's body. Copies can then move whole vectors, and all distances in the body are
  // constant: A[i, k] → [i / T, k / U, i % T, k % U].
  void Layout(const Operand& copy) {
    const std::string size = rows_ ? "$0" : absl::StrCat("$0*", tiling_.lanes);
    const std::string panel = absl::StrCat("a", operand_.panel_dimension);
    std::vector<std::string> from, outer, inner;
    for (size_t d = 0; d < buffer_.shape.size(); ++d) {
      from.push_back(absl::StrCat("a", d));
      if (static_cast<int>(d) != operand_.panel_dimension)
        (operand_.reduces[d] ? inner : outer).push_back(from.back());
    }
    const std::string last = from.back();
    if (in_pieces_) inner.back() = absl::StrCat(last, " / $1");
    outer.push_back(absl::StrCat(panel, " / ", size));
    outer.insert(outer.end(), inner.begin(), inner.end());
    outer.push_back(absl::StrCat(panel, " % ", size));
    if (in_pieces_) outer.push_back(absl::StrCat(last, " % $1"));
    std::vector<Operand> operands = {
        copy,
        schedule::Text(absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(outer, ", "))),
        rows_ ? tiling_.rows : tiling_.vectors};
    if (in_pieces_) operands.push_back(tiling_.k_unroll);
    edit_.Add("transform_layout", std::move(operands));
  }

  // Schedules a copy that runs in panel order. At a tile, vectors are copied in row order instead,
  // and the rows, which are on different pages, are prefetched.
  void Schedule(const std::vector<Operand>& loops, bool at_tile) {
    const auto last = static_cast<int>(buffer_.shape.size()) - 1;
    if (!rows_ && operand_.panel_dimension != last && operand_.reduces[last]) {
      Transpose(loops, at_tile);
      return;
    }
    std::vector<Operand> outer, order, inner;
    std::vector<Operand> panel = rows_
                                     ? edit_.Split(loops[operand_.panel_dimension], {tiling_.rows})
                                     : edit_.Split(loops[operand_.panel_dimension],
                                                   {tiling_.vectors, Literal(tiling_.lanes)});
    for (int d = 0; d <= last; ++d) {
      if (d == operand_.panel_dimension) continue;
      if (!operand_.reduces[d]) {
        outer.push_back(loops[d]);
      } else if (d == last && in_pieces_) {
        const std::vector<Operand> parts = edit_.Split(loops[d], {tiling_.k_unroll});
        order.push_back(parts[0]);
        inner.push_back(parts[1]);
      } else {
        order.push_back(loops[d]);
      }
    }
    const bool by_rows = at_tile && !rows_ && !order.empty();
    const std::optional<Operand> ahead = order.empty() ? std::nullopt : std::optional(order.back());
    (by_rows ? order : outer).push_back(panel[0]);
    order.insert(order.begin(), outer.begin(), outer.end());
    order.insert(order.end(), panel.begin() + 1, panel.end());
    Append(order, inner);
    edit_.Add("reorder", order);
    if (in_pieces_) edit_.Add("vectorize", inner);
    if (ahead.has_value()) {
      edit_.Add("annotate", {*ahead, schedule::Text("prefetch"), Literal(limits_.prefetch_rows)});
    }
    if (!rows_) {
      edit_.Add("unroll", {panel[1]});
      edit_.Add("vectorize", {panel[2]});
    }
    if (!at_tile) edit_.Add("parallel", {edit_.Fuse(outer)});
  }

  // Schedules a copy of data that is contiguous along the reduction. Whole vectors are read and
  // scattered over a panel, which is in L1. If the vectors were gathered instead, each lane would
  // be read from a separate cache line.
  void Transpose(const std::vector<Operand>& loops, bool at_tile) {
    const auto last = static_cast<int>(buffer_.shape.size()) - 1;
    const std::vector<Operand> panel =
        edit_.Split(loops[operand_.panel_dimension], {tiling_.vectors, Literal(tiling_.lanes)});
    // A tile covers at least one body of the micro-kernel along the reduction.
    const Operand lane_count =
        at_tile ? tiling_.k_unroll : Literal(std::min(limits_.lanes, buffer_.shape[last]));
    const std::vector<Operand> lanes = edit_.Split(loops[last], {lane_count});
    std::vector<Operand> outer, inner(panel.begin() + 1, panel.end());
    for (int d = 0; d < last; ++d) {
      if (d != operand_.panel_dimension) (operand_.reduces[d] ? inner : outer).push_back(loops[d]);
    }
    outer.push_back(panel[0]);
    std::vector<Operand> order = outer;
    Append(order, inner);
    Append(order, lanes);
    edit_.Add("reorder", order);
    edit_.Add("vectorize", {lanes[1]});
    if (!at_tile) edit_.Add("parallel", {edit_.Fuse(outer)});
  }

  Sketch& sketch_;
  SketchEditor edit_{sketch_};
  int nest_;
  const TileLimits& limits_;
  const Tiling tiling_;
  bool rows_;
  const ContractionOperand operand_;
  const ir::Buffer buffer_;
  const Nest* writer_ = nullptr;  // for constants that are computed ahead of time
  bool in_pieces_ = false;
};

}  // namespace

std::vector<Sketch> ApplyPack(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest, Nest::State::kTiled);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::Block& block = found->block();
  const TileLimits& limits = found->limits;
  const Tiling& tiling = *sketch.nests[nest].tiling;
  const Contraction& c = tiling.contraction;
  // Each element of the operand is read once per tile along the other operand's axes.
  const auto pays = [&](const ContractionOperand& operand, int64_t reads) {
    if (operand.panel_dimension < 0) return false;
    const ir::Buffer& buffer = program.buffers[operand.buffer];
    return buffer.constant || (program.WritersOf(operand.buffer).empty() && reads >= kLeastReuse);
  };
  int64_t row_points = block.iters[c.row].extent;
  for (int axis : c.row_like) row_points *= block.iters[axis].extent;
  // An operand as wide as one vector already is a panel.
  const bool is_panel = c.vector_contiguous && block.iters[c.vector].extent <= limits.lanes;
  const bool pack_vectors = !is_panel && pays(c.vector_operand, row_points / 8);
  const bool pack_rows = pays(c.row_operand, block.iters[c.vector].extent / (2 * limits.lanes));
  if (!pack_vectors) return {};

  // Where an operand is packed: before the nest, or in each tile of the reduction.
  enum class Place { kNowhere, kBefore, kAtTile };
  const auto packed = [&](Place rows, Place vectors) {
    Sketch result = sketch;
    std::string name = "pack";
    if (rows != Place::kNowhere) {
      Packer(result, nest, program, limits, /*rows=*/true).Run(rows == Place::kAtTile);
      absl::StrAppend(&name, program.buffers[c.row_operand.buffer].name);
    }
    Packer(result, nest, program, limits, /*rows=*/false).Run(vectors == Place::kAtTile);
    absl::StrAppend(&name, program.buffers[c.vector_operand.buffer].name);
    result.name.push_back(std::move(name));
    if (rows == Place::kAtTile || vectors == Place::kAtTile) {
      result.name.push_back(rows == vectors ? "both_at" : "at");
      ++result.minor;
    }
    return result;
  };
  std::vector<Sketch> sketches;
  // Computing constants directly into panels ahead of time costs nothing.
  const bool computed = !program.WritersOf(c.vector_operand.buffer).empty();
  if (c.vector_contiguous && !computed) sketches.push_back(sketch);
  sketches.push_back(packed(Place::kNowhere, Place::kBefore));
  if (pack_rows) sketches.push_back(packed(Place::kBefore, Place::kBefore));
  if (!tiling.reduce_outer.has_value()) return sketches;
  if (!program.buffers[c.vector_operand.buffer].constant) {
    // Each tile packs its part of the vectors when it needs them. The rows, which every tile reads
    // again, are not packed or are packed once before the nest.
    sketches.push_back(packed(Place::kNowhere, Place::kAtTile));
    if (pack_rows) sketches.push_back(packed(Place::kBefore, Place::kAtTile));
    // If the vectors are read across their rows, each thread copies both operands.
    if (pack_rows && !c.vector_contiguous && !program.buffers[c.row_operand.buffer].constant)
      sketches.push_back(packed(Place::kAtTile, Place::kAtTile));
  } else if (pack_rows && !program.buffers[c.row_operand.buffer].constant) {
    sketches.push_back(packed(Place::kAtTile, Place::kBefore));
  }
  return sketches;
}

}  // namespace hone::space
