#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/space/block_axes.h"
#include "server/space/gpu/dot_instruction.h"
#include "server/space/gpu/gpu_editor.h"
#include "server/space/gpu/shared_stage.h"
#include "server/space/gpu/tile_size.h"
#include "server/space/row_group.h"
#include "server/space/rule/rules.h"

namespace hone::space {
namespace {

using schedule::Operand;
using Operands = std::vector<Operand>;
using Decisions = absl::Span<const int64_t>;

constexpr int64_t kMostAlongVector = 16, kMostAlongRow = 16, kMostHeight = 4;  // per thread
constexpr int64_t kMostThreadsX = 64, kMostThreadsY = 32, kMostThreadsZ = 8;
constexpr int64_t kMostThreadsWide = 16;    // along each axis, if every thread has a large tile
constexpr int64_t kLeastShared = 8;         // minimum extents for copies in shared memory
constexpr int64_t kWide = 8, kWideRun = 4;  // a large tile along each axis, and its runs
constexpr int64_t kLeastWide = 64;          // minimum extents and threads for large tiles
constexpr int64_t kMostWindow = 8;          // taps of a window that one copy may hold

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
        consumer_(consumer),
        tiles_(block_.iters.size()) {
    for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].extent = block_.iters[i].extent;
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
    if (wide &&
        (height_ >= 0 || Extent(c_.vector) % kWideRun != 0 ||
         limits_.access_bytes < kWideRun * ir::DTypeBytes(dtype_) ||
         std::min(Extent(c_.vector), Extent(c_.row)) < kLeastWide || Extent(c_.reduce) < kWide ||
         kWide * kWide + 2 * kWide + GpuTileLimits::kOtherRegisters > limits_.registers)) {
      return std::nullopt;
    }
    std::optional<std::vector<SharedStage>> stages =
        FindSharedStages(program_, block_, c_, limits_);
    if (!stages.has_value()) return std::nullopt;
    stages_ = *std::move(stages);
    const ir::NodeId id = program_.FindBlock(block_.name);
    for (SharedStage& stage : stages_) stage.nest = CopyNestOf(sketch_, program_, stage.buffer, id);
    if (dot_ != nullptr) GroupTerms();
    Store();
    SampleThreads();
    SampleRegisters(/*strided=*/true);
    SampleReduction(/*staged=*/true);
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
    SampleThreads();
    SampleRegisters(/*strided=*/false);
    SampleReduction(/*staged=*/false);
    Tile(/*staged=*/false);
    PlaceConsumer();
    return Finish("direct");
  }

 private:
  int64_t Extent(int axis) const { return block_.iters[axis].extent; }
  int64_t RowExtent() const { return Extent(c_.row) * (height_ >= 0 ? Extent(height_) : 1); }
  const Operand& Block() const { return sketch_.nests[nest_].block; }
  int Drawn() const { return drawn_; }

