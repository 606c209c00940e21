#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/gpu/tile_sampler.h"
#include "server/tuner/space/gpu/tile_size.h"
#include "server/tuner/space/row_group.h"
#include "server/tuner/space/rule/rules.h"

namespace hone::space {
namespace {

using schedule::Operand;
using Operands = std::vector<Operand>;

constexpr int64_t kLeastShared = 8;  // minimum extents for copies in shared memory

// Tiles a contraction: each spatial axis into blocks, threads and registers, and the reduction into
// r_0, r_1 and r_2. With shared memory:
//   blockIdx | r_0 | { copies of the operands | threadIdx, r_1, r_2, registers } ; then the results
// Without:
//   blockIdx | threadIdx | r_0, r_1, r_2, registers
class GpuTiler {
 public:
  GpuTiler(const Sketch& sketch, int nest, const NestBlock& found, const Contraction& contraction,
           const GpuTileLimits& limits, const ir::Intrinsic* dot, int consumer)
      : sketch_(sketch),
        nest_(nest),
        program_(found.program),
        block_(found.block()),
        dtype_(found.output().dtype),
        c_(contraction),
        limits_(limits),
        dot_(dot),
        consumer_(consumer) {
    for (const int axis : c_.row_like) {
      if (Extent(axis) > 1) height_ = axis;
    }
  }

  // Returns the sketch that reads the operands from shared memory; nullopt if that cannot pay.
  // `wide`: each thread computes a large tile, as in BLAS libraries, in four separate parts. Only
  // few blocks of threads then fit, so the next tile is fetched while the current one is used.
  std::optional<Sketch> Shared(bool wide) {
    if (Extent(c_.vector) < kLeastShared || RowExtent() < kLeastShared) return std::nullopt;
    wide_ = wide;
    if (wide && !CanBeWide(Request())) return std::nullopt;
    std::optional<std::vector<SharedStage>> stages =
        FindSharedStages(program_, block_, c_, limits_);
    if (!stages.has_value()) return std::nullopt;
    stages_ = *std::move(stages);
    const ir::NodeId id = program_.FindBlock(block_.name);
    for (SharedStage& stage : stages_) stage.nest = CopyNestOf(sketch_, program_, stage.buffer, id);
    if (dot_ != nullptr) GroupTerms();
    Store();
    tile_ = SampleGpuTile(Request(), stages_, sketch_, edit_);
    Tile(/*staged=*/true);
    Fetch();
    PlaceStore();
    return Finish(wide ? "shared_wide" : "shared");
  }

  Sketch Direct() {
    if (dot_ != nullptr && HasAdjacentTerms()) {
      terms_ = TermsOf(*dot_);
    } else {
      dot_ = nullptr;
    }
    if (consumer_ >= 0) edit_.Add("set_scope", {Block(), schedule::Text("local")});
    tile_ = SampleGpuTile(Request(), stages_, sketch_, edit_);
    Tile(/*staged=*/false);
    PlaceConsumer();
    return Finish("direct");
  }

 private:
  int64_t Extent(int axis) const { return block_.iters[axis].extent; }
  int64_t RowExtent() const { return Extent(c_.row) * (height_ >= 0 ? Extent(height_) : 1); }
  const Operand& Block() const { return sketch_.nests[nest_].block; }
  GpuTileRequest Request() const {
    return {.program = program_,
            .block = block_,
            .contraction = c_,
            .limits = limits_,
            .dtype = dtype_,
            .height = height_,
            .wide = wide_,
            .terms = terms_};
  }

  // Makes the terms that an instruction adds adjacent in the copies of the operands.
  void GroupTerms() {
    terms_ = TermsOf(*dot_);
    for (SharedStage& stage : stages_) {
      stage.GroupTerms(program_, block_, block_.iters[c_.reduce].var, terms_);
    }
  }
  bool HasAdjacentTerms() const {
    bool adjacent = true;
    program_.pool.VisitLoads(block_.values[0], [&](const ir::Expr& load) {
      adjacent &= program_.pool.IndicesOf(load).back().SingleAtom() == block_.iters[c_.reduce].var;
    });
    return adjacent;
  }

  // Keeps the results in local memory until they are complete.
  void Store() {
    if (consumer_ >= 0) {
      edit_.Add("set_scope", {Block(), schedule::Text("local")});
      store_ = sketch_.nests[consumer_].block;
    } else {
      store_ = edit_.Add("cache_write", {Block(), schedule::Text("local")})[0];
    }
  }

