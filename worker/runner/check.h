#ifndef HONE_WORKER_RUNNER_CHECK_H_
#define HONE_WORKER_RUNNER_CHECK_H_

#include <cstdint>
#include <limits>
#include <string>

#include "worker/runner/elements.h"
#include "worker/runner/signature.h"

namespace hone::runner {

// A rounding as a bound: 0 for −∞, the maximum of an empty reduction; infinite for NaN, which comes
// of an infinity on the way.
inline double UsableRounding(double rounding) {
  if (rounding >= 0) return rounding;
  return rounding < 0 ? 0 : std::numeric_limits<double>::infinity();
}

// What an output should be: per element the reference, computed with f64 accumulation, and what
// bounds its errors (see common/ir/error_bound.h).
struct Expected {
  ir::DType dtype = ir::DType::kF64;  // of the values, see ir::ReferenceDType
  const void* values = nullptr;
  const double* magnitudes = nullptr;
  const double* roundings = nullptr;  // null: all are 0

  ir::Scalar Value(int64_t i) const { return ReadElement(dtype, values, i); }
  double Rounding(int64_t i) const {
    return roundings == nullptr ? 0 : UsableRounding(roundings[i]);
  }
};

struct CheckResult {
  bool ok = true;
  double max_error = 0;  // largest |error| over its bound, finite; ≤ 1 passes
  std::string detail;  // of the first wrong element: its index, what was got and what was expected
};

// Compares an output with its reference: |got − expected| ≤ (relative error + tolerance)·magnitude
// + rounding + u_out·|expected| + tiny. The relative error is that of ir::Accuracy, u_out the
// rounding to the output's dtype and tiny its smallest normal number. Of integers only the rounding
// counts, because their arithmetic is exact. NaN passes only where NaN is expected; an infinity
// where it is expected, or where a value within the bound overflows the output's dtype to it.
CheckResult CheckOutput(const TensorSpec& spec, const void* data, const Expected& expected,
                        const Signature& signature, double tolerance);

// Whether an output on integer inputs is exact in any order of summation: every reference is an
// integer without a rounding, and no partial sum can leave the exact range of the arithmetic, nor
// an intermediate result that of the formats that it is rounded to. Then the kernel's output must
// be the reference, rounded to the output's dtype.
bool IsExact(const TensorSpec& spec, const Expected& expected, const Signature& signature);
CheckResult CheckExact(const TensorSpec& spec, const void* data, const Expected& expected);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CHECK_H_
