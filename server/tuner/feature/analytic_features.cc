#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <utility>

#include "server/tuner/feature/analytic_terms.h"
#include "server/tuner/feature/feature_sets.h"
#include "server/tuner/feature/gpu_terms.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

// The cost of a byte, in operations, if the data fills the last cache.
constexpr double kHalideBalance = 40;

// Returns the memory cost of a statement, in operations, by Halide's empirical formula (Mullapudi
// et al., SIGGRAPH 2016). A byte that a tile loads costs 1 if the tile's data is small, and up to
// 40 if it fills the last cache. The tile is the inner part of the nest with the smallest total
// cost.
double HalideMemoryCost(const Statement& statement, const target::Target& target) {
  const auto cache = static_cast<double>(
      target.l3_bytes > 0 ? target.l3_bytes / std::max(1, target.cores) : target.l2_bytes);
  double least = std::numeric_limits<double>::infinity();
  for (size_t depth = 0; depth <= statement.loops.size(); ++depth) {
    const double tiles = statement.executions[0] / statement.executions[depth];
    const double footprint = statement.touched_bytes[depth];
    const double per_byte = std::min(1 + footprint * kHalideBalance / cache, kHalideBalance);
    least = std::min(least, tiles * footprint * per_byte);
  }
  return least;
}

// Fills the same columns for a GPU, some with another meaning: `bodies`: blocks of threads; `port`:
// shared memory and L1; `l3`: bank conflicts; `entry`: latencies of a block; `forks`: launches;
// `wave`: waves / waves rounded up; `lanes`: resident threads; `fill`: useful share of the bytes
// that warps move; `accumulators`: registers of a thread; `register_reuse`: bank conflicts.
void DescribeForGpu(const Nest& nest, const target::Target& target, std::vector<float>& rows_out) {
  const GpuMachine machine = GpuMachine::Of(target);
  const GpuEstimate estimate = EstimateGpuCost(nest, machine);
  GpuTerms sum, main;
  double arithmetic = 0, memory = 0, blocks = 0, conflicts = 0;
  for (const GpuTerms& terms : estimate.launches) {
    const double each = terms.blocks / machine.units;
    blocks += terms.blocks;
    conflicts += terms.shared_cycles * (1 - 1 / std::max(1.0, terms.conflicts)) * each;
    sum.operations += terms.operations;
    sum.compute_cycles += terms.compute_cycles * each;
    sum.latency_cycles += terms.latency_cycles * terms.waves;
    sum.shared_cycles += (terms.shared_cycles + terms.l1_cycles) * each;
    sum.l2_cycles += terms.l2_cycles * each;
    sum.memory_cycles += terms.memory_cycles;
    arithmetic += terms.operations / std::max(terms.occupancy, 0.01);
    memory += terms.l2_bytes;
    if (main.cycles == 0 || terms.cycles > main.cycles) main = terms;
  }
  const double spills = std::max(0.0, main.registers - machine.registers);
  const double values[] = {sum.operations,
                           sum.compute_cycles,
                           sum.latency_cycles,
                           sum.shared_cycles,
                           sum.l2_cycles,
                           conflicts,
                           sum.memory_cycles,
                           blocks,
                           main.latency_cycles,
                           spills,
                           static_cast<double>(estimate.launches.size()),
                           static_cast<double>(nest.statements().size()),
                           estimate.cycles,
                           main.operations / std::max(main.shared_cycles + main.l1_cycles, 1.0),
                           main.operations / std::max(main.l2_bytes, 1.0),
                           main.operations / std::max(main.memory_bytes, 1.0)};
  for (const double value : values) rows_out.push_back(SignedLog2(value));
  rows_out.push_back(static_cast<float>(main.waves / std::ceil(main.waves)));
  rows_out.push_back(SignedLog2(main.waves));
  rows_out.push_back(SignedLog2(main.threads * main.resident));
  rows_out.push_back(static_cast<float>(main.coalesced));
  for (const double value : {main.registers, main.conflicts, arithmetic, memory})
    rows_out.push_back(SignedLog2(value));
}

