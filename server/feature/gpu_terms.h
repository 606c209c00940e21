#ifndef HONE_SERVER_FEATURE_GPU_TERMS_H_
#define HONE_SERVER_FEATURE_GPU_TERMS_H_

#include "absl/container/inlined_vector.h"
#include "server/feature/gpu_machine.h"
#include "server/feature/nest.h"

namespace hone::feature {

// The cost of one launch. Cycles are those of one compute unit for one block of threads, unless
// they say otherwise.
struct GpuTerms {
  double operations = 0;  // of the launch, on elements; a multiply-add counts as two
  double blocks = 1;
  double threads = 1;         // of a block
  double registers = 0;       // of a thread, an estimate
  double shared_bytes = 0;    // of a block
  double resident = 1;        // blocks on a compute unit at a time
  double occupancy = 0;       // resident threads, as a share of what the unit holds
  double waves = 1;           // how often the units are filled with blocks
  double compute_cycles = 0;  // multiply-adds and other instructions
  double shared_cycles = 0;   // shared memory; conflicts of banks repeat an access
  double l1_cycles = 0;       // global memory, by the sectors that a warp touches
  double l2_cycles = 0;
  double latency_cycles = 0;              // of a thread that waits for loads, sums and barriers
  double memory_cycles = 0;               // of the launch, all units together
  double l2_bytes = 0, memory_bytes = 0;  // of the launch
  double conflicts = 1;  // mean number of passes of an access to shared memory, over the least
  double coalesced = 1;  // useful share of the bytes that warps load and store
  double cycles = 0;     // the estimate for the launch
};

struct GpuEstimate {
  absl::InlinedVector<GpuTerms, 4> launches;  // one per nest
  double cycles = 0;                          // of the whole program
};

// Estimates the cost of a program that is scheduled for a GPU: a block takes as long as the busiest
// of its compute unit's resources (arithmetic, shared memory, L1, L2), or as the latencies that the
// resident blocks do not hide; blocks run in waves over the units. The sectors and the conflicts of
// banks come from the addresses of one warp. Cycles are finite and at least 1.
GpuEstimate EstimateGpuCost(const Nest& nest, const GpuMachine& machine);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_GPU_TERMS_H_
