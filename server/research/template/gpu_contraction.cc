#include "server/research/template/gpu_contraction.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "server/research/template/templates.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/gpu/tile_sampler.h"
#include "server/tuner/space/gpu/tile_size.h"

namespace hone::space {
namespace {

using schedule::Operand;

using Operands = std::vector<Operand>;
using Decisions = absl::Span<const int64_t>;

// The parts of a tiled axis.
constexpr int kBlocks = 0, kVirtual = 1, kThreads = 2, kResults = 3, kParts = 4;

// Shorter axes, such as a window's, are only split by their factors, as in AutoTVM. Copies of tiles
// with remainders along several axes cannot be divided among threads.
constexpr int64_t kShortAxis = 16;

// The threads along an axis, and the results of a thread, that another axis leaves to it.
constexpr int64_t kThreadShare = 4, kRegisterShare = 2;

// A block of one thread keeps the copies in its own memory, which is small.
constexpr int64_t kMostBytesOfThread = 8 << 10;

std::optional<std::vector<SharedStage>> StagesOf(const GpuContraction& c,
                                                 const GpuTileLimits& limits) {
  // No axis is moved, so the copies have the layout of the operands, as in AutoTVM.
  auto stages = FindSharedStages(c.program, c.program.BlockOf(c.block), Contraction{}, limits);
  if (!stages.has_value()) return std::nullopt;
  for (SharedStage& stage : *stages) stage.padded = false;
  return stages;
}

class GpuContractionWriter {
 public:
  GpuContractionWriter(const GpuContraction& contraction, const GpuTileLimits& limits,
                       TemplateBuilder& builder)
      : c_(contraction),
        block_(c_.program.BlockOf(c_.block)),
        limits_(limits),
        b_(builder),
        stages_(*StagesOf(c_, limits)),
        tiles_(block_.iters.size()) {
    for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].extent = block_.iters[i].extent;
  }

  void Write() {
    main_ = b_.Block(block_.name);
    std::vector<int64_t> extents;
    for (const ir::BlockIter& iter : block_.iters) extents.push_back(iter.extent);
    loops_ = b_.Loops(main_, extents);
    for (const int axis : c_.tiled) SplitTiled(axis);
    for (const int axis : c_.reduced) SplitReduced(axis);
    ConstrainCopies();
    Place();
    Bind();
    for (const SharedStage& stage : stages_) {
      edit_.Cooperate(stage.block, grid_.size() + c_.reduced.size() + stage.order.size(),
                      stage.order.size(), ThreadNumbers(), Literal(1));
    }
    StoreResults();
  }

 private:
  int64_t Extent(int axis) const { return block_.iters[axis].extent; }
  static Operands LoopsOf(const std::vector<std::vector<KnobLoop>>& axes, int part) {
    Operands loops;
    for (const std::vector<KnobLoop>& parts : axes) loops.push_back(parts[part].loop);
    return loops;
  }
  Operands ThreadNumbers() const {
    Operands numbers;
    for (const std::vector<KnobLoop>& parts : spatial_)
      numbers.push_back(NumberOf(parts[kThreads]));
    return numbers;
  }

  std::vector<KnobLoop> Split(int axis, int parts) {
    return b_.DefineSplit(loops_[axis], /*max_innermost=*/0, parts, kShortAxis);
  }

  void SplitTiled(int axis) {
    spatial_.push_back(Split(axis, kParts));
    const std::vector<KnobLoop>& parts = spatial_.back();
    const auto decision = [&](int part) { return parts[part].extent.decision; };
    drawn_ = decision(kResults) + 1;
    thread_count_.decisions.push_back(decision(kThreads));
    registers_.decisions.insert(registers_.decisions.end(),
                                {decision(kVirtual), decision(kResults)});
    for (const int part : {kVirtual, kThreads, kResults})
      tiles_[axis].decisions.push_back(decision(part));
    ConstrainTile();
    ConstrainShared();
  }