void DescribeProgram(const Nest& nest, const target::Target& target, std::vector<float>& rows_out) {
  if (target.kind != target::Kind::kCpu) return DescribeForGpu(nest, target, rows_out);
  const AnalyticEstimate estimate = EstimateCost(nest, AnalyticMachine::Of(target));
  AnalyticTerms sum, main;
  double arithmetic = 0, memory = 0;
  sum.bodies = 0;
  for (size_t i = 0; i < estimate.statements.size(); ++i) {
    const AnalyticTerms& terms = estimate.statements[i];
    sum.operations += terms.operations;
    sum.compute_cycles += terms.compute_cycles * terms.share;
    sum.latency_cycles += terms.latency_cycles * terms.share;
    sum.port_cycles += terms.port_cycles * terms.share;
    for (int level = 0; level < kCacheLevels; ++level)
      sum.traffic_cycles[level] += terms.traffic_cycles[level] * terms.share;
    sum.bodies += terms.bodies * terms.share;
    sum.entry_cycles += terms.entry_cycles * terms.share;
    sum.spill_cycles += terms.spill_cycles * terms.share;
    arithmetic += terms.operations / terms.lanes * terms.share;
    memory += HalideMemoryCost(nest.statements()[i], target) * terms.share;
    if (i == 0 || terms.cycles > main.cycles) main = terms;
  }
  const double values[] = {sum.operations,        sum.compute_cycles,
                           sum.latency_cycles,    sum.port_cycles,
                           sum.traffic_cycles[0], sum.traffic_cycles[1],
                           sum.traffic_cycles[2], sum.bodies,
                           sum.entry_cycles,      sum.spill_cycles,
                           estimate.forks,        static_cast<double>(estimate.statements.size()),
                           estimate.cycles};
  for (const double value : values) rows_out.push_back(SignedLog2(value));
  for (const double traffic : main.traffic_cycles)
    rows_out.push_back(SignedLog2(main.operations / std::max(traffic, 1.0)));
  rows_out.push_back(static_cast<float>(1 / main.share / target.cores));
  rows_out.push_back(SignedLog2(1 / main.share));
  rows_out.push_back(SignedLog2(main.lanes));
  rows_out.push_back(static_cast<float>(main.fill));
  for (const double value : {main.accumulators, main.register_reuse, arithmetic, memory})
    rows_out.push_back(SignedLog2(value));
}

// The columns of the draft: those of CPUs, then those of GPUs.
constexpr const char* kCpuParts[] = {
    "compute", "math",          "latency",      "spills", "loads", "stores",   "bodies",
    "moves",   "waits",         "l2",           "pages",  "l3",    "l3_jumps", "contended",
    "memory",  "memory_shared", "memory_jumps", "forks"};
constexpr const char* kGpuParts[] = {
    "gpu_arithmetic", "gpu_issues",   "gpu_spills",   "gpu_shared",
    "gpu_conflicts",  "gpu_l1",       "gpu_l2",       "gpu_load_waits",
    "gpu_sum_waits",  "gpu_barriers", "gpu_memory",   "gpu_launches",
    "gpu_estimate",   "gpu_waves",    "gpu_resident", "gpu_last"};

