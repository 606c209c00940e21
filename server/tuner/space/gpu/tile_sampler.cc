#include "server/tuner/space/gpu/tile_sampler.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/gpu/tile_size.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kAlignment = 16;  // of a buffer in shared memory
constexpr int64_t kMostVector = 4;  // elements per access

// Rounds the extents of a copy up, because the last pass of the threads may exceed the copy along
// its outermost dimension.
void RoundUp(int64_t elements_per_pass, absl::InlinedVector<int64_t, 6>& extents) {
  size_t outer = 0;
  while (outer + 1 < extents.size() && extents[outer] == 1) ++outer;
  int64_t inner = 1;
  for (size_t d = outer + 1; d < extents.size(); ++d) inner *= extents[d];
  const int64_t passes = ir::CeilDivInt(extents[outer] * inner, elements_per_pass);
  extents[outer] = ir::CeilDivInt(passes * elements_per_pass, inner);
}

using Operands = std::vector<Operand>;
using Decisions = absl::Span<const int64_t>;

constexpr int64_t kMostAlongVector = 16, kMostAlongRow = 16, kMostHeight = 4;  // per thread
constexpr int64_t kMostThreadsX = 64, kMostThreadsY = 32, kMostThreadsZ = 8;
constexpr int64_t kMostThreadsWide = 16;    // along each axis, if every thread has a large tile
constexpr int64_t kWide = 8, kWideRun = 4;  // a large tile along each axis, and its runs
constexpr int64_t kLeastWide = 64;          // minimum extents and threads for large tiles
constexpr int64_t kMostWindow = 8;          // taps of a window that one copy may hold