  // Each axis that is still to be split gets a share of the threads and of the registers, so that
  // few draws fail.
  void ConstrainTile() {
    const auto open = std::count_if(c_.tiled.begin() + static_cast<ptrdiff_t>(spatial_.size()),
                                    c_.tiled.end(), [&](int axis) { return Extent(axis) > 1; });
    int64_t threads = limits_.max_threads;
    const int64_t words =
        ir::CeilDivInt(ir::DTypeBytes(c_.program.buffers[block_.outputs[0]].dtype), 4);
    int64_t sums = (limits_.registers - GpuTileLimits::kOtherRegisters) / words;
    for (int axis = 0; axis < open; ++axis) {
      threads /= kThreadShare;
      sums /= kRegisterShare;
    }
    b_.AddDecisionFilter("threads", drawn_,
                         [count = thread_count_, most = std::max<int64_t>(1, threads)](
                             Decisions d) { return count.Of(d) <= most; });
    b_.AddDecisionFilter("registers", drawn_,
                         [count = registers_, most = std::max<int64_t>(1, sums),
                          threads = thread_count_, words, limits = limits_](Decisions d) {
                           const int64_t each = count.Of(d) * words;
                           return count.Of(d) <= most &&
                                  limits.HasRegisters(threads.Of(d),
                                                      each + GpuTileLimits::kOtherRegisters);
                         });
  }

  void SplitReduced(int axis) {
    reduced_.push_back(Split(axis, c_.reduction_parts));
    for (int part = 1; part < c_.reduction_parts; ++part) {
      const int decision = reduced_.back()[part].extent.decision;
      tiles_[axis].decisions.push_back(decision);
      drawn_ = decision + 1;
    }
    ConstrainShared();
  }

  // Checked after every split, with the smallest tiles of the axes that have not been split yet, so
  // that few draws fail at the end.
  void ConstrainShared() {
    for (SharedStage& stage : stages_) stage.SetTiles(c_.program, block_, tiles_);
    b_.AddDecisionFilter(
        "shared memory", drawn_,
        [stages = stages_, threads = thread_count_, most = limits_.shared_bytes](Decisions d) {
          int64_t bytes = 0;
          const int64_t count = threads.Of(d);
          for (const SharedStage& stage : stages) bytes += stage.Bytes(count, d);
          return bytes <= (count > 1 ? most : std::min(most, kMostBytesOfThread));
        });
  }

  // Requires that every thread copies something.
  void ConstrainCopies() {
    for (const SharedStage& stage : stages_) {
      b_.AddDecisionFilter("copies", drawn_,
                           [box = stage.box, shape = c_.program.buffers[stage.buffer].shape,
                            threads = thread_count_](Decisions d) {
                             const auto extents = box.Extents(d);
                             int64_t elements = 1;
                             for (size_t e = 0; e < extents.size(); ++e)
                               elements *= std::min(extents[e], shape[e]);
                             return elements >= threads.Of(d);
                           });
    }
  }

  // Orders the loops, and places the copies and the results.
  void Place() {
    Operands outer;
    int64_t points = 1;
    for (const int axis : c_.batch) {
      outer.push_back(loops_[axis].loop);
      points *= Extent(axis);
    }
    Operands inner = LoopsOf(spatial_, kBlocks);
    if (inner.size() > 2) {  // blockIdx.z has the batch, too
      points *= Extent(c_.tiled[0]);
      outer.push_back(inner.front());
      inner.erase(inner.begin());
    }
    Operands order = outer;
    for (const Operands& loops : {inner, LoopsOf(reduced_, 0), LoopsOf(spatial_, kThreads)})
      Append(order, loops);
    for (int part = 1; part < c_.reduction_parts; ++part) Append(order, LoopsOf(reduced_, part));
    for (const int part : {kVirtual, kResults}) Append(order, LoopsOf(spatial_, part));
    edit_.Add("reorder", order);
    const int64_t rows = c_.tiled.size() > 1 ? Extent(c_.tiled[c_.tiled.size() - 2]) : 1;
    grid_ = edit_.Grid(outer, std::max(points, rows), inner, limits_.max_grid);

    if (c_.consumer.empty()) {
      store_ = edit_.Add("cache_write", {main_, schedule::Text("local")})[0];
    } else {
      edit_.Add("set_scope", {main_, schedule::Text("local")});
      store_ = b_.Block(c_.consumer);
    }
    for (SharedStage& stage : stages_) {
      stage.block =
          edit_.Add("cache_read", {main_, schedule::Text(c_.program.buffers[stage.buffer].name),
                                   schedule::Text("shared")})[0];
      edit_.Add("compute_at", {stage.block, reduced_.back()[0].loop});
    }
    edit_.Add("reverse_compute_at", {store_, grid_.back()});
  }

