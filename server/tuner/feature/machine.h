#ifndef HONE_SERVER_TUNER_FEATURE_MACHINE_H_
#define HONE_SERVER_TUNER_FEATURE_MACHINE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/target/target.h"

namespace hone::feature {

inline constexpr double kLineBytes = 64;  // of a cache

// The analytic model's parameters of a CPU, per core and in cycles, from vendors' manuals and
// common measurements. They are right up to a constant factor, which is enough to order candidates.
struct AnalyticMachine {
  double fma_pipes = 2;    // vector multiply-adds started per cycle
  double fma_latency = 4;  // cycles until the next addition to the same sum
  double loads = 2;        // vector loads per cycle
  double stores = 1;
  double l1_ways = 8;
  double l2_ways = 16;
  int64_t l1_period = 4096;              // addresses at this distance share a set
  double line_cycles[3] = {2, 8, 16};    // per cache line from L2, L3 and memory
  double memory_shared_line_cycles = 8;  // per line from memory, for all cores together
  double pages = 64;                     // entries of the first-level TLB
  double page_cycles = 20;               // per access to a page outside this TLB
  double unforeseen = 2.5;               // cost factor of lines that are not prefetched
  // Per line of a run that a core writes between runs of other cores, whose prefetchers fetch it,
  // and the number of lines from the run's begin for which that happens. Measured on Zen 4.
  double contended_line_cycles = 4;
  double contended_lines = 24;
  double fork_cycles = 12000;  // per entry of a parallel loop
  // Per entry of the loops during which sums stay in registers: the wait for the first loads and
  // the last sums, and the mispredicted loop exit. Of the values from 40 to 300, this orders the
  // recorded spaces best (tests/bench/results/literature.md).
  double entry_cycles = 100;
  int64_t l1_bytes = 32 << 10, l2_bytes = 256 << 10, l3_bytes = 0;  // available to data
  int vector_bits = 128;
  int registers = 16;
  int cores = 1;

  // The constants of this kind of CPU, replaced by the target's calibration where it has one.
  static AnalyticMachine Of(const target::Target& target);
};

// A constant of AnalyticMachine that workers measure, for people.
struct MachineConstant {
  absl::string_view name, meaning;  // of target::CalibrationField
  double cycles = 0;                // as the estimate uses it
  double preset_cycles = 0;         // of the kind of CPU
  double ns = 0;  // 0: not known, because the duration of a cycle was not measured
  bool measured = false;
  // It was measured and is not within a factor of kUsualFactor of the preset. Constants that are
  // not measured in cycles of the core's clock, such as lines from memory, vary by up to
  // kUsualMemoryFactor between machines with the same kind of core.
  bool unusual = false;
  static constexpr double kUsualFactor = 3;
  static constexpr double kUsualMemoryFactor = 10;
};
// Returns the constants of a target; none for a GPU.
std::vector<MachineConstant> MachineConstants(const target::Target& target);

// The analytic model's parameters of a GPU, per compute unit and in its clock cycles. They follow
// from the limits that the device reports and from ratios that are common to GPUs, and are right up
// to a constant factor, which is enough to order candidates. The rate of memory and the cost of a
// launch come from the target's calibration where it has one.
struct GpuMachine {
  double units = 1;
  double warp = 32;           // threads in lockstep
  int shuffle_width = 1;      // threads that exchange values without memory
  double fma_lanes = 64;      // multiply-adds per cycle
  double issues = 4;          // warp instructions started per cycle
  double schedulers = 4;      // share the warps and the lanes equally
  double banks = 32;          // of shared memory, 4 bytes wide
  bool shared_memory = true;  // false: shared memory is part of the caches
  double l1_bytes_per_cycle = 64;
  double l2_bytes_per_cycle = 32;
  double memory_bytes_per_cycle = 10;
  double sector_bytes = 32;  // the smallest transfer from the L2 cache
  double l1_bytes = 16 << 10, l2_bytes = 512 << 10;
  double memory_latency = 500, shared_latency = 30, fma_latency = 4, barrier_cycles = 40;
  double loads_in_flight = 4;  // per thread
  double launch_cycles = 4000;
  double unit_threads = 1024, unit_shared_bytes = 32 << 10, unit_registers = 64 << 10;
  double registers = 128;   // per thread
  double unit_blocks = 16;  // maximum number of resident blocks

  static GpuMachine Of(const target::Target& target);
};

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_MACHINE_H_
