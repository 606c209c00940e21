#include "server/tuner/feature/analytic_terms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/ir/index.h"
#include "common/ir/intrinsic.h"
#include "common/ir/program.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

// Returns c if the index is p / c for the loop's variable p, and 0 for others.
int64_t StepsPerValue(const ir::AtomTable& atoms, const ir::Index& index, const NestLoop& loop) {
  if (index.terms().size() != 1 || index.terms()[0].coeff != 1) return 0;
  const ir::Atom& atom = atoms[index.terms()[0].atom];
  if (index.terms()[0].atom == loop.var) return 1;
  if (atom.kind != ir::Atom::Kind::kFloorDiv) return 0;
  return StepsPerValue(atoms, atom.argument, loop) * atom.divisor;
}

// Returns after how many iterations of a loop an index starts again; the loop's extent if it does
// not.
int64_t PeriodOf(const ir::AtomTable& atoms, const ir::Index& index, const NestLoop& loop) {
  int64_t period = 1;
  for (const ir::IndexTerm& term : index.terms()) {
    const ir::Atom& atom = atoms[term.atom];
    if (!atoms.DependsOn(ir::Index::Of(term.atom), loop.var)) continue;
    int64_t own = loop.extent;
    if (atom.kind == ir::Atom::Kind::kMod) {
      const int64_t step = StepsPerValue(atoms, atom.argument, loop);
      if (step > 0) own = std::min(own, step * atom.divisor);
    }
    period = std::max(period, own);
  }
  return period;
}

// Returns how often a fused loop repeats its sweep through the data of an access: a loop p over 14
// rows and 21 columns sweeps 14 times through what only depends on p % 21. REQUIRES: the access
// varies with the loop.
double SweepsOf(const ir::AtomTable& atoms, const Statement& statement, const Access& access,
                size_t depth) {
  const NestLoop& loop = statement.loops[depth];
  int64_t period = 1;  // of the positions of the access
  for (size_t i = 0; i < statement.iter_loops.size(); ++i) {
    if ((statement.iter_loops[i] >> depth & 1) == 0) continue;
    const ir::BlockIter& iter = statement.block->iters[i];
    const auto reads = [&](const ir::Index& index) { return atoms.DependsOn(index, iter.var); };
    if (absl::c_any_of(*access.indices[0], reads))
      period = std::max(period, PeriodOf(atoms, iter.binding, loop));
    if (period == loop.extent) return 1;
  }
  return static_cast<double>(loop.extent) / static_cast<double>(period);
}

constexpr double kTileRegisters = 8, kTileLatency = 52;  // of AMX (Intel's optimization manual)
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

// How the cores of a CPU share the work of a statement.
// Returns the busiest core's share of all executions of a statement, without those whose predicates
// are false. Tiles that are partly inside count as whole. `body_depth`: the depth of the outermost
// loop of the tile.
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
  const auto covered = [&](const ir::BlockIter& iter, int64_t tile, ir::Range units) {
    const ir::Range range = in_units(iter.binding, units);
    const int64_t inside = std::min(range.max, iter.extent - 1) - range.min + 1;
    const int64_t rounded = (std::max<int64_t>(0, inside) + tile - 1) / tile * tile;
    return static_cast<double>(std::min(rounded, range.extent())) /
           static_cast<double>(range.extent());
  };
  double always = 1;
  struct Divided {
    const ir::BlockIter* iter;
    int64_t tile;
  };
  absl::InlinedVector<Divided, 4> divided;
  for (const ir::BlockIter& iter : statement.block->iters) {
    const int64_t tile = in_body(iter.binding).extent();
    if (parallel != nullptr && atoms.DependsOn(iter.binding, parallel->var)) {
      divided.push_back({&iter, tile});
    } else {
      always *= covered(iter, tile, {0, 0});
    }
  }
  if (parallel == nullptr) return always;
  // The first core's units are the busiest, because those outside are the last.
  const int64_t units = UnitsPerCore(*parallel, cores);
  const bool equal = absl::c_all_of(
      divided, [&](const Divided& d) { return covered(*d.iter, d.tile, {0, units - 1}) == 1; });
  const int64_t step = equal ? units : (units + kUnits - 1) / kUnits;
  double share = 0;
  int64_t counted = 0;
  for (int64_t unit = 0; unit < units; unit += step, ++counted) {
    double product = 1;
    for (const Divided& d : divided) product *= covered(*d.iter, d.tile, {unit, unit});
    share += product;
  }
  const double of_units = static_cast<double>(units) / static_cast<double>(parallel->extent);
  return always * of_units * share / static_cast<double>(counted);
}

