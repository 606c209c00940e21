#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/space/rule/rules.h"

namespace hone::space {
namespace {

using schedule::Operand;

// A copy pays when each element is read at least this often from it.
constexpr int64_t kLeastReuse = 4;
// Rows are copied in pieces of this many bytes of the reduction: a cache line.
constexpr int64_t kLineBytes = 64;

// One operand of a tiled contraction, packed into panels of the register tile's width.
class Packer {
 public:
  Packer(Sketch& sketch, int nest, const ir::Program& program, bool rows)
      : sketch_(sketch),
        nest_(nest),
        tiling_(*sketch.nests[nest].tiling),
        rows_(rows),
        operand_(rows ? tiling_.contraction.row_operand : tiling_.contraction.vector_operand),
        buffer_(program.buffers[operand_.buffer]),
        line_(kLineBytes / ir::DTypeBytes(buffer_.dtype)) {}

  // `at_tile`: each tile of the reduction copies what it needs; else all is copied before.
  void Run(bool at_tile) {
    const Operand block = sketch_.nests[nest_].block;
    const Operand copy =
        Add("cache_read", {block, schedule::Text(buffer_.name), schedule::Text("global")})[0];
    const int rank = static_cast<int>(buffer_.shape.size());
    if (at_tile && !buffer_.constant) Add("compute_at", {copy, *tiling_.reduce_outer});
    // A tile of the reduction need not begin at a line.
    in_lines_ = rows_ && !at_tile && operand_.reduces[rank - 1] && buffer_.shape[rank - 1] >= line_;
    Layout(copy);
    if (buffer_.constant) return;  // copied once, ahead of time
    const int above = at_tile ? 2 : 0;
    std::vector<Operand> loops = Add("loops", {copy}, {}, above + rank);
    loops.erase(loops.begin(), loops.begin() + above);
    Schedule(loops, at_tile);
  }

 private:
  std::vector<Operand> Add(absl::string_view primitive, std::vector<Operand> operands,
                           std::vector<schedule::Attribute> attributes = {}, int results = -1) {
    return sketch_.trace.Add(primitive, std::move(operands), std::move(attributes), results);
  }

  // Panels: dimensions without reduction, panel number, dimensions that reduce, place in the panel.
  // E.g. B[k, j] → [j / T, k, j % T]. In lines, the last dimension that reduces is cut so that
  // copies move whole vectors: A[i, k] → [i / T, k / 16, i % T, k % 16]. The micro-kernel reads
  // single elements of rows, whose distance does not matter to it.
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
    if (in_lines_) inner.back() = absl::StrCat(last, " / ", line_);
    outer.push_back(absl::StrCat(panel, " / ", size));
    outer.insert(outer.end(), inner.begin(), inner.end());
    outer.push_back(absl::StrCat(panel, " % ", size));
    if (in_lines_) outer.push_back(absl::StrCat(last, " % ", line_));
    Add("transform_layout", {copy,
                             schedule::Text(absl::StrCat(absl::StrJoin(from, ", "), " -> ",
                                                         absl::StrJoin(outer, ", "))),
                             rows_ ? tiling_.rows : tiling_.vectors});
  }