  // The two functions for sampling update drawn_, which constraints need.
  Operand Sample(std::vector<int64_t> candidates) {
    Operand number = edit_.Sample(std::move(candidates));
    drawn_ = DecisionOf(number) + 1;
    return number;
  }
  Operands SamplePair(std::vector<int64_t> pairs) {
    Operands numbers = edit_.Add("sample_register_tile", {}, {{"candidates", std::move(pairs)}});
    drawn_ = DecisionOf(numbers[1]) + 1;
    return numbers;
  }
  void Constrain(std::string name, std::function<bool(Decisions)> holds) {
    sketch_.constraints.push_back({std::move(name), Drawn(), std::move(holds)});
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

  void SampleThreads() {
    const int64_t most = limits_.max_threads;
    const Operand x = Sample(ThreadCounts(
        Extent(c_.vector), /*least=*/8, std::min(wide_ ? kMostThreadsWide : kMostThreadsX, most)));
    const Operand y =
        Sample(ThreadCounts(Extent(c_.row), /*least=*/wide_ ? 8 : 1,
                            std::min(wide_ ? kMostThreadsWide : kMostThreadsY, most)));
    TileSize threads{.decisions = {DecisionOf(x), DecisionOf(y)}};
    Grow(c_.vector, x);
    Grow(c_.row, y);
    Constrain("threads", [=](Decisions d) { return threads.Of(d) <= most; });
    if (height_ >= 0) {
      const Operand z = Sample(ThreadCounts(Extent(height_), 1, kMostThreadsZ));
      threads.decisions.push_back(DecisionOf(z));
      Grow(height_, z);
      threads_.push_back(z);
    }
    // A block has at least one warp if there are enough results. With large tiles it has several,
    // because the threads use so many registers that only few blocks fit.
    int64_t least =
        RowExtent() * Extent(c_.vector) >= 64 * limits_.sub_group ? limits_.sub_group : 1;
    if (wide_) least = std::min(most, std::max(kLeastWide, 4 * limits_.sub_group));
    Constrain("threads",
              [=](Decisions d) { return threads.Of(d) <= most && threads.Of(d) >= least; });
    threads_.push_back(y);
    threads_.push_back(x);
    thread_count_ = threads;
  }

  // Multiplies the tile of an axis by a decision.
  void Grow(int axis, const Operand& number) {
    tiles_[axis].decisions.push_back(DecisionOf(number));
  }
  // A tile must be less than twice as long as its axis.
  void ConstrainTile(int axis) {
    Constrain("tile", [tile = tiles_[axis]](Decisions d) { return tile.Of(d) < 2 * tile.extent; });
  }

  // Returns (outer, inner) pairs whose product is the number of elements per thread along an axis.
  std::vector<int64_t> Pairs(int64_t extent, int64_t most, const std::vector<int64_t>& inner,
                             bool strided) const {
    std::vector<int64_t> pairs;
    for (const int64_t in : inner) {
      for (int64_t out = 1; out * in <= std::min(most, extent); out *= 2) {
        pairs.insert(pairs.end(), {out, in});
        if (!strided) break;
      }
    }
    return pairs;
  }

  // `strided`: the runs of a thread's elements alternate with those of the other threads.
  void SampleRegisters(bool strided) {
    const std::vector<int64_t> lanes = VectorWidths(limits_, Extent(c_.vector), dtype_);
    const Operands j = SamplePair(wide_ ? std::vector<int64_t>{kWide / kWideRun, kWideRun}
                                        : Pairs(Extent(c_.vector), kMostAlongVector, lanes, true));
    vector_outer_ = j[0];
    vector_lanes_ = j[1];
    Grow(c_.vector, j[0]);
    Grow(c_.vector, j[1]);
    ConstrainTile(c_.vector);
    const Operands i = SamplePair(
        wide_ ? std::vector<int64_t>{kWide / kWideRun, kWideRun}
              : Pairs(Extent(c_.row), kMostAlongRow, RegisterSizes(Extent(c_.row), 8), strided));
    row_outer_ = i[0];
    row_inner_ = i[1];
    Grow(c_.row, i[0]);
    Grow(c_.row, i[1]);
    ConstrainTile(c_.row);
    registers_ = TileSize{
        .decisions = {DecisionOf(j[0]), DecisionOf(j[1]), DecisionOf(i[0]), DecisionOf(i[1])}};
    TileSize rows{.decisions = {DecisionOf(i[0]), DecisionOf(i[1])}};
    const TileSize vectors{.decisions = {DecisionOf(j[0]), DecisionOf(j[1])}};
    ConstrainRegisters(rows, vectors);
    if (height_ < 0) return;
    height_inner_ = Sample(RegisterSizes(Extent(height_), kMostHeight));
    Grow(height_, height_inner_);
    ConstrainTile(height_);
    registers_.decisions.push_back(DecisionOf(height_inner_));
    rows.decisions.push_back(DecisionOf(height_inner_));
    ConstrainRegisters(rows, vectors);
  }

  void ConstrainRegisters(const TileSize& rows, const TileSize& vectors) {
    const int64_t words = (ir::DTypeBytes(ir::AccumulatorOf(block_.reducer, dtype_)) + 3) / 4;
    Constrain("registers", [=, threads = thread_count_, limits = limits_](Decisions d) {
      const int64_t r = rows.Of(d), v = vectors.Of(d);
      return limits.HasRegisters(threads.Of(d),
                                 (r * v + r + v) * words + GpuTileLimits::kOtherRegisters);
    });
  }

  void SampleReduction(bool staged) {
    const int64_t extent = Extent(c_.reduce) / terms_;
    std::vector<int64_t> pairs;
    for (const int64_t inner : {1, 2, 4, 8}) {
      for (int64_t steps = 1; steps * inner <= std::min<int64_t>(64, extent); steps *= 2) {
        const int64_t tile = steps * inner;
        const bool usual = wide_    ? tile >= 8 && tile <= 32
                           : staged ? tile >= 4 || 2 * tile > extent
                                    : steps == 1;
        if (usual) pairs.insert(pairs.end(), {steps, inner});
      }
    }
    for (const int axis : c_.windows) {
      if (Extent(axis) == 1 || Extent(axis) > kMostWindow || !staged) {
        window_tiles_.push_back(Literal(1));
        continue;
      }
      window_tiles_.push_back(Sample({1, Extent(axis)}));
      Grow(axis, window_tiles_.back());
    }
    const Operands k = SamplePair(std::move(pairs));
    reduce_steps_ = k[0];
    reduce_inner_ = k[1];
    Grow(c_.reduce, k[0]);
    Grow(c_.reduce, k[1]);
    tiles_[c_.reduce].constant = terms_;
    Constrain("statements",
              [registers = registers_, inner = DecisionOf(k[1]),
               most = block_.guards.empty() ? limits_.statements : limits_.guarded_statements](
                  Decisions d) { return d[inner] == 1 || registers.Of(d) * d[inner] <= most; });
    if (staged) ConstrainStages();
  }

  // Requires that the copies fit into shared memory and that every thread copies something.
  void ConstrainStages() {
    for (SharedStage& stage : stages_) stage.SetTiles(program_, block_, tiles_);
    const int64_t most = limits_.shared_bytes / (wide_ ? 2 : 1);  // for two tiles of each operand
    Constrain("shared memory", [=, stages = stages_, threads = thread_count_](Decisions d) {
      int64_t bytes = 0;
      for (const SharedStage& stage : stages) bytes += stage.Bytes(threads.Of(d), d);
      return bytes <= most;
    });
    Constrain("copies", [stages = stages_, threads = thread_count_](Decisions d) {
      return std::all_of(stages.begin(), stages.end(), [&](const SharedStage& stage) {
        return stage.box.Elements(d) >= threads.Of(d);
      });
    });
    for (SharedStage& stage : stages_) {
      stage.width = Sample(stage.widths);
      Constrain("vectors of a copy", [box = stage.box, threads = thread_count_,
                                      width = DecisionOf(stage.width)](Decisions d) {
        return d[width] == 1 || (box.Extents(d).back() % d[width] == 0 &&
                                 box.Elements(d) >= threads.Of(d) * d[width]);
      });
    }
    const bool pads = std::any_of(stages_.begin(), stages_.end(),
                                  [](const SharedStage& stage) { return stage.order.size() > 1; });
    if (pads) padding_ = Sample({0, SharedStage::kPadding / 2 * terms_});
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
      const Operands h = edit_.Split(loops[height_], {threads_[0], height_inner_});
      outer.push_back(h[0]);
      inner.push_back(h[1]);
      registers.push_back(h[2]);
    }
    const Operands i = staged ? edit_.Split(loops[c_.row], {row_outer_, ThreadsY(), row_inner_})
                              : edit_.Split(loops[c_.row], {ThreadsY(), row_outer_, row_inner_});
    const Operands j =
        staged ? edit_.Split(loops[c_.vector], {vector_outer_, ThreadsX(), vector_lanes_})
               : edit_.Split(loops[c_.vector], {ThreadsX(), vector_outer_, vector_lanes_});
    const int thread = staged ? 2 : 1, each = staged ? 1 : 2;
    inner.push_back(i[thread]);
    inner.push_back(j[thread]);
    registers.insert(registers.end(), {i[each], i[3], j[each], j[3]});
    for (size_t w = 0; w < c_.windows.size(); ++w) {
      const Operands parts = edit_.Split(loops[c_.windows[w]], {window_tiles_[w]});
      stage_loops.push_back(parts[0]);
      window_loops.push_back(parts[1]);
    }
    // Groups of terms are split, so that a remainder consists of whole groups.
    const Operands groups = dot_ != nullptr ? edit_.Split(loops[c_.reduce], {Literal(terms_)})
                                            : Operands{loops[c_.reduce]};
    const Operands k = edit_.Split(groups[0], {reduce_steps_, reduce_inner_});
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

  const Operand& ThreadsX() const { return threads_.back(); }
  const Operand& ThreadsY() const { return threads_[threads_.size() - 2]; }

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
                                Literal(SharedStage::kPadding * terms_), padding_});
  }

  // Binds all loops, and stores the results of every thread after the reduction.
  void PlaceStore() {
    edit_.Add("reverse_compute_at", {store_, grid_.back()});
    BindAndUnroll();
    for (const SharedStage& stage : stages_) {
      const size_t rank = stage.order.size();
      edit_.Cooperate(stage.block, grid_.size() + stage_loops_.size() + rank, rank, threads_,
                      stage.width, LoopsInside(stage));
    }
    const size_t rank = block_.indices.size();
    const Operands loops = edit_.Loops(store_, grid_.size() + rank);
    Operands others, threads(threads_.size()), registers;
    Operand j_outer, j_lanes;
    for (size_t d = 0; d < rank; ++d) {
      const Operand& loop = loops[grid_.size() + d];
      const int axis = AxisOf(block_, block_.indices[d]);
      if (axis == c_.vector) {
        const Operands parts = edit_.Split(loop, {ThreadsX(), vector_lanes_});
        threads.back() = parts[1];
        j_outer = parts[0];
        j_lanes = parts[2];
      } else if (axis == c_.row) {
        const Operands parts = edit_.Split(loop, {ThreadsY(), row_inner_});
        threads[threads.size() - 2] = parts[1];
        registers.insert(registers.end(), {parts[0], parts[2]});
      } else if (axis == height_) {
        const Operands parts =
            edit_.Add("split", {loop, Literal(0), threads_[0], height_inner_}, {}, 3);
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
    edit_.Vectorize(edit_.Split(loops.back(), {vector_lanes_})[1]);
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
  int drawn_ = 0;
  std::vector<TileSize> tiles_;  // per axis of the block
  std::vector<SharedStage> stages_;
  Operands threads_;  // numbers of threads, outermost first
  TileSize thread_count_, registers_;
  Operand vector_outer_, vector_lanes_, row_outer_, row_inner_, height_inner_;
  Operand reduce_steps_, reduce_inner_, padding_, store_;
  Operands window_tiles_;
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
  // The sketches of im2col read padded windows from shared memory (algorithm.h).
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
