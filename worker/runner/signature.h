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
  // on, whose square root errors grow with. A product of n factors counts n² times their terms.
  double terms = 1;
  // Unit roundoff of the coarsest float type that values are added up in. f16 and bf16 add up in
  // f32. 0 without floats.
  double roundoff = 0;
  // Unit roundoff of the coarsest float type that values are rounded to before they reach an output;
  // 0 without such roundings (see ir::RoundsOnTheWay).
  double rounding = 0;
};

Signature SignatureOf(const ir::Workload& workload);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_SIGNATURE_H_
