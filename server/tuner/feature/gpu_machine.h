#ifndef HONE_SERVER_TUNER_FEATURE_GPU_MACHINE_H_
#define HONE_SERVER_TUNER_FEATURE_GPU_MACHINE_H_

#include "common/target/target.h"

namespace hone::feature {

// The analytic model's parameters of a GPU, per compute unit and in its clock cycles. They follow
// from the limits that the device reports and from ratios that are common to GPUs, and are right up
// to a constant factor, which is enough to order candidates.
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

#endif  // HONE_SERVER_TUNER_FEATURE_GPU_MACHINE_H_
