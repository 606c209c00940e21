#include "server/tuner/feature/gpu_terms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

// The cost of one access by a warp.
struct WarpCost {
  double sectors = 1;  // of global memory
  double passes = 1;   // over the banks of shared memory
  double least = 1;    // passes without conflicts
  double useful = 1;   // share of the sectors' bytes that the threads asked for
};

// Computes the cost of an access from the addresses of the first warp of a block, with all other
// loops at 0. Reuses its memory. Used by one thread at a time.
class WarpAccess {
 public:
  // `strides`: of the buffer's dimensions, in elements. `width`: consecutive elements per thread.
  WarpCost Cost(const Nest& nest, const Statement& statement, const Access& access,
                absl::Span<const int64_t> strides, int64_t width, const GpuMachine& machine);

 private:
  std::vector<int64_t> values_;  // per atom
  std::vector<int64_t> addresses_;
};

// Returns 0, 1 and 2 for threadIdx.x, y and z, in which order threads are numbered.
int RankOf(ir::ThreadAxis axis) {
  return static_cast<int>(axis) - static_cast<int>(ir::ThreadAxis::kThreadX);
}
bool IsThread(const NestLoop& loop) {
  return loop.kind == ir::LoopKind::kBound && RankOf(loop.axis) >= 0 && RankOf(loop.axis) < 3;
}

WarpCost WarpAccess::Cost(const Nest& nest, const Statement& statement, const Access& access,
                          absl::Span<const int64_t> strides, int64_t width,
                          const GpuMachine& machine) {
  const ir::AtomTable& atoms = nest.program().atoms;
  values_.assign(atoms.size(), 0);
  const NestLoop* axes[3] = {};
  int64_t threads = 1;
  for (const NestLoop& loop : statement.loops) {
    if (!IsThread(loop)) continue;
    axes[RankOf(loop.axis)] = &loop;
    threads *= loop.extent;
  }
  const int64_t lanes = std::min(threads, static_cast<int64_t>(machine.warp));
  addresses_.clear();
  for (int64_t lane = 0; lane < lanes; ++lane) {
    int64_t rest = lane;
    for (const NestLoop* axis : axes) {
      if (axis == nullptr) continue;
      values_[axis->var] = rest % axis->extent;
      rest /= axis->extent;
    }
    for (const ir::BlockIter& iter : statement.block->iters)
      values_[iter.var] = atoms.Evaluate(iter.binding, values_);
    int64_t address = 0;
    const ir::IndexList& indices = *access.indices[0];
    for (size_t d = 0; d < indices.size(); ++d)
      address += strides[d] * atoms.Evaluate(indices[d], values_);
    for (int64_t e = 0; e < width; ++e) addresses_.push_back(address + e);
  }
  absl::c_sort(addresses_);
  addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());

  WarpCost cost;
  const auto sector = static_cast<int64_t>(machine.sector_bytes) / access.element_bytes;
  const auto banks = static_cast<int64_t>(machine.banks);
  std::vector<int> in_bank(banks, 0);
  int64_t last_sector = INT64_MIN, last_word = INT64_MIN;
  cost.sectors = 0;
  int64_t words = 0;
  for (const int64_t address : addresses_) {
    const int64_t at = ir::FloorDivInt(address, std::max<int64_t>(1, sector));
    if (at != last_sector) ++cost.sectors;
    last_sector = at;
    const int64_t word = ir::FloorDivInt(address * access.element_bytes, 4);
    if (word != last_word) {
      ++words;
      ++in_bank[ir::FloorModInt(word, banks)];
    }
    last_word = word;
  }
  cost.passes = *absl::c_max_element(in_bank);
  cost.least = static_cast<double>((words + banks - 1) / banks);
  cost.useful = static_cast<double>(addresses_.size()) * access.element_bytes /
                (cost.sectors * machine.sector_bytes);
  return cost;
}

using ir::ThreadAxis;

constexpr double kOtherRegisters = 24;   // for addresses and loop counters
constexpr double kBodyInstructions = 3;  // for the loop counter and the branch
constexpr double kAccessBytes = 16;      // the widest access of a thread
// The code of a guarded sum, relative to that of one without guards: warps at the border of an
// image run both its code and that of the interior.
constexpr double kGuardedPaths = 1.5;

