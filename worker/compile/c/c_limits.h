#ifndef HONE_WORKER_COMPILE_C_C_LIMITS_H_
#define HONE_WORKER_COMPILE_C_C_LIMITS_H_

#include <map>

#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// The ranges of the integer values in a program, which tell where C's operators do not overflow.
class WholeLimits {
 public:
  // Doubles represent i32 exactly. Near the ends of i64, a value counts as overflowing.
  struct Limits {
    double min, max;
  };

  // The program must outlive this object.
  explicit WholeLimits(const lower::LoweredProgram& program) : p_(program) {}

  Limits Of(ir::ExprId id);
  static Limits Of(ir::DType dtype);
  // Returns whether the dtype holds all numbers within the limits.
  static bool Fits(Limits limits, ir::DType dtype);

 private:
  Limits New(const ir::Expr& expr);

  const lower::LoweredProgram& p_;
  std::map<ir::ExprId, Limits> limits_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_LIMITS_H_
