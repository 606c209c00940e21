#include "server/tuner/space/panel_copy.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::space {

using schedule::Operand;

PanelCopy::PanelCopy(Sketch& sketch, const Operand& block, const Tiling& tiling,
                     const ir::Program& program, const TileLimits& limits, bool rows)
    : edit_(sketch),
      block_(block),
      limits_(limits),
      tiling_(tiling),
      rows_(rows),
      operand_(rows ? tiling_.contraction.row_operand : tiling_.contraction.vector_operand),
      buffer_(program.buffers[operand_.buffer]) {
  const std::vector<ir::NodeId> writers = program.WritersOf(operand_.buffer);
  for (const Nest& nest : sketch.nests) {
    if (!writers.empty() && nest.name == program.BlockOf(writers[0]).name) writer_ = nest.block;
  }
}

void PanelCopy::Run(bool at_tile) {
  if (writer_.has_value()) {  // the operand is computed ahead of time, directly into panels
    Layout(*writer_);
    return;
  }
  const Operand copy =
      edit_.Add("cache_read", {block_, schedule::Text(buffer_.name), schedule::Text("global")})[0];
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

// Sets the layout of the panels: dimensions without reduction, panel number, reduced dimensions,
// position in the panel, e.g. B[k, j] → [j / T, k, j % T]. If the row operand is contiguous along
// the reduction, its rows are split into pieces with one element per step of the micro-kernel's
// body: A[i, k] → [i / T, k / U, i % T, k % U]. Copies can then move whole vectors, and all
// distances in the body are constant.
void PanelCopy::Layout(const Operand& copy) {
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
void PanelCopy::Schedule(const std::vector<Operand>& loops, bool at_tile) {
  const auto last = static_cast<int>(buffer_.shape.size()) - 1;
  if (!rows_ && operand_.panel_dimension != last && operand_.reduces[last]) {
    Transpose(loops, at_tile);
    return;
  }
  std::vector<Operand> outer, order, inner;
  std::vector<Operand> panel = rows_ ? edit_.Split(loops[operand_.panel_dimension], {tiling_.rows})
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
void PanelCopy::Transpose(const std::vector<Operand>& loops, bool at_tile) {
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

}  // namespace hone::space
