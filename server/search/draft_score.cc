#include "server/search/draft_score.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "common/target/caches.h"
#include "server/feature/nest.h"

namespace hone::search {
namespace {

using feature::Access;
using feature::AccessKind;
using feature::Nest;
using feature::NestLoop;
using feature::Statement;

constexpr double kLineBytes = 64;
constexpr int kLevels = 3;  // into L1, into L2, into L3

bool IsStatic(const NestLoop& loop) {
  return loop.extent == 1 || loop.kind == ir::LoopKind::kVectorized ||
         loop.kind == ir::LoopKind::kUnrolled;
}

// A buffer that the program computes is stored compactly: as large as what is live in the innermost
// loop around its users.
struct Storage {
  bool compact = false;
  double live_bytes = 0;
  absl::InlinedVector<int64_t, 4> shape;
};

// The memory that an access touches in one run of some loops: `rows` runs of `run_bytes`,
// `row_stride` bytes apart.
struct Footprint {
  double rows = 1;
  double run_bytes = 4;
  int64_t row_stride = 0;
  double lines() const { return rows * std::ceil(run_bytes / kLineBytes); }
};

class Drafter {
 public:
  Drafter(const Nest& nest, const DraftMachine& machine) : nest_(nest), machine_(machine) {}

  double Run() {
    double cycles = 0;
    for (const Statement& statement : nest_.statements()) cycles += Cost(statement);
    return cycles + Forks();
  }

 private:
  // The innermost loops that become straight code.
  struct Body {
    int depth = 0;          // where they begin
    int vector_depth = -1;  // of the vectorized loop
    double lanes = 1;       // of its extent
    double registers_per_vector = 1;
  };

  Body BodyOf(const Statement& statement) const {
    Body body;
    body.depth = static_cast<int>(statement.loops.size());
    while (body.depth > 0 && IsStatic(statement.loops[body.depth - 1])) --body.depth;
    const int bytes = statement.accesses[0].element_bytes;
    const double lanes = std::max(1, machine_.vector_bits / 8 / bytes);
    for (int d = body.depth; d < static_cast<int>(statement.loops.size()); ++d) {
      if (statement.loops[d].kind != ir::LoopKind::kVectorized) continue;
      body.vector_depth = d;
      body.lanes = static_cast<double>(statement.loops[d].extent);
      body.registers_per_vector = std::ceil(body.lanes / lanes);
    }
    return body;
  }