// One row per statement. The parts of a launch are in the row of its main statement.
void DescribeGpuCosts(const Nest& nest, const target::Target& target,
                      std::vector<float>& rows_out) {
  const GpuMachine machine = GpuMachine::Of(target);
  const GpuEstimate estimate = EstimateGpuCost(nest, machine);
  constexpr size_t kColumns = std::size(kCpuParts) + std::size(kGpuParts);
  const size_t begin = rows_out.size();
  rows_out.resize(begin + nest.statements().size() * kColumns, 0.0f);
  // The launches' estimates are rounded to the last digit of their sum, so that they add up to it.
  const auto total = static_cast<float>(estimate.cycles);
  const double digit = std::nextafter(total, std::numeric_limits<float>::infinity()) - total;
  double rest = total;
  for (size_t i = estimate.launches.size(); i-- > 0;) {
    const GpuTerms& terms = estimate.launches[i];
    const double own = i == 0 ? rest : std::round(terms.cycles / digit) * digit;
    rest -= own;
    const double blocks = terms.full_waves * terms.resident + terms.last_blocks;
    const double compute = blocks * terms.imbalance;
    const double rounds = terms.full_waves + (terms.last_blocks > 0 ? 1 : 0);
    const double waits = terms.latency_cycles - terms.sum_cycles - terms.barrier_cycles;
    const double values[] = {
        compute * (terms.compute_cycles - terms.issue_cycles - terms.spill_cycles),
        compute * terms.issue_cycles,
        compute * terms.spill_cycles,
        blocks * (terms.shared_cycles - terms.conflict_cycles),
        blocks * terms.conflict_cycles,
        blocks * terms.l1_cycles,
        blocks * terms.l2_cycles,
        rounds * waits,
        rounds * terms.sum_cycles,
        rounds * terms.barrier_cycles,
        terms.memory_cycles,
        machine.launch_cycles,
        own,
        terms.full_waves,
        terms.resident,
        terms.last_blocks};
    static_assert(std::size(values) == std::size(kGpuParts));
    float* const row = rows_out.data() + begin + terms.statement * kColumns + std::size(kCpuParts);
    for (size_t c = 0; c < std::size(values); ++c)
      row[c] = static_cast<float>(std::max(0.0, values[c]));  // differences may be rounded below 0
  }
}

// One row per statement.
void DescribeCosts(const Nest& nest, const target::Target& target, std::vector<float>& rows_out) {
  if (target.kind != target::Kind::kCpu) return DescribeGpuCosts(nest, target, rows_out);
  const auto append = [&](std::initializer_list<double> values) {
    for (const double value : values) rows_out.push_back(static_cast<float>(value));
    rows_out.resize(rows_out.size() + std::size(kGpuParts), 0.0f);
  };
  const AnalyticMachine machine = AnalyticMachine::Of(target);
  const AnalyticEstimate estimate = EstimateCost(nest, machine);
  double fork_cycles = estimate.forks * machine.fork_cycles;
  for (const AnalyticTerms& terms : estimate.statements) {
    const double share = terms.share;
    const double *traffic = terms.traffic_cycles, *jumps = terms.jump_cycles;
    // Memory costs what this core needs for its share, or what all cores together need.
    const double shared = std::min(1.0, machine.memory_shared_line_cycles / machine.line_cycles[2]);
    append({share * (terms.compute_cycles - terms.math_cycles), share * terms.math_cycles,
            share * terms.latency_cycles, share * terms.spill_cycles, share * terms.load_cycles,
            share * terms.store_cycles, share * terms.bodies, share * terms.move_cycles,
            share * (terms.entry_cycles - terms.move_cycles),
            share * (traffic[0] - terms.page_cycles), share * terms.page_cycles,
            share * (traffic[1] - jumps[1] - terms.contended_cycles), share * jumps[1],
            share * terms.contended_cycles, share * traffic[2], shared * traffic[2],
            jumps[2] / std::max(traffic[2], 1.0), fork_cycles});
    fork_cycles = 0;
  }
}

}  // namespace

std::unique_ptr<FeatureSet> MakeDraftFeatures() {
  std::vector<std::string> columns(std::begin(kCpuParts), std::end(kCpuParts));
  columns.insert(columns.end(), std::begin(kGpuParts), std::end(kGpuParts));
  return std::make_unique<FeatureSet>("draft", std::move(columns), DescribeCosts);
}

std::unique_ptr<FeatureSet> MakeAnalyticFeatures() {
  return std::make_unique<FeatureSet>("analytic",
                                      std::vector<std::string>{"operations",
                                                               "compute_cycles",
                                                               "latency_cycles",
                                                               "port_cycles",
                                                               "l2_cycles",
                                                               "l3_cycles",
                                                               "memory_cycles",
                                                               "bodies",
                                                               "entry_cycles",
                                                               "spill_cycles",
                                                               "forks",
                                                               "statements",
                                                               "draft_cycles",
                                                               "l2_intensity",
                                                               "l3_intensity",
                                                               "memory_intensity",
                                                               "wave",
                                                               "speedup",
                                                               "lanes",
                                                               "fill",
                                                               "accumulators",
                                                               "register_reuse",
                                                               "formula_arithmetic",
                                                               "formula_memory"},
                                      DescribeProgram);
}

}  // namespace hone::feature
