#ifndef HONE_WORKER_RUNNER_SIGNATURE_H_
#define HONE_WORKER_RUNNER_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ir/error_bound.h"
#include "common/ir/workload.h"
#include "worker/runner/input_ranges.h"

namespace hone::runner {

// One buffer of a kernel.
struct TensorSpec {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  int64_t elements = 0;
  int64_t bound = 0;  // as in ir::Tensor
  InputRange range;   // of an input of floats
  int64_t bytes() const { return ir::BytesOf(dtype, elements); }
};

// The runner's description of a workload: its buffers, in the kernel's order, and the accuracy of
// its results.
struct Signature {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // From ir::Accuracy.
  double terms = 1;
  double roundoff = 0;
  // The allowed error of a float, relative to its magnitude.
  double relative_error = 0;
  // Whether references have roundings (see ir::RoundsOnTheWay).
  bool has_roundings = false;
  bool keeps_integers = false;
  // Unit roundoff of the coarsest float type to which intermediate values are rounded; 0 if there
  // are no such roundings.
  double rounding = 0;
};

// `error_of` is that of the device that runs the kernels.
Signature SignatureOf(const ir::Workload& workload, ir::ErrorOfOp error_of = ir::RoundsOnce);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_SIGNATURE_H_