  // Whether an unrolled loop says which of its expressions a block computes, as the transforms of
  // Winograd do: then only that one is left in the code.
  bool ChoosesInBody(const Statement& statement, const Body& body) const {
    if (statement.ops.select == 0) return false;
    const ir::Program& program = nest_.program();
    const auto unrolled = [&](const ir::Index& index) {
      bool found = false;
      for (const ir::BlockIter& iter : statement.block->iters) {
        if (!program.atoms.DependsOn(index, iter.var)) continue;
        for (size_t d = body.depth; d < statement.loops.size(); ++d) {
          found |= statement.loops[d].kind == ir::LoopKind::kUnrolled &&
                   program.atoms.DependsOn(iter.binding, statement.loops[d].var);
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

  // How far apart what an access touches along a dimension lies while the loops from `depth`
  // inwards run: 2 for the pixels of a convolution of stride 2 while its window stands still.
  int64_t StepOf(const Statement& statement, const Access& access, size_t dim, int depth) const {
    if (access.indices.size() != 1) return 1;
    const auto& terms = (*access.indices[0])[dim].terms();
    const auto strided = [](const ir::IndexTerm& term) { return std::abs(term.coeff) > 1; };
    if (std::none_of(terms.begin(), terms.end(), strided)) return 1;
    int64_t step = 0;
    for (const ir::IndexTerm& term : terms) {
      if (Moves(statement, term.atom, depth)) step = std::gcd(step, term.coeff);
    }
    return std::max<int64_t>(1, step);
  }

  // Whether an atom of an index changes while the loops from `depth` inwards run.
  bool Moves(const Statement& statement, ir::AtomId atom, int depth) const {
    for (const ir::BlockIter& iter : statement.block->iters) {
      if (iter.var != atom) continue;
      return std::any_of(
          statement.loops.begin() + depth, statement.loops.end(), [&](const NestLoop& loop) {
            return loop.extent > 1 && nest_.program().atoms.DependsOn(iter.binding, loop.var);
          });
    }
    return true;  // an expression of several
  }

  static int64_t Touched(int64_t extent, int64_t step) { return (extent + step - 1) / step; }

  // Register operands of an access in one body: vectors, broadcast elements, or single elements of
  // a gather.
  double Operands(const Statement& statement, const Access& access, const Body& body) const {
    double elements = access.touched[body.depth];
    const absl::Span<const int64_t> box = access.Box(body.depth);
    for (size_t dim = 0; dim < box.size(); ++dim) {
      if (const int64_t step = StepOf(statement, access, dim, body.depth); step > 1)
        elements *= static_cast<double>(Touched(box[dim], step)) / static_cast<double>(box[dim]);
    }
    if (body.vector_depth < 0 || (access.varies >> body.vector_depth & 1) == 0) return elements;
    if (feature::StrideOf(nest_.program(), statement, access, body.vector_depth) != 1)
      return 1.5 * elements;
    return elements / body.lanes * body.registers_per_vector;
  }

  double Cost(const Statement& statement) {
    const Body body = BodyOf(statement);
    const bool update = statement.block->reducer != ir::Reducer::kNone;
    const double bodies = statement.executions[0] / statement.executions[body.depth];
    const double instances =
        statement.executions[body.depth] / body.lanes * body.registers_per_vector;
    const feature::OpCounts& ops = statement.ops;
    const feature::OpCounts::Arithmetic& f = ops.floating;
    double per_instance =
        f.mad + f.addsub + f.mul + f.cmp + f.other + ops.select + 8 * f.divmod + 16 * f.math;
    if (ChoosesInBody(statement, body)) per_instance /= ops.select + 1;

    double loads = 0, vector_operands = 1;
    for (const Access& access : statement.accesses) {
      if (access.kind != AccessKind::kRead) continue;
      const double operands = Operands(statement, access, body);
      loads += operands;
      if (body.vector_depth >= 0 && (access.varies >> body.vector_depth & 1) != 0)
        vector_operands = std::max(vector_operands, operands);
    }
    double stores = 0, outputs = 0, transfers = 0;
    for (const Access& access : statement.accesses) {
      if (access.kind != AccessKind::kRead) outputs += Operands(statement, access, body);
    }
    double compute = instances * per_instance / machine_.fma_pipes;
    const double steps = update ? instances / std::max(1.0, outputs) : 1;
    // Sums stay in registers while only loops turn that they do not depend on.
    int resident = body.depth;
    while (update && resident > 0 && (statement.accesses[0].varies >> (resident - 1) & 1) == 0)
      --resident;
    if (update && (resident < body.depth || body.depth == 0)) {
      compute = std::max(compute, machine_.fma_latency * steps);
      // A spilled accumulator waits for its own store.
      const double needed = outputs + std::min(vector_operands / steps, outputs) + 1;
      compute += 2 * std::max(0.0, needed - machine_.registers) * steps;
      const double entries = statement.executions[0] / statement.executions[resident];
      transfers =
          entries * (outputs * (1 / machine_.loads + 1 / machine_.stores) + machine_.entry_cycles);
    } else {
      // Sums through memory wait for each other.
      if (update) compute = std::max(compute, machine_.fma_latency * instances);
      if (update) loads += outputs;
      stores += outputs;
    }
    const double ports = std::max(loads / machine_.loads, stores / machine_.stores);
    // Neither hides the other in full: they share the front end, and loads come in bursts.
    const double execute = bodies * (std::hypot(compute, ports) + 1) + transfers;

    double traffic[kLevels];
    Traffic(statement, body, resident, steps, traffic);
    const double share = Share(statement) * Coverage(statement, body);
    // Memory serves all cores together.
    const double alone = machine_.line_cycles[2];
    const double memory =
        traffic[2] * std::max(share, std::min(1.0, machine_.memory_shared_line_cycles / alone));
    const double parts[] = {execute * share, traffic[0] * share, traffic[1] * share, memory};
    const double largest = *std::max_element(std::begin(parts), std::end(parts));
    const double sum = std::accumulate(std::begin(parts), std::end(parts), 0.0);
    return largest + 0.3 * (sum - largest);  // they overlap, but not fully
  }

  // The part of the work that the busiest core has.
  double Share(const Statement& statement) const {
    double units = 1;
    for (const NestLoop& loop : statement.loops) {
      if (loop.kind == ir::LoopKind::kParallel) units *= static_cast<double>(loop.extent);
    }
    return std::ceil(units / machine_.cores) / units;
  }

  double Forks() const {
    double forks = 0;
    absl::InlinedVector<ir::NodeId, 8> seen;
    for (const Statement& statement : nest_.statements()) {
      for (size_t d = 0; d < statement.loops.size(); ++d) {
        const NestLoop& loop = statement.loops[d];
        if (loop.kind != ir::LoopKind::kParallel || loop.extent == 1 ||
            std::find(seen.begin(), seen.end(), loop.node) != seen.end())
          continue;
        seen.push_back(loop.node);
        forks += statement.executions[0] / statement.executions[d];
      }
    }
    return forks * machine_.fork_cycles;
  }

  Storage StorageOf(const Statement& statement, const Access& access) {
    const ir::Program& program = nest_.program();
    const ir::Buffer& buffer = program.buffers[access.buffer];
    Storage storage;
    storage.shape.assign(buffer.shape.begin(), buffer.shape.end());
    if (buffer.input || buffer.output) return storage;
    const Statement* writer = nullptr;
    size_t depth = statement.loops.size();
    for (const Statement& other : nest_.statements()) {
      const Access* use = other.Find(access.buffer);
      if (use == nullptr) continue;
      if (use->kind != AccessKind::kRead) writer = &other;
      size_t common = 0;
      while (common < std::min(depth, other.loops.size()) &&
             other.loops[common].node == statement.loops[common].node)
        ++common;
      depth = common;
    }
    if (writer == nullptr) return storage;  // of the prepack kernel
    storage.compact = true;
    const absl::Span<const int64_t> live =
        writer->Find(access.buffer)->Box(static_cast<int>(depth));
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

  // Whether the rows of a footprint push each other out of L1 (level 0) or L2. Some ways are taken
  // by other data.
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

  // Cycles to bring a statement's cache lines into each level over the whole nest. From the depth
  // `resident` on an updated output is in registers.
  void Traffic(const Statement& statement, const Body& body, int resident, double steps,
               double (&cycles)[kLevels]) {
    const double capacity[kLevels] = {
        0.8 * static_cast<double>(machine_.l1_bytes), 0.7 * static_cast<double>(machine_.l2_bytes),
        0.7 * static_cast<double>(std::max(machine_.l3_bytes, machine_.l2_bytes))};
    std::fill(std::begin(cycles), std::end(cycles), 0.0);
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
      for (int level = 0; level < kLevels; ++level) {
        // A compact buffer that fits is written and read in the cache.
        if (storages_[a].compact && storages_[a].live_bytes <= 0.5 * capacity[level]) continue;
        const Access& access = statement.accesses[a];
        const bool sum = access.kind == AccessKind::kReadWrite;
        const int deepest = sum ? resident : body.depth;
        const double touches = sum ? 1e30 : Operands(statement, access, body);
        cycles[level] += Misses(statement, access,
                                absl::MakeConstSpan(footprints_).subspan(a * depths, 1 + deepest),
                                steps, touches, level, capacity[level]);
      }
    }
  }

  // From the outside in: at the first depth where everything fits, the access is loaded once. The
  // loops right outside that it does not vary with find it still there, and the next one finds what
  // it shares with its own last iteration, lines that are not used up above all. Where not even one
  // body fits, each of its steps loads anew, but not more lines than it has operands.
  double Misses(const Statement& statement, const Access& access,
                absl::Span<const Footprint> footprints, double steps, double operands, int level,
                double capacity) const {
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
    const double lines = fits ? loaded.lines() : std::min(loaded.lines() * steps, operands);
    // Prefetchers do not follow short runs from page to page.
    const bool jumps = loaded.run_bytes < 4 * kLineBytes && loaded.row_stride >= 2048;
    double cycles =
        lines * machine_.line_cycles[level] * (jumps && level > 0 ? machine_.unforeseen : 1);
    if (level == 0 && jumps && loaded.rows > machine_.pages) {
      cycles += loaded.rows * std::min(1.0, static_cast<double>(loaded.row_stride) / 4096) *
                machine_.page_cycles;
    }
    return cycles * runs;
  }

  // The part of the executions whose predicates can hold: tiles that lie outside are skipped.
  double Coverage(const Statement& statement, const Body& body) const {
    const ir::AtomTable& atoms = nest_.program().atoms;
    double covered = 1;
    for (const ir::BlockIter& iter : statement.block->iters) {
      const auto all = static_cast<double>(atoms.RangeOf(iter.binding).extent());
      const ir::Range inner = atoms.RangeOf(iter.binding, [&](ir::AtomId var) {
        for (size_t d = body.depth; d < statement.loops.size(); ++d) {
          if (statement.loops[d].var == var) return atoms[var].range;
        }
        return ir::Range{0, 0};
      });
      const auto tile = static_cast<double>(inner.extent());
      covered *= std::min(1.0, std::ceil(static_cast<double>(iter.extent) / tile) * tile / all);
    }
    return covered;
  }

  const Nest& nest_;
  const DraftMachine& machine_;
  // Scratch of Traffic.
  absl::InlinedVector<double, 16> total_bytes_;    // of all accesses, per depth
  absl::InlinedVector<Footprint, 64> footprints_;  // per access and depth
  absl::InlinedVector<Storage, 4> storages_;       // per access
};

}  // namespace

DraftMachine DraftMachine::Of(const target::Target& target) {
  DraftMachine machine{.l1_bytes = target.l1_bytes,
                       .l2_bytes = target.l2_bytes,
                       .l3_bytes = target::ReachableL3Bytes(target),
                       .vector_bits = target.vector_bits,
                       .registers = target.vector_registers,
                       .cores = target.cores};
  machine.l1_ways =
      std::max(1.0, static_cast<double>(target.l1_bytes) / static_cast<double>(machine.l1_period));
  const auto is_one_of = [&](std::initializer_list<absl::string_view> cpus) {
    return std::ranges::find(cpus, target.cpu) != cpus.end();
  };
  const bool zen = absl::StartsWith(target.cpu, "znver");
  if (target.vector_bits <= 256 && (!zen || is_one_of({"znver1", "znver2"})))
    machine.fma_latency = 5;
  // The widest vectors of Zen 1 and Zen 4 are two halves to the pipes and to L1 (AMD's optimization
  // guides of families 17h and 19h; Fog, microarchitecture.pdf and instruction_tables.pdf).
  if ((target.vector_bits == 256 && is_one_of({"znver1"})) ||
      (target.vector_bits >= 512 && is_one_of({"znver4"}))) {
    machine.fma_pipes = 1;
    machine.loads = 1;
    machine.stores = 0.5;
  }
  if (is_one_of({"znver1", "znver2", "znver3", "znver4"})) machine.l2_ways = 8;
  return machine;
}

double DraftCycles(const ir::Program& program, const DraftMachine& machine) {
  thread_local Nest nest;                        // keeps its memory from candidate to candidate
  if (!nest.Analyze(program).ok()) return 1e30;  // too deep to be any good
  return std::max(1.0, Drafter(nest, machine).Run());
}

}  // namespace hone::search