class Sampler {
 public:
  Sampler(const GpuTileRequest& request, std::vector<SharedStage>& stages, Sketch& sketch,
          GpuEditor& edit)
      : request_(request),
        program_(request.program),
        block_(request.block),
        c_(request.contraction),
        limits_(request.limits),
        stages_(stages),
        sketch_(sketch),
        edit_(edit),
        tiles_(block_.iters.size()) {
    for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].extent = block_.iters[i].extent;
  }

  GpuTile Sample() {
    const bool staged = !stages_.empty();
    SampleThreads();
    SampleRegisters(/*strided=*/staged);
    SampleReduction(staged);
    return std::move(tile_);
  }

 private:
  int64_t Extent(int axis) const { return request_.Extent(axis); }
  int64_t RowExtent() const {
    return Extent(c_.row) * (request_.height >= 0 ? Extent(request_.height) : 1);
  }

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
    sketch_.constraints.push_back({std::move(name), drawn_, std::move(holds)});
  }

  void SampleThreads() {
    const int64_t most = limits_.max_threads;
    const Operand x =
        Sample(ThreadCounts(Extent(c_.vector), /*least=*/8,
                            std::min(request_.wide ? kMostThreadsWide : kMostThreadsX, most)));
    const Operand y =
        Sample(ThreadCounts(Extent(c_.row), /*least=*/request_.wide ? 8 : 1,
                            std::min(request_.wide ? kMostThreadsWide : kMostThreadsY, most)));
    TileSize threads{.decisions = {DecisionOf(x), DecisionOf(y)}};
    Grow(c_.vector, x);
    Grow(c_.row, y);
    Constrain("threads", [=](Decisions d) { return threads.Of(d) <= most; });
    if (request_.height >= 0) {
      const Operand z = Sample(ThreadCounts(Extent(request_.height), 1, kMostThreadsZ));
      threads.decisions.push_back(DecisionOf(z));
      Grow(request_.height, z);
      tile_.threads.push_back(z);
    }
    // A block has at least one warp if there are enough results. With large tiles it has several,
    // because the threads use so many registers that only few blocks fit.
    int64_t least =
        RowExtent() * Extent(c_.vector) >= 64 * limits_.sub_group ? limits_.sub_group : 1;
    if (request_.wide) least = std::min(most, std::max(kLeastWide, 4 * limits_.sub_group));
    Constrain("threads",
              [=](Decisions d) { return threads.Of(d) <= most && threads.Of(d) >= least; });
    tile_.threads.push_back(y);
    tile_.threads.push_back(x);
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
    const std::vector<int64_t> lanes = VectorWidths(limits_, Extent(c_.vector), request_.dtype);
    const Operands j =
        SamplePair(request_.wide ? std::vector<int64_t>{kWide / kWideRun, kWideRun}
                                 : Pairs(Extent(c_.vector), kMostAlongVector, lanes, true));
    tile_.vector_outer = j[0];
    tile_.vector_lanes = j[1];
    Grow(c_.vector, j[0]);
    Grow(c_.vector, j[1]);
    ConstrainTile(c_.vector);
    const Operands i = SamplePair(request_.wide ? std::vector<int64_t>{kWide / kWideRun, kWideRun}
                                                : Pairs(Extent(c_.row), kMostAlongRow,
                                                        RegisterSizes(Extent(c_.row), 8), strided));
    tile_.row_outer = i[0];
    tile_.row_inner = i[1];
    Grow(c_.row, i[0]);
    Grow(c_.row, i[1]);
    ConstrainTile(c_.row);
    registers_ = TileSize{
        .decisions = {DecisionOf(j[0]), DecisionOf(j[1]), DecisionOf(i[0]), DecisionOf(i[1])}};
    TileSize rows{.decisions = {DecisionOf(i[0]), DecisionOf(i[1])}};
    const TileSize vectors{.decisions = {DecisionOf(j[0]), DecisionOf(j[1])}};
    ConstrainRegisters(rows, vectors);
    if (request_.height < 0) return;
    tile_.height_inner = Sample(RegisterSizes(Extent(request_.height), kMostHeight));
    Grow(request_.height, tile_.height_inner);
    ConstrainTile(request_.height);
    registers_.decisions.push_back(DecisionOf(tile_.height_inner));
    rows.decisions.push_back(DecisionOf(tile_.height_inner));
    ConstrainRegisters(rows, vectors);
  }

  void ConstrainRegisters(const TileSize& rows, const TileSize& vectors) {
    const int64_t words =
        (ir::DTypeBytes(ir::AccumulatorOf(block_.reducer, request_.dtype)) + 3) / 4;
    Constrain("registers", [=, threads = thread_count_, limits = limits_](Decisions d) {
      const int64_t r = rows.Of(d), v = vectors.Of(d);
      return limits.HasRegisters(threads.Of(d),
                                 (r * v + r + v) * words + GpuTileLimits::kOtherRegisters);
    });
  }

  void SampleReduction(bool staged) {
    const int64_t extent = Extent(c_.reduce) / request_.terms;
    std::vector<int64_t> pairs;
    for (const int64_t inner : {1, 2, 4, 8}) {
      for (int64_t steps = 1; steps * inner <= std::min<int64_t>(64, extent); steps *= 2) {
        const int64_t tile = steps * inner;
        const bool usual = request_.wide ? tile >= 8 && tile <= 32
                           : staged      ? tile >= 4 || 2 * tile > extent
                                         : steps == 1;
        if (usual) pairs.insert(pairs.end(), {steps, inner});
      }
    }
    for (const int axis : c_.windows) {
      if (Extent(axis) == 1 || Extent(axis) > kMostWindow || !staged) {
        tile_.window_tiles.push_back(Literal(1));
        continue;
      }
      tile_.window_tiles.push_back(Sample({1, Extent(axis)}));
      Grow(axis, tile_.window_tiles.back());
    }
    const Operands k = SamplePair(std::move(pairs));
    tile_.reduce_steps = k[0];
    tile_.reduce_inner = k[1];
    Grow(c_.reduce, k[0]);
    Grow(c_.reduce, k[1]);
    tiles_[c_.reduce].constant = request_.terms;
    Constrain("statements",
              [registers = registers_, inner = DecisionOf(k[1]),
               most = block_.guards.empty() ? limits_.statements : limits_.guarded_statements](
                  Decisions d) { return d[inner] == 1 || registers.Of(d) * d[inner] <= most; });
    if (staged) ConstrainStages();
  }

  // Requires that the copies fit into shared memory and that every thread copies something.
  void ConstrainStages() {
    for (SharedStage& stage : stages_) stage.SetTiles(program_, block_, tiles_);
    const int64_t most =
        limits_.shared_bytes / (request_.wide ? 2 : 1);  // for two tiles of each operand
    Constrain("shared memory", [=, stages = stages_, threads = thread_count_](Decisions d) {
      int64_t bytes = 0;
      for (const SharedStage& stage : stages) bytes += stage.Bytes(threads.Of(d), d);
      return bytes <= most;
    });
    Constrain("copies", [stages = stages_, threads = thread_count_](Decisions d) {
      return absl::c_all_of(
          stages, [&](const SharedStage& stage) { return stage.box.Elements(d) >= threads.Of(d); });
    });
    for (SharedStage& stage : stages_) {
      stage.width = Sample(stage.widths);
      Constrain("vectors of a copy", [box = stage.box, threads = thread_count_,
                                      width = DecisionOf(stage.width)](Decisions d) {
        return d[width] == 1 || (box.Extents(d).back() % d[width] == 0 &&
                                 box.Elements(d) >= threads.Of(d) * d[width]);
      });
    }
    const bool pads =
        absl::c_any_of(stages_, [](const SharedStage& stage) { return stage.order.size() > 1; });
    if (pads) tile_.padding = Sample({0, SharedStage::kPadding / 2 * request_.terms});
  }

  const GpuTileRequest& request_;
  const ir::Program& program_;
  const ir::Block& block_;
  const Contraction& c_;
  const GpuTileLimits& limits_;
  std::vector<SharedStage>& stages_;
  Sketch& sketch_;
  GpuEditor& edit_;
  GpuTile tile_;
  int drawn_ = 0;                // the decisions up to the last number
  std::vector<TileSize> tiles_;  // per axis of the block
  TileSize thread_count_, registers_;
};

}  // namespace