  void Tile(bool staged) {
    const Operands loops = edit_.Loops(Block(), block_.iters.size());
    Operands outer, inner, registers, stage_loops, window_loops;
    for (const std::vector<int>* axes : {&c_.shared, &c_.row_like}) {
      for (const int axis : *axes) {
        if (axis != height_) outer.push_back(loops[axis]);
      }
    }
    if (height_ >= 0) {
      const Operands h = edit_.Split(loops[height_], {tile_.threads[0], tile_.height_inner});
      outer.push_back(h[0]);
      inner.push_back(h[1]);
      registers.push_back(h[2]);
    }
    const Operands i =
        staged ? edit_.Split(loops[c_.row], {tile_.row_outer, tile_.ThreadsY(), tile_.row_inner})
               : edit_.Split(loops[c_.row], {tile_.ThreadsY(), tile_.row_outer, tile_.row_inner});
    const Operands j =
        staged ? edit_.Split(loops[c_.vector],
                             {tile_.vector_outer, tile_.ThreadsX(), tile_.vector_lanes})
               : edit_.Split(loops[c_.vector],
                             {tile_.ThreadsX(), tile_.vector_outer, tile_.vector_lanes});
    const int thread = staged ? 2 : 1, each = staged ? 1 : 2;
    inner.push_back(i[thread]);
    inner.push_back(j[thread]);
    registers.insert(registers.end(), {i[each], i[3], j[each], j[3]});
    for (size_t w = 0; w < c_.windows.size(); ++w) {
      const Operands parts = edit_.Split(loops[c_.windows[w]], {tile_.window_tiles[w]});
      stage_loops.push_back(parts[0]);
      window_loops.push_back(parts[1]);
    }
    // Groups of terms are split, so that a remainder consists of whole groups.
    const Operands groups = dot_ != nullptr ? edit_.Split(loops[c_.reduce], {Literal(terms_)})
                                            : Operands{loops[c_.reduce]};
    const Operands k = edit_.Split(groups[0], {tile_.reduce_steps, tile_.reduce_inner});
    stage_loops.push_back(k[0]);

    Operands order = outer;
    order.push_back(i[0]);
    order.push_back(j[0]);
    if (staged) Append(order, stage_loops);
    Append(order, inner);
    if (!staged) Append(order, stage_loops);
    Append(order, window_loops);
    order.push_back(k[1]);
    order.push_back(k[2]);
    Append(order, registers);
    if (dot_ != nullptr) order.push_back(groups[1]);
    edit_.Add("reorder", order);
    int64_t points = height_ >= 0 ? Extent(height_) : 1;
    for (const std::vector<int>* axes : {&c_.shared, &c_.row_like}) {
      for (const int axis : *axes) points *= axis == height_ ? 1 : Extent(axis);
    }
    grid_ = edit_.Grid(outer, std::max(points, Extent(c_.row)), {i[0], j[0]}, limits_.max_grid);
    stage_loops_ = stage_loops;
    thread_loops_ = inner;
    unrolled_ = {k[2]};
    Append(unrolled_, registers);
    if (dot_ != nullptr) terms_loop_ = groups[1];
    if (!staged) BindAndUnroll();
  }

  void BindAndUnroll() {
    edit_.BindBlocks(grid_);
    edit_.BindThreads(thread_loops_);
    if (dot_ == nullptr) {
      edit_.Unroll(unrolled_);
      return;
    }
    for (const Operand& loop : unrolled_) edit_.Add("unroll", {loop});
    edit_.Add("tensorize", {terms_loop_, schedule::Text(std::string(dot_->name))});
  }

  // Copies every operand at the innermost loop of the reduction's tiles.
  void Fetch() {
    for (SharedStage& stage : stages_) {
      if (stage.nest >= 0) {
        stage.block = sketch_.nests[stage.nest].block;
        edit_.Add("set_scope", {stage.block, schedule::Text("shared")});
      } else {
        const ir::Buffer& buffer = program_.buffers[stage.buffer];
        stage.block = edit_.Add(
            "cache_read", {Block(), schedule::Text(buffer.name), schedule::Text("shared")})[0];
      }
      if (terms_ == 1) Arrange(stage);
      edit_.Add("compute_at", {stage.block, stage_loops_.back()});
      if (terms_ > 1) Arrange(stage);
      if (wide_) edit_.Add("double_buffer", {stage.block});
    }
  }

  // Sets the layout of a copy. One with groups of terms has a divided dimension, so compute_at no
  // longer moves it.
  void Arrange(const SharedStage& stage) {
    const std::string layout = stage.Layout();
    if (!layout.empty()) edit_.Add("transform_layout", {stage.block, schedule::Text(layout)});
    if (stage.order.size() < 2) return;
    edit_.Add("storage_align", {stage.block, Literal(static_cast<int>(stage.order.size()) - 2),
                                Literal(SharedStage::kPadding * terms_), tile_.padding});
  }

