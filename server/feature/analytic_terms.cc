#include "server/feature/analytic_terms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::feature {
namespace {

constexpr double kVectorUnits = 2;
constexpr double kLoadsPerCycle = 2;
constexpr double kSumLatency = 4;  // cycles
constexpr double kL2BytesPerCycle = 64;
constexpr double kL3BytesPerCycle = 32;
constexpr double kMemoryBytesPerCycle = 8;
// Cores that together take all that memory gives.
constexpr double kMemoryCores = 2;

bool IsStatic(const NestLoop& loop) {
  return loop.kind == ir::LoopKind::kVectorized || loop.kind == ir::LoopKind::kUnrolled ||
         loop.kind == ir::LoopKind::kTensor;
}

double TouchedBytes(const Statement& statement, size_t depth) {
  double bytes = 0;
  for (const Access& access : statement.accesses)
    bytes += access.touched[depth] * access.element_bytes;
  return bytes;
}

// Code without a loop: the innermost loops that are unrolled or vectorized.
struct Body {
  size_t depth = 0;     // where they begin
  int vectorized = -1;  // depth of the vectorized loop
};

Body BodyOf(const Statement& statement) {
  Body body;
  body.depth = statement.loops.size();
  while (body.depth > 0 && IsStatic(statement.loops[body.depth - 1])) --body.depth;
  for (size_t d = body.depth; d < statement.loops.size(); ++d) {
    if (statement.loops[d].kind == ir::LoopKind::kVectorized) body.vectorized = static_cast<int>(d);
  }
  return body;
}

bool Varies(const Access& access, int depth) { return (access.varies >> depth & 1) != 0; }

// Cost of an element in simple operations.
double Weight(const OpCounts& ops) {
  double weight = ops.select;
  const OpCounts::Arithmetic& f = ops.floating;
  weight += f.mad + f.addsub + f.mul + f.cmp + f.other + 8 * f.divmod + 16 * f.math;
  // Integers are mostly addresses, which cost nothing beside the elements; not where they are all.
  const OpCounts::Arithmetic& i = ops.integer;
  if (weight == 0) weight = i.mad + i.addsub + i.mul + i.cmp + i.other + i.divmod;
  return std::max(weight, 1.0);  // a copy is an instruction, too
}

}  // namespace

double FetchedBytes(const Statement& statement, double capacity) {
  size_t depth = 0;
  while (depth < statement.loops.size() && TouchedBytes(statement, depth) > capacity) ++depth;
  double fetched = 0;
  for (const Access& access : statement.accesses) {
    double bytes = access.touched[depth] * access.element_bytes;
    bool moved = false;
    for (size_t d = depth; d-- > 0;) {
      moved |= Varies(access, static_cast<int>(d));
      if (moved) bytes *= static_cast<double>(statement.loops[d].extent);
    }
    fetched += bytes;
  }
  return fetched;
}

double HalideMemoryCost(const Statement& statement, const target::Target& target) {
  const auto cache = static_cast<double>(
      target.l3_bytes > 0 ? target.l3_bytes / std::max(1, target.cores) : target.l2_bytes);
  double least = std::numeric_limits<double>::infinity();
  for (size_t depth = 0; depth <= statement.loops.size(); ++depth) {
    const double tiles = statement.executions[0] / statement.executions[depth];
    const double footprint = TouchedBytes(statement, depth);
    const double per_byte = std::min(1 + footprint * kHalideBalance / cache, kHalideBalance);
    least = std::min(least, tiles * footprint * per_byte);
  }
  return least;
}

AnalyticTerms TermsOf(const ir::Program& program, const Statement& statement,
                      const target::Target& target) {
  AnalyticTerms terms;
  const Body body = BodyOf(statement);
  const double executions = statement.executions[0];
  const double bodies = executions / statement.executions[body.depth];
  const OpCounts ops = CountOps(program, *statement.block, /*detect_mad=*/true);
  const double weight = Weight(ops);
  terms.operations = executions * (weight + ops.floating.mad);

  const double width =
      std::max(1.0, target.vector_bits / 8.0 / statement.accesses[0].element_bytes);
  double vectors = 1;  // that one vectorized loop takes
  if (body.vectorized >= 0) {
    const auto extent = static_cast<double>(statement.loops[body.vectorized].extent);
    vectors = std::ceil(extent / width);
    terms.lanes = extent / vectors;
    terms.fill = terms.lanes / width;
  }
  const double instructions = executions / terms.lanes;
  terms.compute_cycles = instructions * weight / kVectorUnits;

  double operands = 0;
  for (const Access& access : statement.accesses) {
    double own = access.touched[body.depth];
    if (body.vectorized >= 0 && Varies(access, body.vectorized)) {
      if (StrideOf(program, statement, access, body.vectorized) == 1) {
        own /= terms.lanes;
      } else {
        terms.gather_cycles += bodies * own;
      }
    }
    if (access.kind == AccessKind::kRead) {
      operands += own;
    } else {
      terms.accumulators += own;
    }
  }
  terms.load_cycles = bodies * operands / kLoadsPerCycle;
  terms.register_reuse = instructions / bodies / std::max(operands, 1.0);

  if (statement.block->reducer != ir::Reducer::kNone) {
    const double chain = instructions / std::max(1.0, terms.accumulators);
    terms.latency_cycles = chain * kSumLatency;
    const double excess = terms.accumulators + 2 - target.vector_registers;
    terms.spill_cycles = excess > 0 ? bodies * excess * 2 : 0;
  }

  terms.l2_bytes = FetchedBytes(statement, static_cast<double>(target.l1_bytes));
  terms.l3_bytes = FetchedBytes(statement, static_cast<double>(target.l2_bytes));
  const auto last =
      static_cast<double>(std::max(target.l3_bytes / std::max(1, target.cores), target.l2_bytes));
  terms.memory_bytes = FetchedBytes(statement, last);

  double turns = 1;
  for (size_t d = 0; d < body.depth; ++d) {
    const NestLoop& loop = statement.loops[d];
    if (loop.kind == ir::LoopKind::kParallel) {
      terms.forks += turns;
      terms.units *= static_cast<double>(loop.extent);
    }
    turns *= static_cast<double>(loop.extent);
    if (!IsStatic(loop)) terms.loop_cycles += turns;
  }
  return terms;
}

double AnalyticTerms::Speedup(int cores) const {
  return units / std::ceil(units / std::max(1, cores));
}

double AnalyticTerms::Roofline(const target::Target& target) const {
  const double speedup = Speedup(target.cores);
  const double execute = std::max({compute_cycles, latency_cycles, load_cycles}) + gather_cycles +
                         spill_cycles + loop_cycles;
  const double core = std::max({execute, l2_bytes / kL2BytesPerCycle, l3_bytes / kL3BytesPerCycle});
  return std::max(core / speedup,
                  memory_bytes / kMemoryBytesPerCycle / std::min(speedup, kMemoryCores));
}

}  // namespace hone::feature
