#ifndef HONE_TESTS_WORKER_CODEGEN_ULP_ERROR_H_
#define HONE_TESTS_WORKER_CODEGEN_ULP_ERROR_H_

#include "common/ir/dtype.h"

namespace hone::codegen {

// |got − exact| in units of the last place of exact, in a float type; infinite where one of them is
// a NaN or beyond range and the other is not. For denormal results the unit is the smallest
// denormal number.
double UlpError(ir::DType dtype, double got, long double exact);

// The distribution function of the standard normal distribution, erfc(−x/√2) / 2, right in more
// digits than a double has. The rounded argument of erfc alone would cost a unit in the last place
// of a double at x = −38, so it is corrected.
long double ExactNormalCdf(long double x);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_CODEGEN_ULP_ERROR_H_