// Returns the cycles for lines of the output that other cores take away, over the whole nest: if
// the cores write alternating runs of elements, their prefetchers fetch each other's lines.
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

bool IsStatic(const NestLoop& loop) {
  return loop.extent == 1 || loop.kind == ir::LoopKind::kVectorized ||
         loop.kind == ir::LoopKind::kUnrolled;
}

// How a buffer is stored. A buffer that the program computes is stored compactly: it has the size
// of the region that is live in the innermost loop around its users.
struct Storage {
  bool compact = false;
  double live_bytes = 0;
  absl::InlinedVector<int64_t, 4> shape;
};

// The memory that an access touches in one run of some loops: `rows` contiguous runs of `run_bytes`
// bytes at a distance of `row_stride` bytes.
struct Footprint {
  double rows = 1;
  double run_bytes = 4;
  int64_t row_stride = 0;
  double lines() const { return rows * std::ceil(run_bytes / kLineBytes); }
};

class Estimator {
 public:
  Estimator(const Nest& nest, const AnalyticMachine& machine) : nest_(nest), machine_(machine) {}

  AnalyticEstimate Run() {
    AnalyticEstimate estimate{.forks = Forks()};
    for (const Statement& statement : nest_.statements()) {
      estimate.statements.push_back(Cost(statement));
      estimate.cycles += estimate.statements.back().cycles;
    }
    estimate.cycles = std::max(1.0, estimate.cycles + estimate.forks * machine_.fork_cycles);
    return estimate;
  }

 private:
  // The innermost loops that become straight-line code.
  struct Body {
    int depth = 0;          // depth of the outermost of them
    int vector_depth = -1;  // depth of the vectorized loop
    double lanes = 1;       // extent of the vectorized loop
    double registers_per_vector = 1;
    // The depth of the nest that an instruction computes, or -1. The columns of such a nest replace
    // the vectorized loop, and `lanes` is the number of its products.
    int unit_depth = -1;
    double unit_instructions = 1;
    double vectors = 1;  // in a register of the instruction: the rows of a tile, or 1
  };

  // Returns the lanes of the widest vector.
  double Lanes(const Statement& statement) const {
    return std::max(1, machine_.vector_bits / 8 / statement.accesses[0].element_bytes);
  }

  double Registers(double elements, const Access& access) const {
    return std::ceil(elements * access.element_bytes * 8 / std::max(8, machine_.vector_bits));
  }

  // Finds the nest that an instruction with sums in registers computes.
  Body UnitOf(const Statement& statement) const {
    for (size_t d = 0; d < statement.loops.size(); ++d) {
      const NestLoop& loop = statement.loops[d];
      if (loop.kind != ir::LoopKind::kTensor) continue;
      const ir::Intrinsic* const instruction = ir::FindIntrinsic(ir::ValueOf(
          nest_.program().node(loop.node).annotations, ir::Annotation::Key::kIntrinsic, -1));
      using enum ir::Intrinsic::Shape;
      if (instruction == nullptr || instruction->shape == kScalar) return {};
      return {.unit_depth = static_cast<int>(d),
              .unit_instructions = static_cast<double>(instruction->instructions),
              .vectors = instruction->shape == kTile ? static_cast<double>(loop.extent) : 1};
    }
    return {};
  }

  Body BodyOf(const Statement& statement) const {
    Body body = UnitOf(statement);
    body.depth = static_cast<int>(statement.loops.size());
    if (body.unit_depth >= 0) {
      body.depth = body.unit_depth;
      body.vector_depth = static_cast<int>(statement.loops.size()) - 2;
      body.lanes = statement.executions[body.unit_depth];
      const Access& sums = statement.accesses[0];
      body.registers_per_vector = Registers(sums.touched[body.unit_depth], sums) / body.vectors;
    }
    while (body.depth > 0 && IsStatic(statement.loops[body.depth - 1])) --body.depth;
    for (int d = body.depth; d < static_cast<int>(statement.loops.size()); ++d) {
      if (statement.loops[d].kind != ir::LoopKind::kVectorized) continue;
      body.vector_depth = d;
      body.lanes = static_cast<double>(statement.loops[d].extent);
      body.registers_per_vector = std::ceil(body.lanes / Lanes(statement));
    }
    return body;
  }

