#ifndef HONE_WORKER_RUNNER_CHECK_H_
#define HONE_WORKER_RUNNER_CHECK_H_

#include <cstdint>
#include <string>

#include "worker/runner/signature.h"

namespace hone::runner {

// What an output should be: per element the reference computed with f64 accumulation, and its
// magnitude, the same with every load, product and sum replaced by absolute values (Σ|a·b| for a
// contraction).
struct Expected {
  const double* values = nullptr;
  const double* magnitudes = nullptr;
};

struct CheckResult {
  bool ok = true;
  double max_error = 0;  // largest |error| over its bound, finite; ≤ 1 passes
  std::string detail;  // of the first wrong element: its index, what was got and what was expected
};

// Compares an output with its reference: |got − expected| ≤ (4·u·√K + tolerance)·magnitude +
// u_out·|expected| + tiny, with u the unit roundoff of the arithmetic, K the terms of the sums,
// u_out the rounding of the output's dtype and tiny its smallest normal number. The expected error
// of a sum of K terms in any order grows with √K (Higham, Accuracy and Stability of Numerical
// Algorithms, 2002, section 4.2); 4 covers blocked orders with room. NaN passes only where NaN is
// expected; an infinity where it is expected, or where a value within the bound overflows the
// output's dtype to it.
CheckResult CheckOutput(const TensorSpec& spec, const void* data, const Expected& expected,
                        const Signature& signature, double tolerance);

// Whether an output on integer inputs is exact in any order of summation: every reference is an
// integer and no partial sum can leave the exact range of the arithmetic. Then the kernel's output
// must be equal to it.
bool IsExact(const TensorSpec& spec, const Expected& expected, const Signature& signature);
CheckResult CheckExact(const TensorSpec& spec, const void* data, const Expected& expected);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CHECK_H_
