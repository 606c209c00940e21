#ifndef HONE_COMMON_SCHEDULE_RECORDED_ARITHMETIC_H_
#define HONE_COMMON_SCHEDULE_RECORDED_ARITHMETIC_H_

#include <cstdint>
#include <numeric>

#include "common/schedule/recorded/recording.h"

namespace hone::recorded {

// A step on numbers. Defined for all: sums wrap, a division by 0 is one by 1 – a vector that
// another program is for may bring such numbers before a guard refuses it.
inline int64_t Evaluate(Op op, int64_t a, int64_t b) {
  const auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      return wrap(ua + ub);
    case Op::kSub:
      return wrap(ua - ub);
    case Op::kMul:
      return wrap(ua * ub);
    case Op::kQuotient:
      return b == 0 ? a : b == -1 ? wrap(-ua) : a / b;
    case Op::kRemainder:
      return b == 0 || b == -1 ? 0 : a % b;
    case Op::kFloorDiv:
      if (b == 0) return a;
      if (b == -1) return wrap(-ua);
      return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
    case Op::kFloorMod:
      return wrap(ua - static_cast<uint64_t>(Evaluate(Op::kFloorDiv, a, b)) * ub);
    case Op::kMin:
      return a < b ? a : b;
    case Op::kMax:
      return a < b ? b : a;
    case Op::kAbs:
      return a < 0 ? wrap(-ua) : a;
    case Op::kGcd:
      return a == INT64_MIN || b == INT64_MIN ? 1 : std::gcd(a, b);
    case Op::kConstant:
    case Op::kInput:
    case Op::kMember:
      break;
  }
  return 0;
}

}  // namespace hone::recorded

#endif  // HONE_COMMON_SCHEDULE_RECORDED_ARITHMETIC_H_
