#include <algorithm>
#include <numeric>
#include <utility>

#include "common/ir/cases.h"
#include "common/schedule/primitive/placement.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/row_group.h"
#include "server/tuner/space/rule/rules.h"

namespace hone::space {
namespace {

using schedule::Operand;
using Operands = std::vector<Operand>;
using Decisions = absl::Span<const int64_t>;

constexpr int64_t kLeastRow = 16;       // minimum length of a row that several threads share
constexpr int64_t kMostThreads = 1024;  // per row
constexpr int64_t kMostRows = 8;        // per block
constexpr int64_t kLeastRowPart = 64;   // minimum number of terms in a part of a split reduction

// Schedules a row group as one kernel. The threads along x share a row, and those along y work on
// different rows. Each stage is a phase, and the threads of a row combine their partial results. A
// thread loads and stores vectors of a row:
//   blockIdx: rows_0 { threadIdx: rows_1, t | rest of the reduction | vector: result[row]
//                      threadIdx: rows_1, t | columns | vector: next stage }
class GpuRowFuser {
 public:
  GpuRowFuser(const Sketch& sketch, const ir::Program& program, const RowGroup& group,
              const GpuTileLimits& limits)
      : sketch_(sketch), program_(program), group_(group), limits_(limits) {}

  // Returns nullopt if the intermediate rows do not fit into shared memory or are too short.
  std::optional<Sketch> Run() {
    int64_t most = std::min(kMostThreads, limits_.max_threads);
    for (const ir::NodeId id : group_.blocks) {
      const ir::Block& block = program_.BlockOf(id);
      if (!HasInner(block)) continue;
      most = std::min(most, block.iters.back().extent);
      if (IsDecided(id, block.iters.size() - 1)) most = std::min(most, kLeastRowPart);
    }
    if (most < kLeastRow / 2) return std::nullopt;
    const ir::NodeId last = group_.blocks.back();
    const ir::Block& result = program_.BlockOf(last);
    const BlockAxes axes = AxesOf(result);
    const int row_axis = axes.spatial[group_.rows - 1];
    if (Bytes(1, kLeastRow / 2) > limits_.shared_bytes) return std::nullopt;

    threads_ = edit_.Sample(Doublings(kLeastRow / 2, most));
    const int64_t extent = IsDecided(last, row_axis) ? 1 : result.iters[row_axis].extent;
    rows_ = edit_.Sample(Doublings(1, std::min(kMostRows, extent)));
    sketch_.constraints.push_back(
        {"threads", DecisionOf(rows_) + 1,
         [t = DecisionOf(threads_), r = DecisionOf(rows_), all = limits_.max_threads](Decisions d) {
           return d[t] * d[r] <= all;
         }});
    sketch_.constraints.push_back(
        {"shared memory", DecisionOf(rows_) + 1,
         [t = DecisionOf(threads_), r = DecisionOf(rows_), per_row = Bytes(1, 0),
          per_thread = Bytes(1, 1) - Bytes(1, 0), all = limits_.shared_bytes](Decisions d) {
           return d[r] * (per_row + d[t] * per_thread) <= all;
         }});
    width_ = edit_.Sample(Widths());
    sketch_.constraints.push_back({"vectors", DecisionOf(width_) + 1,
                                   [t = DecisionOf(threads_), w = DecisionOf(width_), most](
                                       Decisions d) { return d[w] == 1 || d[t] * d[w] <= most; }});

    const Operands loops = edit_.Loops(Block(last), result.iters.size());
    const Operands parts = edit_.Split(loops[row_axis], {rows_});
    Operands outer;
    for (int d = 0; d + 1 < group_.rows; ++d) outer.push_back(loops[axes.spatial[d]]);
    outer.push_back(parts[0]);
    const Operand place = edit_.Fuse(outer);
    for (size_t m = group_.blocks.size() - 1; m-- > 0;) {
      const ir::NodeId id = group_.blocks[m];
      const ir::Block& member = program_.BlockOf(id);
      edit_.Add("compute_at", {Block(id), place});
      edit_.Add("set_scope", {Block(id), schedule::Text("shared")});
      const Operands inside = edit_.Loops(Block(id), 1 + member.iters.size());
      Schedule(id, Operands(inside.begin() + 1, inside.begin() + 1 + group_.rows),
               Operands(inside.begin() + 1 + group_.rows, inside.end()));
    }
    Schedule(last, {parts[1]}, Operands(loops.begin() + row_axis + 1, loops.end()));
    edit_.BindBlocks({place});
    return std::move(sketch_);
  }

 private:
  Nest& NestOf(ir::NodeId id) { return sketch_.NestOf(program_.BlockOf(id).name); }
  const Operand& Block(ir::NodeId id) { return NestOf(id).block; }
  // Whether the extent of a block's loop is a decision, as in blocks made by gpu_split_reduction.
  bool IsDecided(ir::NodeId id, size_t loop) const {
    return program_.node(program_.LoopsAbove(id)[loop]).extent.derivation >= 0;
  }
  // Whether a block has columns or reductions besides the rows.
  bool HasInner(const ir::Block& block) const {
    return static_cast<int>(block.iters.size()) > group_.rows;
  }