bool IsBlockAxis(const NestLoop& loop) {
  return loop.kind == ir::LoopKind::kBound && loop.axis >= ThreadAxis::kBlockX &&
         loop.axis <= ThreadAxis::kBlockZ;
}
bool IsThreadAxis(const NestLoop& loop) {
  return loop.kind == ir::LoopKind::kBound && loop.axis >= ThreadAxis::kThreadX &&
         loop.axis <= ThreadAxis::kThreadZ;
}
bool IsStaticOnGpu(const NestLoop& loop) {
  return loop.kind == ir::LoopKind::kVectorized || loop.kind == ir::LoopKind::kUnrolled ||
         loop.kind == ir::LoopKind::kTensor ||
         (loop.extent == 1 && loop.kind != ir::LoopKind::kBound);
}

// Whether guards skip terms of a sum. (A copy with guards is a sum of one term.)
bool HasGuardedTerms(const ir::Block& block) {
  return !block.guards.empty() && absl::c_any_of(block.iters, [](const ir::BlockIter& iter) {
    return iter.reduce && iter.extent > 1;
  });
}

// The number of threads of a block along each axis.
struct Threads {
  double along[3] = {1, 1, 1};
  double all() const { return along[0] * along[1] * along[2]; }
};

// A statement's loops by their roles, and how often they run.
struct Shape {
  double blocks = 1;     // blocks of threads
  double used = 1;       // threads of a block that execute the statement
  bool along_x = false;  // whether a loop is bound to threadIdx.x
  double phases = 1;     // executions of the statement's phase in a block
  double bodies = 1;     // executions of the body by one thread
  double instances = 1;  // executions of the statement in a body
  int body = 0;          // depth of the innermost straight-line code
  int vector = -1;       // depth of the vectorized loop
  double steps = 1;      // of the reduction in a body
  double terms = 1;      // products that one instruction adds
};

Shape ShapeOf(const Statement& statement) {
  Shape shape;
  const int depth = static_cast<int>(statement.loops.size());
  shape.body = depth;
  while (shape.body > 0 && IsStaticOnGpu(statement.loops[shape.body - 1])) --shape.body;
  bool inside = false;
  double serial = 1;
  for (int d = 0; d < depth; ++d) {
    const NestLoop& loop = statement.loops[d];
    const auto extent = static_cast<double>(loop.extent);
    if (IsBlockAxis(loop)) {
      shape.blocks *= extent;
    } else if (IsThreadAxis(loop)) {
      shape.used *= extent;
      shape.along_x |= loop.axis == ThreadAxis::kThreadX;
      inside = true;
    } else if (d < shape.body) {
      serial *= extent;
      if (!inside) shape.phases *= extent;
    } else if (loop.kind == ir::LoopKind::kTensor) {
      shape.terms *= extent;
    } else if (loop.reduce) {
      shape.steps *= extent;
    }
    if (loop.kind == ir::LoopKind::kVectorized) shape.vector = d;
  }
  if (!inside) shape.phases = 1;  // one thread runs everything
  shape.bodies = serial;
  if (HasGuardedTerms(*statement.block)) shape.bodies *= kGuardedPaths;
  shape.instances = statement.executions[shape.body];
  return shape;
}

class GpuEstimator {
 public:
  GpuEstimator(const Nest& nest, const GpuMachine& machine) : nest_(nest), machine_(machine) {}

