#include "server/tuner/space/gpu/gpu_editor.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/ir/cases.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr std::array<const char*, 3> kAxes = {"x", "y", "z"};

constexpr int64_t kDefaultThreads = 64;
constexpr int64_t kLeastThreads = 16;

}  // namespace

GpuEditor::Operands GpuEditor::Grid(const Operands& outer, int64_t points, const Operands& inner,
                                    int64_t limit) {
  if (points > limit) {
    Operands all = outer;
    Append(all, inner);
    return {Fuse(all)};
  }
  Operands grid;
  if (!outer.empty()) grid.push_back(Fuse(outer));
  Append(grid, inner);
  return grid;
}

void GpuEditor::BindBlocks(const Operands& loops) {
  for (size_t i = 0; i < loops.size(); ++i) {
    Add("bind", {loops[i], schedule::Text(absl::StrCat("blockIdx.", kAxes[loops.size() - 1 - i]))});
  }
}

void GpuEditor::BindThreads(const Operands& loops) {
  for (size_t i = 0; i < loops.size(); ++i) {
    Add("bind",
        {loops[i], schedule::Text(absl::StrCat("threadIdx.", kAxes[loops.size() - 1 - i]))});
  }
}

void GpuEditor::Unroll(const Operands& loops) {
  for (size_t i = 0; i + 1 < loops.size(); ++i) Add("unroll", {loops[i]});
  Vectorize(loops.back());
}

void GpuEditor::Cooperate(const Operand& block, size_t loops, size_t rank, const Operands& threads,
                          const Operand& vector, size_t inside) {
  const Operands around = Loops(block, loops + inside);
  const auto end = around.end() - static_cast<ptrdiff_t>(inside);
  const Operand fused = Fuse(Operands(end - static_cast<ptrdiff_t>(rank), end));
  Operands sizes = threads;
  sizes.push_back(vector);
  const Operands parts = Split(fused, sizes);
  // `parts` are the serial loop, the threads and the vector.
  Operands order(parts.begin() + 1, parts.end() - 1);
  const Operands bound = order;
  order.push_back(parts[0]);
  order.insert(order.end(), end, around.end());
  order.push_back(parts.back());
  Add("reorder", order);
  BindThreads(bound);
  Vectorize(parts.back());
}

void ScheduleGpuNest(schedule::TraceBuilder& trace, const Operand& block_register,
                     const ir::Block& block, const GpuTileLimits& limits,
                     const std::vector<int64_t>& widths, bool sampled) {
  const int iters = static_cast<int>(block.iters.size());
  if (iters == 0) return;
  const std::vector<Operand> loops = trace.Add("loops", {block_register}, {}, iters);
  std::vector<Operand> spatial, reductions;
  int64_t results = 1;
  for (int i = 0; i < iters; ++i) {
    (block.iters[i].reduce ? reductions : spatial).push_back(loops[i]);
    if (!block.iters[i].reduce) results *= block.iters[i].extent;
  }
  if (spatial.empty()) return;  // one element, which one thread computes
  if (!reductions.empty() && spatial.size() + reductions.size() > 1) {
    std::vector<Operand> order = spatial;
    order.insert(order.end(), reductions.begin(), reductions.end());
    trace.Add("reorder", order);
  }
  const Operand all = spatial.size() > 1 ? trace.Add("fuse", spatial)[0] : spatial[0];
  Operand threads = schedule::Number(std::min(kDefaultThreads, results)),
          width = schedule::Number(1);
  if (sampled) {
    const int64_t most = std::min(limits.max_threads, results);
    const auto largest = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
    threads = trace.Add("sample_categorical", {},
                        {{"candidates", Doublings(std::min(kLeastThreads, largest), most)}})[0];
    width = trace.Add("sample_categorical", {}, {{"candidates", widths}})[0];
  }
  const std::vector<Operand> parts =
      trace.Add("split", {all, schedule::Number(0), threads, width}, {}, 3);
  if (!reductions.empty()) {
    std::vector<Operand> order = {parts[1]};
    order.insert(order.end(), reductions.begin(), reductions.end());
    order.push_back(parts[2]);
    trace.Add("reorder", order);
  }
  trace.Add("bind", {parts[0], schedule::Text("blockIdx.x")});
  trace.Add("bind", {parts[1], schedule::Text("threadIdx.x")});
  trace.Add("vectorize", {parts[2]});
}

std::vector<int64_t> NestWidths(const ir::Program& program, const ir::Block& block,
                                const GpuTileLimits& limits) {
  int last = -1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (!block.iters[i].reduce) last = i;
  }
  if (last < 0 || block.indices.empty() || block.outputs.size() != 1) return {1};
  const ir::AtomId var = block.iters[last].var;
  bool regular = block.indices.back().SingleAtom() == var;
  for (const ir::Condition& guard : block.guards)
    regular &= !program.atoms.DependsOn(guard.index, var);
  regular &= !ir::HasGuardedValue(program.pool, block.values);
  program.pool.VisitLoads(block.values[0],
                          [&](const ir::Expr& load) { regular &= load.gathered < 0; });
  if (!regular) return {1};
  return VectorWidths(limits, block.iters[last].extent, program.buffers[block.outputs[0]].dtype);
}

}  // namespace hone::space