  // The widths of vectors along the rows that suit all members.
  std::vector<int64_t> Widths() const {
    int64_t common = 0;
    ir::DType widest = ir::DType::kI8;
    for (const ir::NodeId id : group_.blocks) {
      const ir::Block& block = program_.BlockOf(id);
      if (block.outputs.size() != 1 || !block.guards.empty() ||
          ir::HasGuardedValue(program_.pool, block.values)) {
        return {1};
      }
      const ir::DType dtype = program_.buffers[block.outputs[0]].dtype;
      if (ir::DTypeBytes(dtype) > ir::DTypeBytes(widest)) widest = dtype;
      if (!HasInner(block)) continue;
      if (IsDecided(id, block.iters.size() - 1)) return {1};
      common = std::gcd(common, block.iters.back().extent);
    }
    return VectorWidths(limits_, common, widest);
  }

  // Returns the shared memory of `rows` rows, each of which `threads` threads reduce.
  int64_t Bytes(int64_t rows, int64_t threads) const {
    int64_t bytes = 0;
    for (const ir::NodeId id : group_.blocks) {
      const ir::Block& block = program_.BlockOf(id);
      for (const ir::BufferId output : block.outputs) {
        const int64_t element = ir::DTypeBytes(program_.buffers[output].dtype);
        if (block.reducer != ir::Reducer::kNone) bytes += rows * threads * element;
        if (id == group_.blocks.back()) continue;
        int64_t columns = 1;
        for (size_t d = group_.rows; d < block.indices.size(); ++d)
          columns *= program_.buffers[output].shape[d];
        bytes += rows * columns * element + 16;
      }
    }
    return bytes;
  }

  // Schedules the nest of a member. `rows`: its loops over rows, the last of which becomes threads.
  // `inner`: its loops over columns or reductions.
  void Schedule(ir::NodeId id, Operands rows, const Operands& inner) {
    NestOf(id).state = Nest::State::kDone;
    if (inner.empty()) {
      BindRows(rows.back());
      return;
    }
    const Operands parts = edit_.Split(inner.back(), {threads_, width_});
    Operands rest(inner.begin(), inner.end() - 1);
    rest.insert(rest.end(), {parts[0], parts[2]});
    Operands order = rows;
    order.push_back(parts[1]);
    Append(order, rest);
    edit_.Add("reorder", order);
    edit_.BindThreads({rows.back(), parts[1]});
    edit_.Vectorize(parts[2]);
  }

  // Assigns one thread to each row.
  void BindRows(const Operand& rows) { edit_.Add("bind", {rows, schedule::Text("threadIdx.y")}); }

  Sketch sketch_;
  GpuEditor edit_{sketch_};
  const ir::Program& program_;
  const RowGroup& group_;
  const GpuTileLimits& limits_;
  Operand threads_, rows_, width_;
};

// A group in a program of its sketch.
struct FoundGroup {
  std::shared_ptr<const ir::Program> kept;
  const ir::Program& program = *kept;
  RowGroup group;
};

std::optional<FoundGroup> FindGroup(const RuleContext& context, const Sketch& sketch, int nest) {
  std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return std::nullopt;
  std::optional<RowGroup> group =
      FindRowGroup(found->program, found->id, OpenBlocks(sketch, found->program));
  if (!group.has_value() || group->row_points < kLeastRow) return std::nullopt;
  return FoundGroup{.kept = std::move(found->kept), .group = *std::move(group)};
}

// Inlines the element-wise members of a group, which recomputes their rows wherever they are read.
// Returns false if there is none, or one of them cannot be inlined.
bool InlineRows(const FoundGroup& found, Sketch& sketch) {
  ir::Program program = found.program;
  bool any = false;
  for (const ir::NodeId id : found.group.blocks) {
    const ir::Block& block = found.program.BlockOf(id);
    if (id == found.group.blocks.back() || block.reducer != ir::Reducer::kNone ||
        static_cast<int>(block.iters.size()) == found.group.rows) {
      continue;
    }
    if (!schedule::ComputeInline(program, id).ok()) return false;
    Nest& nest = sketch.NestOf(block.name);
    sketch.trace.Add("compute_inline", {nest.block});
    nest.state = Nest::State::kDone;
    any = true;
  }
  return any;
}

}  // namespace

// Schedules reductions along rows on a GPU, with the stages that compute their elements or use
// their results. Intermediate rows stay in shared memory or are recomputed.
std::vector<Sketch> ApplyGpuRowReduction(const RuleContext& context, const Sketch& sketch,
                                         int nest) {
  // The rule is applied to the last block first, because a group is found from its last member.
  const std::optional<FoundGroup> found = FindGroup(context, sketch, nest);
  if (!found.has_value()) return {};
  const GpuTileLimits limits = GpuTileLimits::Of(*context.target);
  std::vector<Sketch> sketches;
  std::optional<Sketch> kept = GpuRowFuser(sketch, found->program, found->group, limits).Run();
  if (kept.has_value()) {
    kept->name.push_back("rows");
    sketches.push_back(*std::move(kept));
  }
  Sketch inlined = sketch;
  if (InlineRows(*found, inlined)) {
    const std::optional<FoundGroup> fewer = FindGroup(context, inlined, nest);
    if (fewer.has_value()) {
      std::optional<Sketch> again =
          GpuRowFuser(inlined, fewer->program, fewer->group, limits).Run();
      if (again.has_value()) {
        again->name.push_back("rows_inline");
        sketches.push_back(*std::move(again));
      }
    }
  }
  return sketches;
}

}  // namespace hone::space