  GpuEstimate Run() {
    GpuEstimate estimate;
    const absl::Span<const Statement> all = nest_.statements();
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
      end = begin + 1;
      while (end < all.size() && LaunchOf(all[end]) == LaunchOf(all[begin])) ++end;
      estimate.launches.push_back(Launch(all.subspan(begin, end - begin)));
      estimate.launches.back().statement += static_cast<int>(begin);
      estimate.cycles += estimate.launches.back().cycles;
    }
    estimate.cycles = std::max(1.0, estimate.cycles);
    return estimate;
  }

 private:
  // Each outermost loop is a separate launch.
  static ir::NodeId LaunchOf(const Statement& statement) {
    return statement.loops.empty() ? statement.node : statement.loops[0].node;
  }

  const ir::Buffer& BufferOf(const Access& access) const {
    return nest_.program().buffers[access.buffer];
  }
  bool InRegisters(const Access& access) const {
    return BufferOf(access).scope == ir::Scope::kLocal;
  }
  bool InShared(const Access& access) const { return BufferOf(access).scope == ir::Scope::kShared; }

  // Computes the strides and the size of a buffer, in elements. A buffer in shared memory has only
  // the size of the region that is live inside the loops around all of its users.
  void StridesOf(const Statement& statement, const Access& access) {
    const ir::Buffer& buffer = BufferOf(access);
    absl::InlinedVector<int64_t, 6> shape(buffer.shape.begin(), buffer.shape.end());
    if (InShared(access)) {
      const int depth = static_cast<int>(DepthOfUsers(nest_, statement, access.buffer));
      const absl::Span<const int64_t> box = access.Box(depth);
      shape.assign(box.begin(), box.end());
    }
    strides_.assign(shape.size(), 1);
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      for (const ir::StorageAlign& align : buffer.aligns) {
        if (align.axis != static_cast<int>(d)) continue;
        stride += ir::FloorModInt(align.offset - stride, align.factor);
      }
      strides_[d] = stride;
      stride *= shape[d];
    }
    elements_ = stride;
  }

  // Returns the number of consecutive elements that one instruction accesses.
  int64_t WidthOf(const Statement& statement, const Access& access, const Shape& shape) const {
    const auto most = static_cast<int64_t>(kAccessBytes / access.element_bytes);
    int64_t width = 1;
    for (int d = shape.body; d < static_cast<int>(statement.loops.size()); ++d) {
      const NestLoop& loop = statement.loops[d];
      // Compilers combine loads from shared memory, but not from global memory, because those may
      // be unaligned.
      if (d != shape.vector && !InShared(access)) continue;
      if (loop.extent == 1 || StrideOf(nest_.program(), statement, access, d) != 1) continue;
      while (width * 2 <= most && loop.extent % (width * 2) == 0) width *= 2;
    }
    return width;
  }

  GpuTerms Launch(absl::Span<const Statement> statements) {
    GpuTerms terms;
    Threads threads;
    for (const Statement& statement : statements) {
      for (const NestLoop& loop : statement.loops) {
        if (!IsThreadAxis(loop)) continue;
        double& along =
            threads.along[static_cast<int>(loop.axis) - static_cast<int>(ThreadAxis::kThreadX)];
        along = std::max(along, static_cast<double>(loop.extent));
      }
      terms.blocks = std::max(terms.blocks, ShapeOf(statement).blocks);
    }
    terms.threads = threads.all();
    registers_ = kOtherRegisters;
    shared_passes_ = least_passes_ = asked_bytes_ = moved_bytes_ = 0;
    shared_.clear();
    double most_operations = 0;
    for (size_t s = 0; s < statements.size(); ++s) {
      const double before = terms.operations;
      Add(statements[s], threads, terms);
      if (terms.operations - before <= most_operations) continue;
      most_operations = terms.operations - before;
      terms.statement = static_cast<int>(s);
    }
    terms.registers = registers_;
    for (const SharedBuffer& buffer : shared_) terms.shared_bytes += buffer.bytes;
    terms.conflicts = least_passes_ > 0 ? shared_passes_ / least_passes_ : 1;
    terms.conflict_cycles = shared_passes_ - least_passes_;
    terms.coalesced = moved_bytes_ > 0 ? std::min(1.0, asked_bytes_ / moved_bytes_) : 1;
    // A block must fit onto a compute unit. Spilled values are loaded repeatedly.
    const double warps = std::ceil(terms.threads / machine_.warp);
    const double most =
        std::min(machine_.registers, machine_.unit_registers / (warps * machine_.warp));
    if (registers_ > most) {
      terms.spill_cycles = terms.compute_cycles * 4 * (registers_ / most - 1);
      terms.compute_cycles *= 1 + 4 * (registers_ / most - 1);
    }
    Finish(terms);
    return terms;
  }

  void Add(const Statement& statement, const Threads& threads, GpuTerms& terms) {
    const Shape shape = ShapeOf(statement);
    // A warp costs the same if only some of its threads execute the statement.
    const double span = shape.used * (shape.along_x ? 1 : threads.along[0]);
    const double warps = std::ceil(std::min(span, terms.threads) / machine_.warp);
    const OpCounts& ops = statement.ops;
    const OpCounts::Arithmetic& f = ops.floating;
    const OpCounts::Arithmetic& n = ops.integer;
    const OpCounts::Arithmetic& index = ops.index;
    // Compilers compute the addresses of a body outside of it.
    const double per_instance = std::max(
        1.0, f.mad + f.addsub + f.mul + f.cmp + f.other + ops.select + 8.0 * f.divmod +
                 8.0 * f.math + n.mad + n.addsub + n.mul + n.cmp + n.other + 8.0 * n.divmod -
                 ops.casts - index.mad - index.addsub - index.mul - 8.0 * index.divmod);
    double arithmetic = shape.bodies * shape.instances * per_instance / shape.terms;
    terms.operations += statement.executions[0] * (per_instance + f.mad);

    // With double buffering, a copy overlaps with the phases that read the previous one.
    const bool ahead = ir::ValueOf(nest_.program().node(statement.node).annotations,
                                   ir::Annotation::Key::kDoubleBuffer, 0) != 0;
    const double copies = ahead ? 2 : 1;
    double accesses = 0;  // instructions of a thread
    double operands = 0, results = 0;
    bool waits = false;
    const bool update = statement.block->reducer != ir::Reducer::kNone;
    for (const Access& access : statement.accesses) {
      const double touched = Distinct(statement, access, shape.body);
      if (InRegisters(access)) {
        if (access.kind != AccessKind::kRead) registers_ += PerThread(statement, access);
        continue;
      }
      const bool read = access.kind == AccessKind::kRead;
      const double count = read || !update ? shape.bodies * touched : PerThread(statement, access);
      (read ? operands : results) += touched;
      StridesOf(statement, access);
      const int64_t width = WidthOf(statement, access, shape);
      const WarpCost cost = warp_.Cost(nest_, statement, access, strides_, width, machine_);
      const double instructions = count / static_cast<double>(width);
      accesses += instructions;
      if (InShared(access) && machine_.shared_memory) {
        terms.shared_cycles += instructions * warps * cost.passes;
        shared_passes_ += instructions * warps * cost.passes;
        least_passes_ += instructions * warps * cost.least;
      } else {
        const double moved = cost.sectors * machine_.sector_bytes;
        // An instruction takes a cycle even if all threads read the same element.
        terms.l1_cycles +=
            instructions * warps * std::max(1.0, moved / machine_.l1_bytes_per_cycle);
        asked_bytes_ += instructions * warps * moved * cost.useful;
        moved_bytes_ += instructions * warps * moved;
      }
      if (InShared(access)) {
        double& bytes = SharedBytesOf(access.buffer);
        bytes = std::max(bytes, static_cast<double>(elements_) * access.element_bytes * copies);
        continue;
      }
      waits |= read;
      const double block_bytes = FromL2(statement, access, shape, cost, count * shape.used);
      terms.l2_cycles += block_bytes / machine_.l2_bytes_per_cycle;
      terms.l2_bytes += block_bytes * shape.blocks;
      unique_bytes_ = access.touched[0] * access.element_bytes;
      terms.memory_bytes += FromMemory(block_bytes * shape.blocks, terms);
    }
    if (update) registers_ += std::max(results, operands / (shape.steps * shape.terms));
    // An operand is converted once for a body. Instructions that add several terms convert them.
    if (shape.terms == 1) {
      const double converted = update ? operands : operands + results;
      arithmetic += shape.bodies * std::min(ops.casts * shape.instances, converted);
    }
    const double instructions = arithmetic + accesses + shape.bodies * kBodyInstructions;
    const double in_lanes = arithmetic * warps * machine_.warp / machine_.fma_lanes;
    const double issued = instructions * warps / machine_.issues;
    terms.compute_cycles += std::max(in_lanes, issued);
    if (issued > in_lanes) terms.issue_cycles += issued;
    const double loads = std::ceil(shape.bodies / shape.phases / machine_.loads_in_flight);
    const double sums =
        update ? shape.bodies * (machine_.shared_latency + shape.steps * machine_.fma_latency) : 0;
    terms.latency_cycles +=
        shape.phases *
            ((waits && !ahead ? loads * machine_.memory_latency : 0) + machine_.barrier_cycles) +
        sums;
    terms.sum_cycles += sums;
    terms.barrier_cycles += shape.phases * machine_.barrier_cycles;
    AddTree(statement, threads, terms);
  }

  // Adds the cost of a reduction across threads. The threads of a sub-group exchange their results;
  // a shuffle takes the path of a load from shared memory. The results of sub-groups, or of threads
  // if there are no shuffles, are combined in shared memory: as a tree, in which each step halves
  // the number of active threads, or by shuffles again.
  void AddTree(const Statement& statement, const Threads& threads, GpuTerms& terms) {
    int64_t combining = 1;
    for (const NestLoop& loop : statement.loops) {
      if (IsThreadAxis(loop) && loop.reduce) combining = loop.extent;
    }
    if (combining == 1) return;
    double warps = std::ceil(threads.all() / machine_.warp), passes = 0, steps = 0, shuffles = 0;
    const int64_t width = machine_.shuffle_width;
    const int64_t group =
        combining % width == 0 || width % combining == 0 ? std::min(combining, width) : 1;
    const auto add_shuffles = [&](int64_t count) {
      shuffles += std::log2(count);
      passes += warps * std::log2(count);
    };
    add_shuffles(group);
    combining /= group;
    if (combining > 1) passes += warps;  // each thread or sub-group stores its result
    const double shared = combining > 1 ? threads.all() / static_cast<double>(group) : 0;
    if (group > 1 && combining > 1 && combining <= width &&
        std::has_single_bit(static_cast<uint64_t>(combining))) {
      passes += warps;  // and loads one
      add_shuffles(combining);
      combining = 1;
      ++steps;
    }
    for (; combining > 1; combining = (combining + 1) / 2, ++steps) {
      warps = std::max(1.0, warps / 2);
      passes += 3 * warps;  // two loads and a store
    }
    for (const Access& access : statement.accesses) {
      if (access.kind == AccessKind::kRead) continue;
      const double results = PerThread(statement, access);
      SharedBytesOf(access.buffer, /*tree=*/true) =
          results * shared * static_cast<double>(access.element_bytes);
      terms.shared_cycles += results * passes;
      shared_passes_ += results * passes;
      least_passes_ += results * passes;
    }
    terms.latency_cycles += (steps + 1) * (machine_.barrier_cycles + 2 * machine_.shared_latency) +
                            shuffles * machine_.shared_latency;
    terms.sum_cycles += ((steps + 1) * 2 + shuffles) * machine_.shared_latency;
    terms.barrier_cycles += (steps + 1) * machine_.barrier_cycles;
  }

  // Returns the number of elements that an access touches while the loops from `depth` inwards run.
  // This may be less than access.touched, whose boxes include the gaps of a strided access.
  static double Distinct(const Statement& statement, const Access& access, int depth) {
    double elements = 1;
    for (size_t d = depth; d < statement.loops.size(); ++d) {
      if ((access.varies >> d & 1) != 0) elements *= static_cast<double>(statement.loops[d].extent);
    }
    return std::min(elements * static_cast<double>(access.indices.size()), access.touched[depth]);
  }

  // Returns the number of elements that one thread accesses.
  double PerThread(const Statement& statement, const Access& access) const {
    double elements = 1;
    for (size_t d = 0; d < statement.loops.size(); ++d) {
      const NestLoop& loop = statement.loops[d];
      if ((access.varies >> d & 1) != 0 && !IsBlockAxis(loop) && !IsThreadAxis(loop))
        elements *= static_cast<double>(loop.extent);
    }
    return elements;
  }

  // Returns the bytes that a block loads from L2. They are loaded once per run of the outermost
  // loops whose data fits into L1. Unused parts of sectors count unless the block reuses them.
  double FromL2(const Statement& statement, const Access& access, const Shape& shape,
                const WarpCost& cost, double accesses) const {
    int depth = 0;
    const int loops = static_cast<int>(statement.loops.size());
    while (depth < loops && IsBlockAxis(statement.loops[depth])) ++depth;
    while (depth < shape.body && GlobalBytes(statement, depth) > machine_.l1_bytes) ++depth;
    // Outer loops that do not move the access reuse the data in the cache.
    while (depth > 0 && !IsBlockAxis(statement.loops[depth - 1]) &&
           (access.varies >> (depth - 1) & 1) == 0)
      --depth;
    const double runs = statement.executions[0] / statement.executions[depth] / shape.blocks;
    const double elements = runs * Distinct(statement, access, depth);
    const double reuse = std::max(1.0, accesses / std::max(1.0, elements));
    return elements * access.element_bytes * std::max(1.0, 1 / cost.useful / reuse);
  }

  double GlobalBytes(const Statement& statement, int depth) const {
    double bytes = 0;
    for (const Access& access : statement.accesses) {
      if (!InRegisters(access) && !InShared(access))
        bytes += Distinct(statement, access, depth) * access.element_bytes;
    }
    return bytes;
  }

  // Returns the bytes that are loaded from memory. Data that fits into L2 is loaded once. Of other
  // data, blocks that run at the same time share what they load, as in a matrix product.
  double FromMemory(double l2_bytes, const GpuTerms& terms) const {
    if (unique_bytes_ <= 0.7 * machine_.l2_bytes) return std::min(l2_bytes, unique_bytes_);
    const double together = std::sqrt(std::min(terms.blocks, machine_.units));
    return std::max(std::min(l2_bytes, unique_bytes_), l2_bytes / together);
  }

  // Returns the size of a buffer in shared memory. `tree`: the size of the partial results of the
  // threads that reduce into the buffer.
  double& SharedBytesOf(ir::BufferId buffer, bool tree = false) {
    for (SharedBuffer& known : shared_) {
      if (known.buffer == buffer && known.tree == tree) return known.bytes;
    }
    return shared_.emplace_back(SharedBuffer{buffer, tree, 0}).bytes;
  }

  void Finish(GpuTerms& terms) const {
    const double warps = std::ceil(terms.threads / machine_.warp) * machine_.warp;
    double resident = std::min(machine_.unit_blocks, std::floor(machine_.unit_threads / warps));
    if (terms.shared_bytes > 0)
      resident = std::min(resident, std::floor(machine_.unit_shared_bytes / terms.shared_bytes));
    resident = std::min(resident, std::floor(machine_.unit_registers / (terms.registers * warps)));
    terms.resident = std::max(1.0, resident);
    terms.occupancy = terms.resident * warps / machine_.unit_threads;
    const double filled = machine_.units * terms.resident;
    terms.waves = terms.blocks / filled;
    const double full = std::floor(terms.waves);
    const double rest = terms.blocks - full * filled;
    const double last = std::ceil(rest / machine_.units);  // blocks of a unit
    double cycles = full * Wave(terms, terms.resident);
    if (rest > 0) cycles += Wave(terms, last);
    terms.full_waves = full;
    terms.last_blocks = last;
    terms.imbalance = full * terms.resident * Imbalance(terms, terms.resident);
    if (rest > 0) terms.imbalance += last * Imbalance(terms, last);
    terms.imbalance /= full * terms.resident + last;
    terms.memory_cycles = terms.memory_bytes / (machine_.memory_bytes_per_cycle * machine_.units);
    // Execution and memory traffic overlap, but not fully.
    cycles = std::max(cycles, terms.memory_cycles) + 0.3 * std::min(cycles, terms.memory_cycles);
    terms.cycles = cycles + machine_.launch_cycles;
  }

  // Returns the warps of the scheduler that has the most of them, relative to the mean. It is the
  // last to finish.
  double Imbalance(const GpuTerms& terms, double blocks) const {
    const double warps = blocks * std::ceil(terms.threads / machine_.warp);
    return std::ceil(warps / machine_.schedulers) * machine_.schedulers / warps;
  }

  // Returns the cycles of a compute unit that runs `blocks` blocks at the same time.
  double Wave(const GpuTerms& terms, double blocks) const {
    const double parts[] = {terms.compute_cycles * Imbalance(terms, blocks), terms.shared_cycles,
                            terms.l1_cycles, terms.l2_cycles};
    double largest = 0, sum = 0;
    for (const double part : parts) {
      largest = std::max(largest, part);
      sum += part;
    }
    const double busy = blocks * (largest + 0.3 * (sum - largest));
    // At barriers, threads wait for each other unless other blocks can run.
    return std::max(busy, terms.latency_cycles) +
           std::min(busy, terms.latency_cycles) / (1 + blocks);
  }

  const Nest& nest_;
  const GpuMachine& machine_;
  WarpAccess warp_;
  // State of the current access and launch.
  absl::InlinedVector<int64_t, 6> strides_;
  int64_t elements_ = 1;
  double unique_bytes_ = 0;
  double registers_ = 0;
  double shared_passes_ = 0, least_passes_ = 0, asked_bytes_ = 0, moved_bytes_ = 0;
  struct SharedBuffer {
    ir::BufferId buffer;
    bool tree;
    double bytes;
  };
  absl::InlinedVector<SharedBuffer, 4> shared_;
};

}  // namespace

GpuEstimate EstimateGpuCost(const Nest& nest, const GpuMachine& machine) {
  return GpuEstimator(nest, machine).Run();
}

}  // namespace hone::feature
