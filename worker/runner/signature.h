#ifndef HONE_WORKER_RUNNER_SIGNATURE_H_
#define HONE_WORKER_RUNNER_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ir/error_bound.h"
#include "common/ir/workload.h"

namespace hone::runner {

// The values of a float input for measuring: uniform in [−1, 1)·2^exponent or, if `positive`, in
// [0.5, 1.5)·2^exponent.
struct InputRange {
  int exponent = 0;
  bool positive = false;
  friend bool operator==(const InputRange&, const InputRange&) = default;
};

// A tensor of a workload as its stages would compute it on given inputs.
struct StageMagnitude {
  ir::BufferId tensor = -1;
  double rms = 0;  // root of the mean square of the finite elements; 0: there are none
  // The same for one term of a sum whose terms mostly have the same sign, such as exponentials:
  // such a sum grows with their number whatever the inputs are. Otherwise equal to rms.
  double of_term = 0;
  double undefined = 0;         // the share of elements that are NaN or infinite
  double largest_argument = 0;  // rms of the largest operand of its exponentials and sigmoids
};

// Chooses the ranges of a workload's float inputs (in the order of Workload::Inputs) such that
// every stage has magnitudes near 1, as real networks have them: with uniform inputs, a sum of K
// products grows with √K, and a function such as exp or the normal CDF then returns denormals or
// zeros, on which kernels are many times as slow or as fast as on real data.
//
// The inputs are scaled stage by stage, as layer-sequential initialization does for the weights of
// networks (Mishkin and Matas, All you need is a good init, 2016): the inputs that a stage is the
// first to read get the powers of two with which this stage and those that follow it without new
// inputs are within a factor of two of 1, or nearest to it; constants are scaled before other
// inputs. An input is positive if that avoids the logarithm or root of a negative number, or a
// division by almost 0. Magnitudes are estimated from some samples of each tensor. The result
// depends only on the workload's structure.
std::vector<InputRange> ChooseInputRanges(const ir::Workload& workload);

// The estimated magnitudes of all float tensors that stages compute, in the order of stages.
// REQUIRES: one range for each input.
std::vector<StageMagnitude> EstimateMagnitudes(const ir::Workload& workload,
                                               const std::vector<InputRange>& ranges);

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
