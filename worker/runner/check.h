#ifndef HONE_WORKER_RUNNER_CHECK_H_
#define HONE_WORKER_RUNNER_CHECK_H_

#include <cstdint>
#include <limits>
#include <string>

#include "common/ir/dtype.h"
#include "worker/runner/inputs.h"
#include "worker/runner/signature.h"

namespace hone::runner {

// Makes a rounding usable as a bound: 0 for −∞ (the maximum of an empty reduction), infinity for
// NaN (which follows from an infinite intermediate value).
inline double UsableRounding(double rounding) {
  if (rounding >= 0) return rounding;
  return rounding < 0 ? 0 : std::numeric_limits<double>::infinity();
}

// The expected values of one output, computed with f64 accumulation, and the bounds of their errors
// (see common/ir/error_bound.h).
struct Expected {
  ir::DType dtype = ir::DType::kF64;  // dtype of the values
  const void* values = nullptr;
  const void* magnitudes = nullptr;
  const void* roundings = nullptr;  // null: all are 0
  bool narrow = false;              // magnitudes and roundings are f32, rounded up; otherwise f64
  // If not null, only `sampled` elements of the output were computed: element i of the expected
  // values is element positions[i] of the output. The positions are ascending.
  const int64_t* positions = nullptr;
  int64_t sampled = 0;

  // The number of expected values, and the position of one of them in the output.
  int64_t Count(const TensorSpec& spec) const {
    return positions == nullptr ? spec.elements : sampled;
  }
  int64_t Position(int64_t i) const { return positions == nullptr ? i : positions[i]; }
  ir::Scalar Value(int64_t i) const { return ir::ReadElement(dtype, values, i); }
  double Magnitude(int64_t i) const { return Bound(magnitudes, i); }
  double Rounding(int64_t i) const {
    return roundings == nullptr ? 0 : UsableRounding(Bound(roundings, i));
  }
  double Bound(const void* bounds, int64_t i) const {
    return narrow ? static_cast<const float*>(bounds)[i] : static_cast<const double*>(bounds)[i];
  }
};

struct CheckResult {
  bool ok = true;
  double max_error = 0;  // largest |error| / bound, always finite; at most 1 passes
  std::string detail;    // the first wrong element: its index, the actual and the expected value
};

// Compares an output with its reference. An element passes if |actual − expected| ≤ (relative error
// + tolerance)·magnitude + rounding + u_out·|expected| + tiny. The relative error comes from
// ir::Accuracy, u_out is the unit roundoff of the output's dtype (plus that of f32 if the expected
// value was rounded to it), and tiny is its smallest normal number. For integers only the rounding
// counts, because their arithmetic is exact. NaN passes only where NaN is expected. Infinity passes
// where it is expected, or where a value within the bound overflows the output's dtype.
CheckResult CheckOutput(const TensorSpec& spec, const void* data, const Expected& expected,
                        const Signature& signature, double tolerance);

// Returns whether an output on integer inputs is exact in any order of summation. This holds if
// the workload keeps integers (ir::Accuracy), every reference value is an integer without a
// rounding, no partial sum leaves the exact range of the arithmetic, and no intermediate result
// leaves the exact range of the formats it is rounded to. The kernel's output must then equal the
// reference, rounded to the output's dtype.
bool IsExact(const TensorSpec& spec, const Expected& expected, const Signature& signature);
CheckResult CheckExact(const TensorSpec& spec, const void* data, const Expected& expected,
                       const Signature& signature);

// Checks that a kernel wrote every element of a poisoned output (DeviceBuffer::Poison) of which
// only some are compared. Elements of integers whose poison is a valid value are not checked, and
// neither are floats where a NaN is expected.
CheckResult CheckWritten(const TensorSpec& spec, const void* data, const Expected& expected);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CHECK_H_
