#ifndef HONE_COMMON_IR_ROOFLINE_H_
#define HONE_COMMON_IR_ROOFLINE_H_

#include "common/ir/workload.h"

namespace hone::ir {

// The speeds of a device and of a kernel on it.
struct MeasuredSpeed {
  double gflops = 0;       // of the kernel
  double peak_gflops = 0;  // of the device's multiply-adds; 0: unknown
  double read_gbps = 0;    // of the device's memory; 0: unknown
};

// The upper limit of a device's speed on a workload: the smaller of its peak multiply-add rate and
// its memory bandwidth times the operations per byte of inputs and outputs.
struct Roofline {
  double flops = 0;        // of the workload, by formula
  double bytes = 0;        // inputs read once and outputs written once
  double peak_gflops = 0;  // 0: unknown
  double read_gbps = 0;    // 0: unknown; then only the peak limits
  double gflops = 0;       // the limit; 0: unknown
  bool memory_bound = false;
  // The kernel is faster than the memory: its data stay in a cache, whose bandwidth, and so the
  // limit, is unknown.
  bool cache_bound = false;
};

Roofline RooflineOf(const Workload& workload, const MeasuredSpeed& speed);
// What limits the speed: "compute", "memory" or "cache".
const char* BoundOf(const Roofline& roofline);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ROOFLINE_H_
