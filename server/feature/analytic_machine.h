#ifndef HONE_SERVER_FEATURE_ANALYTIC_MACHINE_H_
#define HONE_SERVER_FEATURE_ANALYTIC_MACHINE_H_

#include <cstdint>

#include "common/target/target.h"

namespace hone::feature {

// What the analytic model knows of a CPU beyond its target: per core and cycle, from the vendors'
// manuals and the usual measurements. Good to a factor, which is enough for an order among
// candidates.
struct AnalyticMachine {
  double fma_pipes = 2;    // vector multiply-adds begun per cycle
  double fma_latency = 4;  // cycles until a sum can be added to again
  double loads = 2;        // vector loads per cycle
  double stores = 1;
  double l1_ways = 8;
  double l2_ways = 16;
  int64_t l1_period = 4096;              // addresses this far apart share a set
  double line_cycles[3] = {2, 8, 16};    // per cache line from L2, L3 and memory
  double memory_shared_line_cycles = 8;  // from memory, all cores together
  double pages = 64;                     // that the first-level TLB holds
  double page_cycles = 20;               // to enter one that it does not hold
  double unforeseen = 2.5;               // times as much where no prefetcher helps
  double fork_cycles = 12000;            // per entry of a parallel loop
  // Per entry of the loops while which sums stay in registers: the first loads and the last sums
  // are waited for, and the loops' end is not foreseen. Of 40 to 300 what orders the recorded
  // spaces best (tests/bench/recorded).
  double entry_cycles = 100;
  int64_t l1_bytes = 32 << 10, l2_bytes = 256 << 10, l3_bytes = 0;  // what data may take
  int vector_bits = 128;
  int registers = 16;
  int cores = 1;

  static AnalyticMachine Of(const target::Target& target);
};

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_ANALYTIC_MACHINE_H_
