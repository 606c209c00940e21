#ifndef HONE_WORKER_RUNNER_CHECK_H_
#define HONE_WORKER_RUNNER_CHECK_H_

#include <cstdint>
#include <limits>
#include <string>

#include "common/ir/element_bytes.h"
#include "worker/runner/elements.h"
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
  ir::DType dtype = ir::DType::kF64;  // dtype of the values, see ir::ReferenceDType
  const void* values = nullptr;
  const double* magnitudes = nullptr;
  const double* roundings = nullptr;  // null: all are 0

  ir::Scalar Value(int64_t i) const { return ir::ReadElement(dtype, values, i); }
  double Rounding(int64_t i) const {
    return roundings == nullptr ? 0 : UsableRounding(roundings[i]);
  }
};

struct CheckResult {
  bool ok = true;
  double max_error = 0;  // largest |error| / bound, always finite; at most 1 passes
  std::string detail;    // the first wrong element: its index, the actual and the expected value
};

// Compares an output with its reference. An element passes if |actual − expected| ≤ (relative error
// + tolerance)·magnitude + rounding + u_out·|expected| + tiny. The relative error comes from
// ir::Accuracy, u_out is the unit roundoff of the output's dtype, and tiny is its smallest normal
// number. For integers only the rounding counts, because their arithmetic is exact. NaN passes only
// where NaN is expected. Infinity passes where it is expected, or where a value within the bound
// overflows the output's dtype.
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

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CHECK_H_
