#ifndef HONE_SERVER_TUNER_FEATURE_ANALYTIC_TERMS_H_
#define HONE_SERVER_TUNER_FEATURE_ANALYTIC_TERMS_H_

#include "absl/container/inlined_vector.h"
#include "server/tuner/feature/machine.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {

inline constexpr int kCacheLevels = 3;  // transfers from L2, from L3 and from memory

// The cost of one statement, in cycles of one core over the whole nest.
struct AnalyticTerms {
  double operations = 0;      // element operations; a multiply-add counts as two
  double compute_cycles = 0;  // vector instructions through the pipes
  double latency_cycles = 0;  // dependent sums, if there are too few accumulators
  double spill_cycles = 0;    // sums that do not fit into the registers
  double math_cycles = 0;     // the part of compute_cycles for exp, tanh and the like
  double load_cycles = 0;     // operands through the load ports
  double store_cycles = 0;    // the same through the store ports
  double port_cycles = 0;     // the larger of these two
  double move_cycles = 0;     // loading sums into registers and storing them
  double entry_cycles = 0;    // the same with the waits for it
  double traffic_cycles[kCacheLevels] = {};  // cache lines from L2, L3 and memory
  double jump_cycles[kCacheLevels] = {};  // the part of these for lines that no prefetcher follows
  double page_cycles = 0;                 // the part of those from L2 for pages outside the TLB
  double contended_cycles = 0;            // the part of those from L3 for lines of other cores
  double memory_share = 1;                // of traffic_cycles[2], with all cores at the memory
  double bodies = 1;                      // executions of the innermost straight-line code
  double lanes = 1;                       // elements per vector instruction
  double fill = 1;                        // share of the lanes that are used
  double accumulators = 0;                // vectors of sums in one body
  double register_reuse = 1;              // vector instructions per operand loaded
  double share =
      1;  // the busiest core's share of the work; work that predicates exclude does not count
  double cycles = 0;  // the estimate, using all cores
};

struct AnalyticEstimate {
  absl::InlinedVector<AnalyticTerms, 4> statements;  // in the order of the nest
  double forks = 0;                                  // entries of parallel loops
  double cycles = 0;                                 // of the whole program
};

// Estimates the cost of a scheduled program with an execution and cache model like BLIS's
// analytical blocking (Low et al., 2016). A statement costs roughly the largest of its
// multiply-adds (limited by pipes or by too few accumulators), its load and store ports, and its
// traffic from L2, L3 and memory, times the imbalance of the parallel loop. Packing is a statement
// like any other, and the cost of forks is added. The model also charges for accumulators beyond
// the registers, rows that collide in L1, unused lanes, gathers, and sums that go through memory.
// Cycles are finite and at least 1. Takes about 10 µs.
AnalyticEstimate EstimateCost(const Nest& nest, const AnalyticMachine& machine);

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_ANALYTIC_TERMS_H_