  void Bind() {
    edit_.BindBlocks(grid_);
    edit_.BindThreads(LoopsOf(spatial_, kThreads));
    for (const std::vector<KnobLoop>& parts : spatial_) b_.VirtualThreads(parts[kVirtual]);
    for (const std::vector<KnobLoop>& parts : spatial_) b_.Unroll(parts[kResults]);
    std::vector<KnobLoop> reductions;
    for (int part = 1; part < c_.reduction_parts; ++part) {
      for (const std::vector<KnobLoop>& parts : reduced_) reductions.push_back(parts[part]);
    }
    b_.DefineUnrollDepth(reductions);
    b_.LimitUnrolled(block_.guards.empty() ? limits_.statements : limits_.guarded_statements);
  }

  // Divides the results among the threads in the same way as the sums.
  void StoreResults() {
    const size_t rank = block_.indices.size();
    const Operands loops = edit_.Loops(store_, grid_.size() + rank);
    Operands others, threads(c_.tiled.size()), outer, inner;
    for (size_t d = 0; d < rank; ++d) {
      const Operand& loop = loops[grid_.size() + d];
      const auto tiled = absl::c_find(c_.tiled, AxisOf(block_, block_.indices[d]));
      if (tiled == c_.tiled.end()) {
        others.push_back(loop);
        continue;
      }
      const auto axis = tiled - c_.tiled.begin();
      const Operands parts = edit_.Split(
          loop, {NumberOf(spatial_[axis][kThreads]), NumberOf(spatial_[axis][kResults])});
      outer.push_back(parts[0]);
      threads[axis] = parts[1];
      inner.push_back(parts[2]);
    }
    Operands order = threads;
    for (const Operands& each : {others, outer, inner}) Append(order, each);
    edit_.Add("reorder", order);
    edit_.BindThreads(threads);
    for (const Operands& each : {outer, inner}) {
      for (const Operand& loop : each) edit_.Add("unroll", {loop});
    }
  }

