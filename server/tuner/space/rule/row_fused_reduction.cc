#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/row_group.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

class RowFuser {
 public:
  RowFuser(const Sketch& sketch, const ir::Program& program, const RowGroup& group,
           const TileLimits& limits)
      : sketch_(sketch), program_(program), group_(group), limits_(limits) {}

  // Computes every stage at a block of rows of the last one, so intermediate results stay in L1.
  //   parallel rows_0 | rows_1 | rows_2 | columns in vectors
  Sketch AtRows() {
    const ir::NodeId last = group_.blocks.back();
    const ir::Block& block = program_.BlockOf(last);
    const BlockAxes axes = AxesOf(block);
    const std::vector<Operand> loops = edit_.Loops(BlockRegister(last), block.iters.size());
    const int row = axes.spatial[group_.rows - 1];
    const std::vector<Operand> sizes = edit_.Add(
        "sample_perfect_tile", {loops[row]}, {{"parts", {3}}, {"max_inner", {limits_.row_block}}});
    const std::vector<Operand> parts =
        edit_.Add("split", {loops[row], sizes[0], sizes[1], sizes[2]}, {}, 3);
    std::vector<Operand> outer;
    for (int d = 0; d + 1 < group_.rows; ++d) outer.push_back(loops[axes.spatial[d]]);
    outer.push_back(parts[0]);
    const Operand place = parts[1];
    const Operand ahead = edit_.Sample({0, 1});
    ConstrainRows(block, axes, DecisionOf(sizes[0]), DecisionOf(ahead));
    const Operand threads = edit_.Fuse(outer);
    constexpr int kAbove = 2;  // the loops over threads and pieces

    for (size_t m = group_.blocks.size() - 1; m-- > 0;) {
      const ir::NodeId id = group_.blocks[m];
      const ir::Block& member = program_.BlockOf(id);
      edit_.Add("compute_at", {BlockRegister(id), place});
      const std::vector<Operand> inside =
          edit_.Loops(BlockRegister(id), kAbove + member.iters.size());
      // First one loop for the rows of the block, then columns or reductions.
      if (member.reducer != ir::Reducer::kNone) {
        vectors_.Lanes(BlockRegister(id), inside.back(), member.iters.back().extent,
                       kAbove + group_.rows);
      } else if (static_cast<int>(member.iters.size()) > group_.rows) {
        vectors_.Columns(inside.back(), member.iters.back().extent);
      }
      NestOf(id).state = Nest::State::kDone;
    }
    if (block.reducer != ir::Reducer::kNone) {
      vectors_.Lanes(BlockRegister(last), loops.back(), block.iters.back().extent, kAbove + 1);
    } else if (static_cast<int>(block.iters.size()) > group_.rows) {
      vectors_.Columns(loops.back(), block.iters.back().extent);
    }
    edit_.Add("annotate", {place, schedule::Text("prefetch"), ahead});
    edit_.Add("parallel", {threads});
    NestOf(last).state = Nest::State::kDone;
    sketch_.name.push_back("rows");
    return std::move(sketch_);
  }

  // For few rows: each reduction is split into parts that threads sum, and the parts are combined.
  // The other stages keep their own nests.
  //   parallel part | rows | rest of the reduction in vectors;  then rows | part
  Sketch InParts() {
    for (const ir::NodeId id : group_.blocks) {
      const ir::Block& block = program_.BlockOf(id);
      if (block.reducer == ir::Reducer::kNone) continue;
      Cut(id, block);
      NestOf(id).state = Nest::State::kDone;
    }
    sketch_.name.push_back("parts");
    return std::move(sketch_);
  }

 private:
  Nest& NestOf(ir::NodeId id) { return sketch_.NestOf(program_.BlockOf(id).name); }
  Operand BlockRegister(ir::NodeId id) { return NestOf(id).block; }

  // Adds constraints: at least as many parallel iterations as cores or rows, unless the group is
  // small, and no prefetch if there is no next block.
  void ConstrainRows(const ir::Block& block, const BlockAxes& axes, int outer, int ahead) {
    const int64_t others =
        PointsOf(block, absl::MakeConstSpan(axes.spatial).first(group_.rows - 1));
    const int64_t all = others * block.iters[axes.spatial[group_.rows - 1]].extent;
    const int64_t wanted = std::min(limits_.cores, all);
    const bool small = all * group_.row_points <= limits_.serial_elements;
    if (!small) {
      sketch_.constraints.push_back({"parallel", outer + 3, [=](absl::Span<const int64_t> d) {
                                       return others * d[outer] >= wanted;
                                     }});
    }
    sketch_.constraints.push_back({"prefetch", ahead + 1, [=](absl::Span<const int64_t> d) {
                                     return d[outer + 1] > 1 || d[ahead] == 0;
                                   }});
  }