void SharedStage::SetTiles(const ir::Program& program, const ir::Block& reader,
                           absl::Span<const TileSize> tiles) {
  program.pool.VisitLoads(reader.values[0], [&](const ir::Expr& load) {
    if (load.buffer == buffer) box = *TileBoxOf(program, reader, load, tiles);
  });
}

int64_t SharedStage::Bytes(int64_t threads, absl::Span<const int64_t> decided) const {
  absl::InlinedVector<int64_t, 6> extents = box.Extents(decided);
  RoundUp(threads * kMostVector, extents);
  if (terms > 1) extents[term_dimension] = ir::CeilDivInt(extents[term_dimension], terms);
  int64_t elements = terms;
  for (const int dimension : order) elements *= extents[dimension];
  if (padded && order.size() > 1) {
    const int64_t row = extents[order.back()];
    elements = elements / row * (ir::CeilDivInt(row, kPadding) * kPadding + kPadding / 2);
  }
  return elements * box.element_bytes + kAlignment;
}

void SharedStage::GroupTerms(const ir::Program& program, const ir::Block& reader, ir::AtomId var,
                             int64_t count) {
  terms = count;
  program.pool.VisitLoads(reader.values[0], [&](const ir::Expr& load) {
    if (load.buffer != buffer) return;
    term_dimension = DimensionOf(program.atoms, program.pool.IndicesOf(load), var);
  });
}

std::string SharedStage::Layout() const {
  if (terms == 1 && absl::c_is_sorted(order)) return "";
  std::vector<std::string> from, to;
  for (size_t d = 0; d < order.size(); ++d) {
    from.push_back(absl::StrCat("d", d));
    to.push_back(absl::StrCat("d", order[d]));
    if (order[d] == term_dimension) absl::StrAppend(&to.back(), " / ", terms);
  }
  if (terms > 1) to.push_back(absl::StrCat("d", term_dimension, " % ", terms));
  return absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(to, ", "));
}

std::optional<std::vector<SharedStage>> FindSharedStages(const ir::Program& program,
                                                         const ir::Block& block,
                                                         const Contraction& contraction,
                                                         const GpuTileLimits& limits) {
  std::vector<SharedStage> stages;
  const std::vector<TileSize> no_tiles(block.iters.size());
  bool fits = true;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    if (absl::c_none_of(indices, [&](const ir::Index& index) {
          return VariesWithReduction(program, block, index);
        }))
      return;
    fits &= absl::c_none_of(stages,
                            [&](const SharedStage& stage) { return stage.buffer == load.buffer; });
    const ir::Buffer& buffer = program.buffers[load.buffer];
    std::optional<TileBox> box = TileBoxOf(program, block, load, no_tiles);
    fits &= box.has_value() && !buffer.padded;
    if (!fits) return;
    SharedStage stage{.buffer = load.buffer, .box = *std::move(box)};
    for (int d = 0; d < static_cast<int>(buffer.shape.size()); ++d) stage.order.push_back(d);
    // The axis that is divided among threads comes last, so that their loads from shared memory are
    // contiguous.
    for (const ContractionOperand* operand :
         {&contraction.row_operand, &contraction.vector_operand}) {
      if (operand->buffer != load.buffer || operand->panel_dimension < 0) continue;
      stage.order.erase(stage.order.begin() + operand->panel_dimension);
      stage.order.push_back(operand->panel_dimension);
    }
    const bool aligned = program.pool.IndicesOf(load).back().SingleAtom() != ir::kNoAtom;
    stage.widths =
        aligned ? VectorWidths(limits, buffer.shape.back(), buffer.dtype) : std::vector<int64_t>{1};
    stages.push_back(std::move(stage));
  });
  if (!fits || stages.empty()) return std::nullopt;
  return stages;
}

bool CanBeWide(const GpuTileRequest& request) {
  const Contraction& c = request.contraction;
  const GpuTileLimits& limits = request.limits;
  const int64_t vector = request.Extent(c.vector);
  return request.height < 0 && vector % kWideRun == 0 &&
         limits.access_bytes >= kWideRun * ir::DTypeBytes(request.dtype) &&
         std::min(vector, request.Extent(c.row)) >= kLeastWide &&
         request.Extent(c.reduce) >= kWide &&
         kWide * kWide + 2 * kWide + GpuTileLimits::kOtherRegisters <= limits.registers;
}

GpuTile SampleGpuTile(const GpuTileRequest& request, std::vector<SharedStage>& stages,
                      Sketch& sketch, GpuEditor& edit) {
  return Sampler(request, stages, sketch, edit).Sample();
}

}  // namespace hone::space
