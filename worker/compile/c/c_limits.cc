#include "worker/compile/c/c_limits.h"

#include <algorithm>

namespace hone::codegen {

using ir::DType;
using ir::Expr;
using ir::ExprId;
using ir::Op;

WholeLimits::Limits WholeLimits::Of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI32:
      return {-0x1p31, 0x1p31 - 1};
    default:
      return {-0x1p63, 0x1p63};
  }
}

bool WholeLimits::Fits(Limits limits, DType dtype) {
  if (dtype == DType::kI64) return limits.min > -0x1p62 && limits.max < 0x1p62;
  const Limits held = Of(dtype);
  return limits.min >= held.min && limits.max <= held.max;
}

WholeLimits::Limits WholeLimits::Of(ExprId id) {
  if (const auto known = limits_.find(id); known != limits_.end()) return known->second;
  const Limits limits = New(p_.pool[id]);
  return limits_.emplace(id, limits).first->second;
}

WholeLimits::Limits WholeLimits::New(const Expr& expr) {
  const Limits all = Of(expr.dtype);
  if (ir::IsFloat(expr.dtype)) return {-0x1p1000, 0x1p1000};
  Limits a = all, b = all;
  switch (expr.op) {
    case Op::kConst: {
      const auto value = static_cast<double>(expr.value.whole());
      return {value, value};
    }
    case Op::kIndex: {
      const ir::Range range = p_.atoms.RangeOf(p_.pool.IndicesOf(expr)[0]);
      return {static_cast<double>(range.min), static_cast<double>(range.max)};
    }
    case Op::kCast:
      a = Of(expr.a);
      // An operand that may overflow wraps before it is converted.
      if (const DType from = p_.pool[expr.a].dtype; !ir::IsFloat(from) && !Fits(a, from)) {
        a = Of(from);
      }
      return Fits(a, expr.dtype) ? a : all;
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
      b = Of(expr.b);
      [[fallthrough]];
    case Op::kNeg:
      a = Of(expr.a);
      break;
    default:
      return all;
  }
  // An operand that may overflow wraps, so it can have any value of its dtype.
  if (!Fits(a, expr.dtype)) a = all;
  if (!Fits(b, expr.dtype)) b = all;
  if (expr.op == Op::kAdd) return {a.min + b.min, a.max + b.max};
  if (expr.op == Op::kSub) return {a.min - b.max, a.max - b.min};
  if (expr.op == Op::kNeg) return {-a.max, -a.min};
  const double products[] = {a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

}  // namespace hone::codegen