  // Returns whether an unrolled loop selects which of its expressions a block computes, as in
  // Winograd's transforms. Only the selected expression then remains in the code.
  bool ChoosesInBody(const Statement& statement, const Body& body) const {
    if (statement.ops.select == 0) return false;
    const ir::Program& program = nest_.program();
    const auto unrolled = [&](const ir::Index& index) {
      bool found = false;
      for (size_t i = 0; i < statement.iter_loops.size(); ++i) {
        if (!program.atoms.DependsOn(index, statement.block->iters[i].var)) continue;
        for (size_t d = body.depth; d < statement.loops.size(); ++d) {
          found |= statement.loops[d].kind == ir::LoopKind::kUnrolled &&
                   (statement.iter_loops[i] >> d & 1) != 0;
        }
      }
      return found;
    };
    bool all = true;
    program.pool.Visit(statement.block->values[0], [&](const ir::Expr& expr) {
      if (expr.op != ir::Op::kSelect) return;
      const ir::Expr& condition = program.pool[expr.a];
      all &= condition.op == ir::Op::kEqual && program.pool[condition.a].op == ir::Op::kIndex &&
             unrolled(program.pool.IndicesOf(program.pool[condition.a])[0]);
    });
    return all;
  }

  // Returns the distance of the elements that an access touches along a dimension while the loops
  // from `depth` inwards run. It is 2, for example, for the pixels of a convolution of stride 2 at
  // a fixed position of its window.
  int64_t StepOf(const Statement& statement, const Access& access, size_t dim, int depth) const {
    if (access.indices.size() != 1) return 1;
    const auto& terms = (*access.indices[0])[dim].terms();
    const auto strided = [](const ir::IndexTerm& term) { return std::abs(term.coeff) > 1; };
    if (absl::c_none_of(terms, strided)) return 1;
    int64_t step = 0;
    for (const ir::IndexTerm& term : terms) {
      if (Moves(statement, term.atom, depth)) step = std::gcd(step, term.coeff);
    }
    return std::max<int64_t>(1, step);
  }

  // Returns whether an atom of an index changes while the loops from `depth` inwards run.
  bool Moves(const Statement& statement, ir::AtomId atom, int depth) const {
    for (size_t i = 0; i < statement.iter_loops.size(); ++i) {
      if (statement.block->iters[i].var != atom) continue;
      for (size_t d = depth; d < statement.loops.size(); ++d) {
        if (statement.loops[d].extent > 1 && (statement.iter_loops[i] >> d & 1) != 0) return true;
      }
      return false;
    }
    return true;  // a compound expression
  }

  static int64_t Touched(int64_t extent, int64_t step) { return (extent + step - 1) / step; }

  // Returns the number of register operands of an access in one body: vectors, broadcast elements,
  // or single elements of a gather.
  double Operands(const Statement& statement, const Access& access, const Body& body) const {
    double elements = access.touched[body.depth];
    const absl::Span<const int64_t> box = access.Box(body.depth);
    for (size_t dim = 0; dim < box.size(); ++dim) {
      if (const int64_t step = StepOf(statement, access, dim, body.depth); step > 1)
        elements *= static_cast<double>(Touched(box[dim], step)) / static_cast<double>(box[dim]);
    }
    if (body.unit_depth >= 0) {
      const double own = access.touched[body.unit_depth];
      return elements / own * Registers(own, access) / body.vectors;
    }
    if (body.vector_depth < 0 || (access.varies >> body.vector_depth & 1) == 0) return elements;
    if (StrideOf(nest_.program(), statement, access, body.vector_depth) != 1) return 1.5 * elements;
    return elements / body.lanes * body.registers_per_vector;
  }

