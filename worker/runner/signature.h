#ifndef HONE_WORKER_RUNNER_SIGNATURE_H_
#define HONE_WORKER_RUNNER_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ir/workload.h"

namespace hone::runner {

// One buffer of a kernel.
struct TensorSpec {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  int64_t elements = 0;
  int64_t bytes() const { return elements * ir::DTypeBytes(dtype); }
};

// What the runner has to know of a workload: its buffers in the order of the kernel's, and how long
// sums get.
struct Signature {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // K of the error bound: terms of the longest chain of reductions that an output element depends
  // on.
  double terms = 1;
  // Unit roundoff of the coarsest float type that a reduction may be carried out in or that a cast
  // rounds to: what differs before a rounding in the last place differs by an ulp of it after.
  double roundoff = 0;
};

Signature SignatureOf(const ir::Workload& workload);

// Unit roundoff of a float type, 0 for the others.
double UnitRoundoff(ir::DType dtype);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_SIGNATURE_H_
