#ifndef HONE_TESTS_WORKER_COMPILE_ULP_ERROR_H_
#define HONE_TESTS_WORKER_COMPILE_ULP_ERROR_H_

#include "common/ir/dtype.h"

namespace hone::codegen {

// Returns |got − exact| in units in the last place of `exact` in a float type; infinite if only one
// of them is NaN or out of range. For denormal results, the unit is the smallest denormal number.
double UlpError(ir::DType dtype, double got, long double exact);

// Returns the distribution function of the standard normal distribution, erfc(−x/√2) / 2, to more
// digits than a double has. Rounding the argument of erfc alone would cost a unit in the last place
// of a double at x = −38, so the rounding is corrected.
long double ExactNormalCdf(long double x);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_ULP_ERROR_H_