  AnalyticTerms Cost(const Statement& statement) {
    AnalyticTerms terms;
    const Body body = BodyOf(statement);
    const bool update = statement.block->reducer != ir::Reducer::kNone;
    const double bodies = terms.bodies = statement.executions[0] / statement.executions[body.depth];
    const double instances =
        statement.executions[body.depth] / body.lanes * body.registers_per_vector;
    const OpCounts& ops = statement.ops;
    const OpCounts::Arithmetic &f = ops.floating, &w = ops.whole;
    double per_instance =
        f.mad + f.addsub + f.mul + f.cmp + f.other + ops.select + 8 * f.divmod + 16 * f.math;
    // Integers are multiplied and added by two instructions. Conversions are not counted, because
    // register tiles share them.
    per_instance += 2 * w.mad + w.addsub + w.mul + w.cmp + 8 * w.divmod;
    if (ChoosesInBody(statement, body)) per_instance /= ops.select + 1;
    terms.operations = statement.executions[0] * (std::max(per_instance, 1.0) + f.mad);
    terms.lanes = body.lanes / body.registers_per_vector;
    const bool whole = body.vector_depth < 0 || body.unit_depth >= 0;
    terms.fill = whole ? 1 : terms.lanes / Lanes(statement);
    if (body.unit_depth >= 0) per_instance = body.unit_instructions * body.vectors;

    double loads = 0, vector_operands = 1;
    operands_.clear();
    for (const Access& access : statement.accesses) {
      const double operands = operands_.emplace_back(Operands(statement, access, body));
      if (access.kind != AccessKind::kRead) {
        terms.accumulators += operands;
        continue;
      }
      loads += operands;
      if (body.vector_depth >= 0 && (access.varies >> body.vector_depth & 1) != 0)
        vector_operands = std::max(vector_operands, operands);
    }
    terms.register_reuse = instances / std::max(loads, 1.0);
    const double outputs = terms.accumulators;
    double stores = 0;
    const double vectors = body.vectors;
    const double pipes = vectors > 1 ? 1 : machine_.fma_pipes;  // a tile starts one row per cycle
    const double latency = vectors > 1 ? kTileLatency : machine_.fma_latency;
    const double registers = vectors > 1 ? kTileRegisters : machine_.registers;
    const double moved = vectors / machine_.loads + vectors / machine_.stores;
    terms.compute_cycles = bodies * instances * per_instance / pipes;
    if (body.unit_depth < 0)
      terms.math_cycles = bodies * instances * 16 * f.math / machine_.fma_pipes;
    const double steps = update ? instances / std::max(1.0, outputs) : 1;
    // Sums stay in registers during the loops that they do not depend on.
    int resident = body.depth;
    while (update && resident > 0 && (statement.accesses[0].varies >> (resident - 1) & 1) == 0)
      --resident;
    if (update && (resident < body.depth || body.depth == 0)) {
      terms.latency_cycles = bodies * latency * steps;
      // A spilled accumulator waits for its own store.
      const double needed = outputs + std::min(vector_operands / steps, outputs) + 1;
      terms.spill_cycles = bodies * 2 * std::max(0.0, needed - registers) * steps;
      const double entries = statement.executions[0] / statement.executions[resident];
      terms.move_cycles = entries * outputs * moved;
      terms.entry_cycles = entries * (outputs * moved + machine_.entry_cycles);
    } else {
      // Each update of a sum in memory waits for the previous one.
      if (update) terms.latency_cycles = bodies * latency * instances;
      if (update) loads += outputs;
      stores += outputs;
    }
    terms.load_cycles = bodies * loads * vectors / machine_.loads;
    terms.store_cycles = bodies * stores * vectors / machine_.stores;
    terms.port_cycles =
        bodies * std::max(loads * vectors / machine_.loads, stores * vectors / machine_.stores);
    const double arithmetic =
        std::max(terms.compute_cycles, terms.latency_cycles) + terms.spill_cycles;
    // Arithmetic and loads do not hide each other completely, because they share the front end and
    // loads come in bursts.
    const double execute = std::hypot(arithmetic, terms.port_cycles) + bodies + terms.entry_cycles;

    Traffic(statement, body, resident, steps, terms);
    terms.contended_cycles = ContentionCycles(nest_.program(), statement, machine_);
    terms.traffic_cycles[1] += terms.contended_cycles;
    const double share = terms.share =
        BusiestShare(nest_.program(), statement, body.depth, machine_.cores);
    // All cores share the memory.
    const double alone = machine_.line_cycles[2];
    terms.memory_share = std::max(share, std::min(1.0, machine_.memory_shared_line_cycles / alone));
    const double memory = terms.traffic_cycles[2] * terms.memory_share;
    const double parts[] = {execute * share, terms.traffic_cycles[0] * share,
                            terms.traffic_cycles[1] * share, memory};
    const double largest = *absl::c_max_element(parts);
    const double sum = absl::c_accumulate(parts, 0.0);
    terms.cycles = largest + 0.3 * (sum - largest);  // the parts overlap, but not fully
    return terms;
  }

