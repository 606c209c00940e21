#include "worker/runner/math_errors.h"

#include "common/ir/expr.h"

namespace hone::runner {
namespace {

using ir::Op;

// In units in the last place, of which one is two unit roundoffs. The larger of f32 and f64.
struct MathErrors {
  Op op;
  double opencl;  // OpenCL 1.2, section 7.4, full profile
  // CUDA C++ programming guide, mathematical functions, plus the half unit of the correctly rounded
  // result with which it compares.
  double cuda;
};
constexpr MathErrors kMathErrors[] = {
    {Op::kDiv, 2.5, 0.5},
    {Op::kExp, 3, 2.5},
    {Op::kLog, 3, 1.5},
    {Op::kSqrt, 3, 0.5},
    {Op::kRsqrt, 2, 2.5},
    {Op::kTanh, 5, 2.5},
    {Op::kErf, 16, 2.5},
    {Op::kPow, 16, 8.5},
    // Functions of worker/compile/c/c_prelude.cc: a quotient of exponentials, and erfc with a
    // correction.
    {Op::kSigmoid, 7.5, 5},
    {Op::kNormalCdf, 17, 7},
};

template <double MathErrors::* kColumn>
double RoundoffsOf(Op op) {
  for (const MathErrors& errors : kMathErrors) {
    if (errors.op == op) return 2 * errors.*kColumn;
  }
  return 1;
}

}  // namespace

ir::ErrorOfOp ErrorsOf(target::Kind kind) {
  switch (kind) {
    case target::Kind::kOpenCl:
      return RoundoffsOf<&MathErrors::opencl>;
    case target::Kind::kCuda:
      return RoundoffsOf<&MathErrors::cuda>;
    case target::Kind::kCpu:
      break;
  }
  return ir::RoundsOnce;
}

}  // namespace hone::runner