  // The copy runs in the order of the panels.
  void Schedule(const std::vector<Operand>& loops, bool at_tile) {
    std::vector<Operand> outer, order, inner;
    std::vector<Operand> panel =
        rows_ ? Add("split", {loops[operand_.panel_dimension], Literal(0), tiling_.rows}, {}, 2)
              : Add("split",
                    {loops[operand_.panel_dimension], Literal(0), tiling_.vectors,
                     Literal(tiling_.lanes)},
                    {}, 3);
    const auto last = static_cast<int>(buffer_.shape.size()) - 1;
    for (int d = 0; d <= last; ++d) {
      if (d == operand_.panel_dimension) continue;
      if (!operand_.reduces[d]) {
        outer.push_back(loops[d]);
      } else if (d == last && in_lines_) {
        const std::vector<Operand> parts =
            Add("split", {loops[d], Literal(0), Literal(line_)}, {}, 2);
        order.push_back(parts[0]);
        inner.push_back(parts[1]);
      } else {
        order.push_back(loops[d]);
      }
    }
    outer.push_back(panel[0]);
    order.insert(order.begin(), outer.begin(), outer.end());
    order.insert(order.end(), panel.begin() + 1, panel.end());
    order.insert(order.end(), inner.begin(), inner.end());
    Add("reorder", order);
    if (in_lines_) Add("vectorize", inner);
    if (!rows_) {
      Add("unroll", {panel[1]});
      Add("vectorize", {panel[2]});
    }
    if (!at_tile) {
      const Operand fused = outer.size() > 1 ? Add("fuse", outer)[0] : outer[0];
      Add("parallel", {fused});
    }
  }

  Sketch& sketch_;
  int nest_;
  const Tiling tiling_;
  bool rows_;
  const ContractionOperand operand_;
  const ir::Buffer buffer_;
  const int64_t line_;  // elements
  bool in_lines_ = false;
};

}  // namespace

std::vector<Sketch> ApplyPack(const RuleContext& context, const Sketch& sketch, int nest) {
  if (sketch.nests[nest].state != Nest::State::kTiled) return {};
  const absl::StatusOr<ir::Program> program = context.ProgramOf(sketch);
  if (!program.ok()) return {};
  const Tiling& tiling = *sketch.nests[nest].tiling;
  const Contraction& c = tiling.contraction;
  const ir::Block& block = program->BlockOf(program->FindBlock(sketch.nests[nest].name));
  // How often an element of the operand is read: once per tile along the other operand's axes.
  const auto pays = [&](const ContractionOperand& operand, int64_t reads) {
    if (operand.panel_dimension < 0) return false;
    const ir::Buffer& buffer = program->buffers[operand.buffer];
    return buffer.constant || (program->WritersOf(operand.buffer).empty() && reads >= kLeastReuse);
  };
  int64_t row_points = block.iters[c.row].extent;
  for (int axis : c.row_like) row_points *= block.iters[axis].extent;
  const TileLimits limits =
      TileLimits::Of(*context.target, program->buffers[block.outputs[0]].dtype);
  // An operand of one vector's width is a panel already.
  const bool is_panel = c.vector_contiguous && block.iters[c.vector].extent <= limits.lanes;
  const bool pack_vectors = !is_panel && pays(c.vector_operand, row_points / 8);
  const bool pack_rows = pays(c.row_operand, block.iters[c.vector].extent / (2 * limits.lanes));
  if (!pack_vectors) return {};

  const auto packed = [&](bool rows_too, bool at_tile) {
    Sketch result = sketch;
    const std::string& vector_name = program->buffers[c.vector_operand.buffer].name;
    std::string name = "pack";
    if (rows_too) {
      Packer(result, nest, *program, /*rows=*/true).Run(at_tile);
      absl::StrAppend(&name, program->buffers[c.row_operand.buffer].name);
    }
    Packer(result, nest, *program, /*rows=*/false).Run(at_tile);
    absl::StrAppend(&name, vector_name);
    result.name.push_back(std::move(name));
    if (at_tile) {
      result.name.push_back("at");
      ++result.minor;
    }
    return result;
  };
  std::vector<Sketch> sketches;
  if (c.vector_contiguous) sketches.push_back(sketch);
  sketches.push_back(packed(false, false));
  if (pack_rows) sketches.push_back(packed(true, false));
  const bool vector_constant = program->buffers[c.vector_operand.buffer].constant;
  const bool row_constant = program->buffers[c.row_operand.buffer].constant;
  if (tiling.reduce_outer.has_value()) {
    if (!vector_constant) sketches.push_back(packed(false, true));
    if (pack_rows && !(vector_constant && row_constant)) sketches.push_back(packed(true, true));
  }
  return sketches;
}

}  // namespace hone::space