  void Cut(ir::NodeId id, const ir::Block& block) {
    const BlockAxes axes = AxesOf(block);
    std::vector<Operand> loops = edit_.Loops(BlockRegister(id), block.iters.size());
    const auto along =
        absl::c_find_if(axes.reduce, [&](int axis) { return block.iters[axis].extent > 1; });
    const int cut = along == axes.reduce.end() ? axes.reduce.back() : *along;
    Operand lanes = loops[axes.reduce.back()];
    std::vector<Operand> order, rest;
    for (int axis : axes.reduce) {
      Operand loop = loops[axis];
      if (axis == axes.reduce.back()) {
        const std::vector<Operand> vectors =
            edit_.Split(loop, {vectors_.LanesOf(block.iters[axis].extent)});
        loop = vectors[0];
        lanes = vectors[1];
      }
      if (axis == cut) {
        const bool divides = axis != axes.reduce.back() && HasParts(block.iters[axis].extent);
        const SketchEditor::Tiles parts =
            edit_.SplitInTwo(divides ? "sample_perfect_tile" : "sample_tile", loop);
        ConstrainParts(DecisionOf(parts.size));
        order.push_back(parts.outer);
        loop = parts.inner;
      }
      rest.push_back(loop);
    }
    const Operand threads = order[0];
    for (int axis : axes.spatial) order.push_back(loops[axis]);
    Append(order, rest);
    order.push_back(lanes);
    edit_.Add("reorder", order);
    const Operand part = edit_.Add("rfactor", {BlockRegister(id), threads})[0];
    edit_.Add("rfactor", {part, lanes});
    edit_.Add("vectorize", {lanes});
    const std::vector<Operand> combining = edit_.Loops(part, 2 + axes.spatial.size());
    edit_.Add("vectorize", {combining.back()});
    edit_.Add("parallel", {threads});
  }

  bool HasParts(int64_t extent) const {
    for (int64_t parts = limits_.cores; parts <= limits_.reduction_parts * limits_.cores; ++parts) {
      if (extent % parts == 0) return true;
    }
    return false;
  }

  // Adds constraints: enough parts for all cores, and few enough to combine.
  void ConstrainParts(int parts) {
    const int64_t most = limits_.reduction_parts * limits_.cores;
    const int64_t least = limits_.cores;
    sketch_.constraints.push_back({"parts", parts + 2, [=](absl::Span<const int64_t> d) {
                                     return d[parts] <= most &&
                                            (d[parts] >= least || d[parts + 1] == 1);
                                   }});
  }

  Sketch sketch_;
  SketchEditor edit_{sketch_};
  const ir::Program& program_;
  const RowGroup& group_;
  const TileLimits& limits_;
  RowVectors vectors_{edit_, limits_};
};

}  // namespace

// Schedules reductions along rows, with the stages that compute their elements or use their
// results.
std::vector<Sketch> ApplyRowFusedReduction(const RuleContext& context, const Sketch& sketch,
                                           int nest) {
  // The rule is applied to the last block first, because a group is found from its last member.
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::Block& block = found->block();
  const TileLimits& limits = found->limits;
  const std::optional<RowGroup> group =
      FindRowGroup(program, found->id, OpenBlocks(sketch, program));
  if (!group.has_value()) return {};
  if (group->row_points < limits.lanes) return {};
  const BlockAxes axes = AxesOf(block);
  const int64_t rows = PointsOf(block, absl::MakeConstSpan(axes.spatial).first(group->rows));

  std::vector<Sketch> sketches;
  const bool few = rows < limits.few_rows * limits.cores;
  const bool small = rows * group->row_points <= limits.serial_elements;
  if (rows >= limits.cores || small) {
    sketches.push_back(RowFuser(sketch, program, *group, limits).AtRows());
  }
  if (few) sketches.push_back(RowFuser(sketch, program, *group, limits).InParts());
  return sketches;
}

}  // namespace hone::space