  // Binds all loops, and stores the results of every thread after the reduction.
  void PlaceStore() {
    edit_.Add("reverse_compute_at", {store_, grid_.back()});
    BindAndUnroll();
    for (const SharedStage& stage : stages_) {
      const size_t rank = stage.order.size();
      edit_.Cooperate(stage.block, grid_.size() + stage_loops_.size() + rank, rank, tile_.threads,
                      stage.width, LoopsInside(stage));
    }
    const size_t rank = block_.indices.size();
    const Operands loops = edit_.Loops(store_, grid_.size() + rank);
    Operands others, threads(tile_.threads.size()), registers;
    Operand j_outer, j_lanes;
    for (size_t d = 0; d < rank; ++d) {
      const Operand& loop = loops[grid_.size() + d];
      const int axis = AxisOf(block_, block_.indices[d]);
      if (axis == c_.vector) {
        const Operands parts = edit_.Split(loop, {tile_.ThreadsX(), tile_.vector_lanes});
        threads.back() = parts[1];
        j_outer = parts[0];
        j_lanes = parts[2];
      } else if (axis == c_.row) {
        const Operands parts = edit_.Split(loop, {tile_.ThreadsY(), tile_.row_inner});
        threads[threads.size() - 2] = parts[1];
        registers.insert(registers.end(), {parts[0], parts[2]});
      } else if (axis == height_) {
        const Operands parts =
            edit_.Add("split", {loop, Literal(0), tile_.threads[0], tile_.height_inner}, {}, 3);
        others.push_back(parts[0]);
        threads[0] = parts[1];
        registers.insert(registers.begin(), parts[2]);
      } else {
        others.push_back(loop);
      }
    }
    registers.insert(registers.end(), {j_outer, j_lanes});
    Operands order = threads;
    Append(order, others);
    Append(order, registers);
    edit_.Add("reorder", order);
    edit_.BindThreads(threads);
    edit_.Unroll(registers);
  }

  // The loops of an operand's own nest that are not dimensions of the operand: reductions over one
  // point, which guards need.
  size_t LoopsInside(const SharedStage& stage) const {
    if (stage.nest < 0) return 0;
    const ir::Block& copy = program_.BlockOf(program_.WritersOf(stage.buffer)[0]);
    return copy.iters.size() - stage.order.size();
  }

  // Places the consumer in the thread that computes its input.
  void PlaceConsumer() {
    if (consumer_ < 0) return;
    const Operand& consumer = sketch_.nests[consumer_].block;
    edit_.Add("reverse_compute_at", {consumer, thread_loops_.back()});
    const size_t rank = block_.indices.size();
    const Operands loops = edit_.Loops(consumer, grid_.size() + thread_loops_.size() + rank);
    edit_.Vectorize(edit_.Split(loops.back(), {tile_.vector_lanes})[1]);
  }

  Sketch Finish(absl::string_view name) {
    sketch_.nests[nest_].state = Nest::State::kDone;
    if (consumer_ >= 0) sketch_.nests[consumer_].state = Nest::State::kDone;
    for (const SharedStage& stage : stages_) {
      if (stage.nest >= 0) sketch_.nests[stage.nest].state = Nest::State::kDone;
    }
    sketch_.name.push_back(absl::StrCat("tile_", name));
    return std::move(sketch_);
  }

  Sketch sketch_;
  GpuEditor edit_{sketch_};
  const int nest_;
  const ir::Program& program_;
  const ir::Block& block_;
  const ir::DType dtype_;
  const Contraction& c_;
  const GpuTileLimits& limits_;
  const ir::Intrinsic* dot_;  // an instruction that adds terms_ terms of the reduction; or nullptr
  int64_t terms_ = 1;
  Operand terms_loop_;
  const int consumer_;
  bool wide_ = false;
  int height_ = -1;  // a second axis of rows, along threadIdx.z; -1: none
  std::vector<SharedStage> stages_;
  GpuTile tile_;
  Operand store_;
  Operands grid_, stage_loops_, thread_loops_, unrolled_;
};

}  // namespace

std::vector<Sketch> ApplyGpuMultiLevelTiling(const RuleContext& context, const Sketch& sketch,
                                             int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const std::optional<Contraction> contraction = AnalyzeContraction(program, found->id);
  if (!contraction.has_value()) return {};
  // gpu_row_reduction divides the reduction among threads, which suits a narrow result better.
  if (found->block().iters[contraction->vector].extent < kLeastShared &&
      FindRowGroup(program, found->id, {}).has_value()) {
    return {};
  }
  const GpuTileLimits limits = GpuTileLimits::Of(*context.target);
  const ir::Intrinsic* dot =
      DotInstructionFor(program, found->block(), *contraction, *context.target);
  const int consumer = ElementwiseConsumer(sketch, program, found->id);
  const auto tiler = [&] {
    return GpuTiler(sketch, nest, *found, *contraction, limits, dot, consumer);
  };
  std::vector<Sketch> sketches;
  // The sketches of im2col read padded windows from shared memory (generate.h).
  if (limits.shared_memory && !HasPaddedWindow(program, found->id, *contraction)) {
    for (const bool wide : {false, true}) {
      std::optional<Sketch> shared = tiler().Shared(wide);
      if (shared.has_value()) sketches.push_back(*std::move(shared));
    }
  }
  // Patches are only computed in shared memory, unless they are too small for it.
  if (sketches.empty() || !ReadsCopyNest(sketch, program, found->id))
    sketches.push_back(tiler().Direct());
  return sketches;
}

}  // namespace hone::space
