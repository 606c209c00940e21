#ifndef HONE_SERVER_TUNER_FEATURE_GPU_TERMS_H_
#define HONE_SERVER_TUNER_FEATURE_GPU_TERMS_H_

#include "absl/container/inlined_vector.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {

// The cost of one launch. Cycles are per block of threads on one compute unit, unless a comment
// says otherwise.
struct GpuTerms {
  double operations = 0;  // element operations of the launch; a multiply-add counts as two
  double blocks = 1;
  double threads = 1;          // per block
  double registers = 0;        // per thread, estimated
  double shared_bytes = 0;     // per block
  double resident = 1;         // blocks that a compute unit runs at the same time
  double occupancy = 0;        // resident threads as a share of the maximum
  double waves = 1;            // blocks / blocks that all units run at the same time
  double full_waves = 0;       // waves in which every unit runs `resident` blocks
  double last_blocks = 0;      // blocks that the busiest unit runs in the wave after these
  double imbalance = 1;        // of the unit's schedulers: the busiest one relative to the mean
  double compute_cycles = 0;   // multiply-adds and other instructions
  double issue_cycles = 0;     // the part of these where starting instructions is the limit
  double spill_cycles = 0;     // the part of these for values that do not fit into the registers
  double shared_cycles = 0;    // shared memory; bank conflicts repeat an access
  double conflict_cycles = 0;  // the part of these for repeated accesses
  double l1_cycles = 0;        // global memory, from the sectors that each warp touches
  double l2_cycles = 0;
  double latency_cycles = 0;              // waits of a thread for loads, sums and barriers
  double sum_cycles = 0;                  // the part of these for sums, also across threads
  double barrier_cycles = 0;              // the part of these for barriers
  double memory_cycles = 0;               // of the launch, for all units together
  double l2_bytes = 0, memory_bytes = 0;  // of the launch
  double conflicts = 1;  // passes of all accesses to shared memory / passes without conflicts
  double coalesced = 1;  // useful share of the bytes that warps load and store
  double cycles = 0;     // the estimate for the launch
  int statement = 0;     // the one with the most operations, by its number in the nest
};

struct GpuEstimate {
  absl::InlinedVector<GpuTerms, 4> launches;  // one per nest
  double cycles = 0;                          // of the whole program
};

// Estimates the cost of a program that is scheduled for a GPU: a block takes as long as the busiest
// of its compute unit's resources (arithmetic, shared memory, L1, L2), or as the latencies that the
// resident blocks do not hide; blocks run in waves over the units. The sectors and the bank
// conflicts come from the addresses of one warp. Cycles are finite and at least 1.
GpuEstimate EstimateGpuCost(const Nest& nest, const GpuMachine& machine);

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_GPU_TERMS_H_
