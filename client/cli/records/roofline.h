#ifndef HONE_CLIENT_CLI_RECORDS_ROOFLINE_H_
#define HONE_CLIENT_CLI_RECORDS_ROOFLINE_H_

#include "client/connection/api.h"
#include "common/ir/workload.h"

namespace hone::cli {

// The upper limit of a device's speed on a workload: the smaller of its peak multiply-add rate and
// its memory bandwidth times the operations per byte of inputs and outputs.
struct Roofline {
  double flops = 0;        // of the workload, by formula
  double bytes = 0;        // inputs read once and outputs written once
  double peak_gflops = 0;  // 0: unknown
  double read_gbps = 0;    // 0: unknown; then only the peak limits
  double gflops = 0;       // the limit; 0: unknown
  bool memory_bound = false;
  // The best is faster than the memory: its data stay in a cache, whose bandwidth, and so the
  // limit, is unknown.
  bool cache_bound = false;
};

// Takes the peaks of the device from `best`.
Roofline RooflineOf(const ir::Workload& workload, const v1::Best& best);
// What limits the speed: "compute", "memory" or "cache".
const char* BoundOf(const Roofline& roofline);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_ROOFLINE_H_
