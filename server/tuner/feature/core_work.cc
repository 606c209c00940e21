#include "server/tuner/feature/core_work.h"

#include <algorithm>
#include <cmath>

#include "absl/container/inlined_vector.h"

namespace hone::feature {
namespace {

constexpr int64_t kUnits = 16;  // of a core's iterations of the parallel loop that are looked at

// Returns the parallel loop around a statement, or null.
const NestLoop* ParallelLoop(const Statement& statement) {
  for (const NestLoop& loop : statement.loops) {
    if (loop.kind == ir::LoopKind::kParallel && loop.extent > 1) return &loop;
  }
  return nullptr;
}

int64_t UnitsPerCore(const NestLoop& parallel, int cores) {
  return (parallel.extent + cores - 1) / cores;
}

}  // namespace

double BusiestShare(const ir::Program& program, const Statement& statement, int body_depth,
                    int cores) {
  const ir::AtomTable& atoms = program.atoms;
  const NestLoop* const parallel = ParallelLoop(statement);
  // The range of a binding during some units of the parallel loop, and inside one body.
  const auto in_units = [&](const ir::Index& binding, ir::Range units) {
    return atoms.RangeOf(binding, [&](ir::AtomId var) {
      return parallel != nullptr && var == parallel->var ? units : atoms[var].range;
    });
  };
  const auto in_body = [&](const ir::Index& binding) {
    return atoms.RangeOf(binding, [&](ir::AtomId var) {
      for (size_t d = body_depth; d < statement.loops.size(); ++d) {
        if (statement.loops[d].var == var) return atoms[var].range;
      }
      return ir::Range{0, 0};
    });
  };
  // The share of a binding's range in some units that is inside.
  const auto covered = [&](const ir::BlockIter& iter, ir::Range units) {
    const ir::Range range = in_units(iter.binding, units);
    const int64_t inside = std::min(range.max, iter.extent - 1) - range.min + 1;
    const int64_t tile = in_body(iter.binding).extent();
    const int64_t rounded = (std::max<int64_t>(0, inside) + tile - 1) / tile * tile;
    return static_cast<double>(std::min(rounded, range.extent())) /
           static_cast<double>(range.extent());
  };
  double always = 1;
  absl::InlinedVector<const ir::BlockIter*, 4> divided;
  for (const ir::BlockIter& iter : statement.block->iters) {
    if (parallel != nullptr && atoms.DependsOn(iter.binding, parallel->var)) {
      divided.push_back(&iter);
    } else {
      always *= covered(iter, {0, 0});
    }
  }
  if (parallel == nullptr) return always;
  // The first core's units are the busiest, because those outside are the last.
  const int64_t units = UnitsPerCore(*parallel, cores);
  const bool equal = std::all_of(divided.begin(), divided.end(), [&](const ir::BlockIter* iter) {
    return covered(*iter, {0, units - 1}) == 1;
  });
  const int64_t step = equal ? units : (units + kUnits - 1) / kUnits;
  double share = 0;
  int64_t counted = 0;
  for (int64_t unit = 0; unit < units; unit += step, ++counted) {
    double product = 1;
    for (const ir::BlockIter* iter : divided) product *= covered(*iter, {unit, unit});
    share += product;
  }
  const double of_units = static_cast<double>(units) / static_cast<double>(parallel->extent);
  return always * of_units * share / static_cast<double>(counted);
}

double ContentionCycles(const ir::Program& program, const Statement& statement,
                        const AnalyticMachine& machine) {
  const Access& output = statement.accesses[0];
  const ir::Buffer& buffer = program.buffers[output.buffer];
  if (machine.cores < 2 || !buffer.output) return 0;
  const NestLoop* const parallel = ParallelLoop(statement);
  if (parallel == nullptr) return 0;
  const int64_t units = UnitsPerCore(*parallel, machine.cores);
  const ir::AtomTable& atoms = program.atoms;
  const auto of_loop = [&](ir::AtomId var) {
    return var == parallel->var ? ir::Range{0, units - 1} : atoms[var].range;
  };
  const auto of_iter = [&](ir::AtomId var) {
    for (const ir::BlockIter& iter : statement.block->iters) {
      if (iter.var != var) continue;
      const ir::Range bound = atoms.RangeOf(iter.binding, of_loop);
      return ir::Range{bound.min, std::min(bound.max, iter.extent - 1)};
    }
    return atoms[var].range;
  };
  // The first core writes `run` adjacent elements, then other cores, then it again.
  double run = 1, elements = 1;
  bool contiguous = true;
  for (size_t dim = buffer.shape.size(); dim-- > 0;) {
    const int64_t box =
        std::min(buffer.shape[dim], atoms.RangeOf((*output.indices[0])[dim], of_iter).extent());
    if (contiguous) run *= static_cast<double>(box);
    contiguous &= box == buffer.shape[dim];
    elements *= static_cast<double>(buffer.shape[dim]);
  }
  const double lines = std::ceil(run * output.element_bytes / kLineBytes);
  return elements / run * machine.contended_line_cycles * std::min(lines, machine.contended_lines);
}

}  // namespace hone::feature