  const GpuContraction& c_;
  const ir::Block& block_;
  const GpuTileLimits& limits_;
  TemplateBuilder& b_;
  GpuEditor edit_{b_.trace()};
  std::vector<SharedStage> stages_;
  std::vector<TileSize> tiles_;  // per axis of the block
  TileSize thread_count_, registers_;
  int drawn_ = 0;
  Operand main_, store_;
  std::vector<KnobLoop> loops_;                           // per axis of the block
  std::vector<std::vector<KnobLoop>> spatial_, reduced_;  // the parts of the split axes
  Operands grid_;
};

constexpr int64_t kSmallBatch = 32;  // rows; with more, tiles reuse more than sums in parts save

// The order of roles in OperatorForm::axes; a batch follows.
enum MatmulRole { kI, kJ, kK, kBatch };

ir::Program MatmulProgram(const TemplateContext& context) {
  return ir::Program::FromWorkload(std::make_shared<const ir::Workload>(context.workload));
}

GpuContraction MatmulOf(const TemplateContext& context, const ir::Program& program) {
  const OperatorForm& form = context.form;
  return {.program = program,
          .block = program.FindBlock(form.main),
          .batch = std::vector<int>(form.axes.begin() + kBatch, form.axes.end()),
          .tiled = {form.axes[kI], form.axes[kJ]},
          .reduced = {form.axes[kK]},
          .reduction_parts = 3,
          .consumer = form.consumer};
}

// The order of roles in OperatorForm::axes.
enum ConvRole { kN, kH, kW, kO, kR, kS, kC };

ir::Program ProgramFor(const TemplateContext& context) {
  return ir::Program::FromWorkload(std::make_shared<const ir::Workload>(context.workload));
}

// The threads along x compute results that are adjacent in memory.
GpuContraction ConvolutionOf(const TemplateContext& context, const ir::Program& program) {
  const OperatorForm& form = context.form;
  const auto at = [&](ConvRole role) { return form.axes[role]; };
  const bool channels_first = form.kind == OperatorForm::Kind::kConv2dNchw;
  return {.program = program,
          .block = program.FindBlock(form.main),
          .batch = {at(kN)},
          .tiled = channels_first ? std::vector<int>{at(kO), at(kH), at(kW)}
                                  : std::vector<int>{at(kH), at(kW), at(kO)},
          .reduced = {at(kC), at(kR), at(kS)},
          .consumer = form.consumer};
}

}  // namespace

bool FitsGpuContraction(const GpuContraction& contraction, const GpuTileLimits& limits) {
  return StagesOf(contraction, limits).has_value();
}

void WriteGpuContraction(const GpuContraction& contraction, const GpuTileLimits& limits,
                         TemplateBuilder& builder) {
  GpuContractionWriter(contraction, limits, builder).Write();
}

bool FitsGpuDense(const TemplateContext& context) {
  const ir::Program program = MatmulProgram(context);
  return FitsGpuContraction(MatmulOf(context, program), context.gpu_limits);
}

void WriteGpuDense(const TemplateContext& context, TemplateBuilder& builder) {
  InlineStages(context, builder);
  const ir::Program program = MatmulProgram(context);
  WriteGpuContraction(MatmulOf(context, program), context.gpu_limits, builder);
}

bool FitsGpuSmallBatch(const TemplateContext& context) {
  return context.form.extents[context.form.axes[kI]] < kSmallBatch;
}

void WriteGpuSmallBatch(const TemplateContext& context, TemplateBuilder& b) {
  const OperatorForm& form = context.form;
  InlineStages(context, b);
  const Operand main = b.Block(form.main);
  const std::vector<KnobLoop> loops = b.Loops(main, form.extents);
  const KnobLoop& reduction = loops[form.axes[kK]];
  const std::vector<KnobLoop> k =
      b.DefineSplit(reduction, std::min(reduction.extent.extent, context.gpu_limits.max_threads));
  GpuEditor edit(b.trace());
  GpuEditor::Operands results;
  for (const KnobLoop& loop : loops) {
    if (&loop != &reduction) results.push_back(loop.loop);
  }
  GpuEditor::Operands order = results;
  order.insert(order.end(), {k[1].loop, k[0].loop});
  edit.Add("reorder", order);
  const Operand block = edit.Fuse(results);
  if (!form.consumer.empty()) edit.Add("reverse_compute_at", {b.Block(form.consumer), block});
  edit.BindBlocks({block});
  edit.BindThreads({k[1].loop});
}

bool FitsGpuConv2d(const TemplateContext& context) {
  const ir::Program program = ProgramFor(context);
  return FitsGpuContraction(ConvolutionOf(context, program), context.gpu_limits);
}

void WriteGpuConv2d(const TemplateContext& context, TemplateBuilder& builder) {
  InlineStages(context, builder);
  const ir::Program program = ProgramFor(context);
  WriteGpuContraction(ConvolutionOf(context, program), context.gpu_limits, builder);
}

}  // namespace hone::space
