#ifndef HONE_SERVER_FEATURE_ANALYTIC_TERMS_H_
#define HONE_SERVER_FEATURE_ANALYTIC_TERMS_H_

#include "absl/container/inlined_vector.h"
#include "server/feature/analytic_machine.h"
#include "server/feature/nest.h"

namespace hone::feature {

inline constexpr int kCacheLevels = 3;  // into L1, into L2, into L3

// What one statement costs, in cycles of one core over the whole nest.
struct AnalyticTerms {
  double operations = 0;      // not cycles: arithmetic on elements, a multiply-add is two
  double compute_cycles = 0;  // vector instructions through the pipes
  double latency_cycles = 0;  // sums that wait for each other, where there are too few of them
  double spill_cycles = 0;    // sums beyond the registers
  double port_cycles = 0;     // operands through the load and store ports
  double entry_cycles = 0;    // sums on their way into and out of registers
  double traffic_cycles[kCacheLevels] = {};  // cache lines from L2, L3 and memory
  double bodies = 1;                         // executions of the straight code inside
  double lanes = 1;                          // elements per vector instruction
  double fill = 1;                           // share of the lanes that work
  double accumulators = 0;                   // vectors of sums in one body
  double register_reuse = 1;                 // vector instructions per operand loaded
  double share = 1;   // of the work, on the busiest core; work outside of predicates does not count
  double cycles = 0;  // the estimate, with all cores
};

struct AnalyticEstimate {
  absl::InlinedVector<AnalyticTerms, 4> statements;  // in the order of the nest
  double forks = 0;                                  // entries of parallel loops
  double cycles = 0;                                 // of the program
};

// What a scheduled program costs, by an execution and cache model in the manner of BLIS's
// analytical blocking (Low et al., 2016): per statement the largest of multiply-adds (bound by
// pipes or by too few accumulators), load and store ports, and traffic from L2, L3 and memory,
// times the imbalance of the parallel loop; plus packing, as the statement that it is, and forks.
// Charged: accumulators beyond the registers, rows that collide in L1, lanes that are not filled,
// gathers, sums that go through memory. Cycles are at least 1 and finite. Some 10 µs.
AnalyticEstimate EstimateCost(const Nest& nest, const AnalyticMachine& machine);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_ANALYTIC_TERMS_H_
