#ifndef HONE_CLIENT_CLI_ROOFLINE_H_
#define HONE_CLIENT_CLI_ROOFLINE_H_

#include "client/lib/api.h"
#include "common/ir/workload.h"

namespace hone::cli {

// What a device could do at most of a workload: the lesser of its peak of multiply-adds and of its
// memory's rate times the operations per byte that the workload must move.
struct Roofline {
  double flops = 0;        // of the workload, by formula
  double bytes = 0;        // inputs read once and outputs written once
  double peak_gflops = 0;  // 0 unknown
  double read_gbps = 0;    // 0 unknown: the peak alone is the limit
  double gflops = 0;       // the limit; 0 unknown
  bool memory_bound = false;
};

// `best`: says the peaks of its device.
Roofline RooflineOf(const ir::Workload& workload, const client::Best& best);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_ROOFLINE_H_
