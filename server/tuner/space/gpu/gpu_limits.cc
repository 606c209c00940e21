#include "server/tuner/space/gpu/gpu_limits.h"

#include <algorithm>

#include "absl/algorithm/container.h"

namespace hone::space {
namespace {

using ir::ExprId;

// Whether two values are computed by the same operations on operands of the same types.
bool SameOperations(const ir::ExprPool& pool, ExprId id, const ir::ExprPool& other_pool,
                    ExprId other) {
  if (id == ir::kNoExpr || other == ir::kNoExpr) return id == other;
  const ir::Expr &a = pool[id], &b = other_pool[other];
  if (a.op != b.op || a.dtype != b.dtype) return false;
  if (a.op == ir::Op::kLoad) return a.gathered < 0;
  const auto same = [&](ExprId own, ExprId of) {
    return SameOperations(pool, own, other_pool, of);
  };
  if (a.op == ir::Op::kMul && same(a.a, b.b) && same(a.b, b.a)) return true;
  return a.op != ir::Op::kConst && same(a.a, b.a) && same(a.b, b.b) && same(a.c, b.c);
}

}  // namespace

GpuTileLimits GpuTileLimits::Of(const target::Target& target) {
  GpuTileLimits limits;
  limits.max_threads = std::max(1, target.gpu.max_threads);
  limits.shared_bytes = target.gpu.shared_bytes;
  if (target.gpu.registers > 0) limits.registers = target.gpu.registers;
  limits.unit_registers = target.gpu.unit_registers;
  limits.sub_group = std::max(1, target.gpu.sub_group);
  limits.units = std::max(1, target.cores);
  limits.access_bytes = std::max(4, target.vector_bits / 8);
  limits.shared_memory = target.gpu.has_shared_memory;
  return limits;
}

std::vector<int64_t> Doublings(int64_t least, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = least; size <= most; size *= 2) sizes.push_back(size);
  return sizes;
}

std::vector<int64_t> ThreadCounts(int64_t extent, int64_t least, int64_t most) {
  constexpr int64_t kMostDivisor = 32;
  std::vector<int64_t> counts;
  for (int64_t count = 1; count <= std::min(extent, most); ++count) {
    const bool power = (count & (count - 1)) == 0;
    const bool divides = extent % count == 0 && count <= kMostDivisor;
    if (power || divides) counts.push_back(count);
  }
  // Counts below `least` are kept only if there is none above.
  const int64_t fewest = std::min(least, counts.back());
  std::erase_if(counts, [&](int64_t count) { return count < fewest; });
  return counts;
}

std::vector<int64_t> RegisterSizes(int64_t extent, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= std::min(extent, most); ++size) {
    if ((size & (size - 1)) == 0 || extent % size == 0) sizes.push_back(size);
  }
  return sizes;
}

std::vector<int64_t> VectorWidths(const GpuTileLimits& limits, int64_t extent, ir::DType dtype) {
  std::vector<int64_t> widths = {1};
  const int64_t most = std::min<int64_t>(4, limits.access_bytes / ir::DTypeBytes(dtype));
  for (int64_t width = 2; width <= most && extent % width == 0; width *= 2) widths.push_back(width);
  return widths;
}

int64_t TermsOf(const ir::Intrinsic& dot) {
  return ir::DescriptionOf(dot).stages.back().reduce[0].extent;
}

const ir::Intrinsic* DotInstructionFor(const ir::Program& program, const ir::Block& block,
                                       const Contraction& contraction,
                                       const target::Target& target) {
  const ir::BlockIter& reduce = block.iters[contraction.reduce];
  bool fits = absl::c_none_of(block.guards, [&](const ir::Condition& guard) {
    return program.atoms.DependsOn(guard.index, reduce.var);
  });
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    fits &= DimensionOf(program.atoms, program.pool.IndicesOf(load), reduce.var) >= 0;
  });
  if (!fits) return nullptr;
  for (const ir::Intrinsic& dot : ir::Intrinsics()) {
    if (dot.shape != ir::Intrinsic::Shape::kScalar || dot.arch != target.arch ||
        !target.HasFeature(dot.feature)) {
      continue;
    }
    const ir::Workload& description = ir::DescriptionOf(dot);
    const ir::Stage& stage = description.stages.back();
    if (stage.reducer == block.reducer && reduce.extent % TermsOf(dot) == 0 &&
        description.tensors[stage.tensors[0]].dtype == program.buffers[block.outputs[0]].dtype &&
        SameOperations(program.pool, block.values[0], description.pool, stage.values[0])) {
      return &dot;
    }
  }
  return nullptr;
}

}  // namespace hone::space
