#ifndef HONE_WORKER_CODEGEN_C_C_LIMITS_H_
#define HONE_WORKER_CODEGEN_C_C_LIMITS_H_

#include <map>

#include "common/lower/lowered.h"

namespace hone::codegen {

// What whole numbers of a program may be, which tells where C's operators do not overflow.
class WholeLimits {
 public:
  // Doubles are exact enough for i32. Limits of i64 are kept far from its ends.
  struct Limits {
    double min, max;
  };

  // The program must outlive this object.
  explicit WholeLimits(const lower::LoweredProgram& program) : p_(program) {}

  Limits Of(ir::ExprId id);
  static Limits Of(ir::DType dtype);
  // Whether the dtype holds all of these numbers.
  static bool Fits(Limits limits, ir::DType dtype);

 private:
  Limits New(const ir::Expr& expr);

  const lower::LoweredProgram& p_;
  std::map<ir::ExprId, Limits> limits_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_LIMITS_H_
