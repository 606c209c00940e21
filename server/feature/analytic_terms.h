#ifndef HONE_SERVER_FEATURE_ANALYTIC_TERMS_H_
#define HONE_SERVER_FEATURE_ANALYTIC_TERMS_H_

#include "common/target/target.h"
#include "server/feature/nest.h"

namespace hone::feature {

// What a machine would need for one statement if it did nothing else, term by term. Cycles are
// those of one core over the whole nest; rates are a usual server core's (two vector units, two
// loads a cycle, 64, 32 and 8 bytes a cycle from L2, L3 and memory), good to a factor that a model
// can learn.
struct AnalyticTerms {
  double operations = 0;      // arithmetic on elements, a multiply-add as two
  double compute_cycles = 0;  // vector instructions through both units, divisions and math dearer
  double latency_cycles = 0;  // sums that wait for each other, if there are too few of them
  double load_cycles = 0;     // register operands through the load ports
  double l2_bytes = 0;        // fetched beyond L1
  double l3_bytes = 0;        // … beyond L2
  double memory_bytes = 0;    // … beyond this core's share of L3
  double loop_cycles = 0;     // turns of the loops that are left at run time
  double gather_cycles = 0;   // vector operands whose lanes lie apart
  double spill_cycles = 0;    // sums beyond the registers
  double forks = 0;           // entries of parallel loops
  double units = 1;           // iterations of the parallel loops
  double lanes = 1;           // elements per vector instruction
  double fill = 1;            // share of a vector's lanes that work, in (0, 1]
  double accumulators = 0;    // vectors of sums in one body
  double register_reuse = 1;  // operations per register operand loaded

  double Speedup(int cores) const;  // of `units` on that many cores, at most their number
  double Roofline(const target::Target& target) const;  // cycles with all cores, the largest bound
};

AnalyticTerms TermsOf(const ir::Program& program, const Statement& statement,
                      const target::Target& target);

// Bytes that a cache of `capacity` bytes fetches for one statement: the largest inner part of the
// nest whose touched bytes fit stays in the cache, and what it touches is fetched again by every
// loop outside of it that moves the access, or that turns outside such a loop.
double FetchedBytes(const Statement& statement, double capacity);

// Halide's empirical formula (Mullapudi et al., SIGGRAPH 2016) for a statement: the loads of a tile
// cost per byte 1 when its data fit in no space and up to `kHalideBalance` when they fill the last
// cache, in operations. The tile is the inner part of the nest that makes the sum least.
inline constexpr double kHalideBalance = 40;
double HalideMemoryCost(const Statement& statement, const target::Target& target);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_ANALYTIC_TERMS_H_