  double Forks() const {
    double forks = 0;
    absl::InlinedVector<ir::NodeId, 8> seen;
    for (const Statement& statement : nest_.statements()) {
      for (size_t d = 0; d < statement.loops.size(); ++d) {
        const NestLoop& loop = statement.loops[d];
        if (loop.kind != ir::LoopKind::kParallel || loop.extent == 1 ||
            absl::c_linear_search(seen, loop.node))
          continue;
        seen.push_back(loop.node);
        forks += statement.executions[0] / statement.executions[d];
      }
    }
    return forks;
  }

  Storage StorageOf(const Statement& statement, const Access& access) {
    const ir::Program& program = nest_.program();
    const ir::Buffer& buffer = program.buffers[access.buffer];
    Storage storage;
    storage.shape.assign(buffer.shape.begin(), buffer.shape.end());
    if (buffer.input || buffer.output) return storage;
    const Access* written = nullptr;
    for (const Statement& other : nest_.statements()) {
      const Access* use = other.Find(access.buffer);
      if (use != nullptr && use->kind != AccessKind::kRead) written = use;
    }
    if (written == nullptr) return storage;  // the prepack kernel computes it
    storage.compact = true;
    const absl::Span<const int64_t> live =
        written->Box(static_cast<int>(DepthOfUsers(nest_, statement, access.buffer)));
    storage.shape.assign(live.begin(), live.end());
    storage.live_bytes = access.element_bytes;
    for (int64_t extent : storage.shape) storage.live_bytes *= static_cast<double>(extent);
    return storage;
  }

  Footprint FootprintOf(const Statement& statement, const Access& access, const Storage& storage,
                        int depth) const {
    const absl::Span<const int64_t> box = access.Box(depth);
    Footprint footprint{.run_bytes = static_cast<double>(access.element_bytes)};
    int64_t stride = access.element_bytes;
    bool contiguous = true;
    for (size_t dim = box.size(); dim-- > 0;) {
      const int64_t step = StepOf(statement, access, dim, depth);
      contiguous &= step == 1 || footprint.run_bytes < kLineBytes;
      if (contiguous) {
        footprint.run_bytes *= static_cast<double>(box[dim]);
      } else if (box[dim] > 1) {
        if (footprint.row_stride == 0) footprint.row_stride = stride * step;
        footprint.rows *= static_cast<double>(Touched(box[dim], step));
      }
      contiguous &= box[dim] == storage.shape[dim];
      stride *= storage.shape[dim];
    }
    return footprint;
  }

  // Returns whether the rows of a footprint evict each other from L1 (level 0) or L2. Other data
  // occupies some of the ways.
  bool Collides(const Footprint& footprint, int level) const {
    if (footprint.row_stride == 0 || level > 1) return false;
    const double ways = level == 0 ? machine_.l1_ways : machine_.l2_ways;
    const int64_t period = level == 0 ? machine_.l1_period
                                      : machine_.l2_bytes / static_cast<int64_t>(machine_.l2_ways);
    if (period <= 0) return true;
    const auto common = static_cast<double>(std::gcd(footprint.row_stride, period));
    const double places = static_cast<double>(period) / common;
    return footprint.rows / places * std::ceil(footprint.run_bytes / common) > 0.8 * ways;
  }

  // Computes the cycles for loading a statement's cache lines into each level over the whole nest.
  // From the depth `resident` inwards, an updated output is in registers.
  void Traffic(const Statement& statement, const Body& body, int resident, double steps,
               AnalyticTerms& terms) {
    const double capacity[kCacheLevels] = {
        0.8 * static_cast<double>(machine_.l1_bytes), 0.7 * static_cast<double>(machine_.l2_bytes),
        0.7 * static_cast<double>(std::max(machine_.l3_bytes, machine_.l2_bytes))};
    const size_t accesses = statement.accesses.size();
    const size_t depths = body.depth + 1;
    total_bytes_.assign(depths, 0.0);
    storages_.clear();
    footprints_.resize(accesses * depths);
    for (size_t a = 0; a < accesses; ++a) {
      const Access& access = statement.accesses[a];
      storages_.push_back(StorageOf(statement, access));
      Footprint* const footprints = footprints_.data() + a * depths;
      for (size_t depth = 0; depth < depths; ++depth) {
        const bool same = depth > 0 && (access.varies >> (depth - 1) & 1) == 0;
        footprints[depth] =
            same ? footprints[depth - 1]
                 : FootprintOf(statement, access, storages_.back(), static_cast<int>(depth));
        total_bytes_[depth] += footprints[depth].lines() * kLineBytes;
      }
    }
    for (size_t a = 0; a < accesses; ++a) {
      for (int level = 0; level < kCacheLevels; ++level) {
        // A compact buffer that fits stays in the cache.
        if (storages_[a].compact && storages_[a].live_bytes <= 0.5 * capacity[level]) continue;
        const Access& access = statement.accesses[a];
        const bool sum = access.kind == AccessKind::kReadWrite;
        const int deepest = sum ? resident : body.depth;
        const double touches = sum ? 1e30 : operands_[a];
        Misses(statement, access, absl::MakeConstSpan(footprints_).subspan(a * depths, 1 + deepest),
               steps, touches, level, capacity[level], terms);
      }
    }
  }

  // Adds the cycles for loading an access into a cache level. Finds the outermost depth at which
  // all data fits; from there inwards, the access is loaded once. Its data stays in the cache
  // during the adjacent outer loops that do not move the access. In the next outer loop, iterations
  // reuse the data that they share, mostly partly used lines. If not even one body fits, each step
  // of the body loads its lines again, but at most as many as it has operands.
  void Misses(const Statement& statement, const Access& access,
              absl::Span<const Footprint> footprints, double steps, double operands, int level,
              double capacity, AnalyticTerms& terms) const {
    size_t depth = 0;
    bool fits = false;
    for (; depth < footprints.size(); ++depth) {
      fits = total_bytes_[depth] <= capacity && !Collides(footprints[depth], level);
      if (fits || depth + 1 == footprints.size()) break;
    }
    if (fits) {
      while (depth > 0 && (access.varies >> (depth - 1) & 1) == 0) --depth;
      if (depth > 0) --depth;
    }
    const Footprint& loaded = footprints[depth];
    const double runs = statement.executions[0] / statement.executions[depth];
    double lines = fits ? loaded.lines() : std::min(loaded.lines() * steps, operands);
    if (fits && depth + 1 < footprints.size() && (access.varies >> depth & 1) != 0) {
      const double sweeps = SweepsOf(nest_.program().atoms, statement, access, depth);
      const double swept = total_bytes_[depth] / sweeps + loaded.lines() * kLineBytes;
      // Of data that are a little larger than the cache, a part stays.
      const double lost = std::clamp(swept / capacity - 1, 0.0, 1.0);
      lines *= 1 + (sweeps - 1) * lost;
    }
    // Prefetchers do not follow short runs across pages.
    const bool jumps = loaded.run_bytes < 4 * kLineBytes && loaded.row_stride >= 2048;
    double cycles =
        lines * machine_.line_cycles[level] * (jumps && level > 0 ? machine_.unforeseen : 1);
    if (jumps && level > 0) terms.jump_cycles[level] += cycles * runs;
    if (level == 0 && jumps && loaded.rows > machine_.pages) {
      const double pages = loaded.rows *
                           std::min(1.0, static_cast<double>(loaded.row_stride) / 4096) *
                           machine_.page_cycles;
      terms.page_cycles += pages * runs;
      cycles += pages;
    }
    terms.traffic_cycles[level] += cycles * runs;
  }

  const Nest& nest_;
  const AnalyticMachine& machine_;
  absl::InlinedVector<double, 4> operands_;  // of a statement, by access
  // Scratch of Traffic.
  absl::InlinedVector<double, 16> total_bytes_;    // of all accesses, by depth
  absl::InlinedVector<Footprint, 64> footprints_;  // by access and depth
  absl::InlinedVector<Storage, 4> storages_;       // by access
};

}  // namespace

AnalyticEstimate EstimateCost(const Nest& nest, const AnalyticMachine& machine) {
  return Estimator(nest, machine).Run();
}

}  // namespace hone::feature
