#include "common/ir/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/ir/arithmetic.h"

namespace hone::ir {
namespace {

constexpr double kUnknownLeast = -std::numeric_limits<double>::infinity();

bool RoundsItsResult(Op op) {
  return (op >= Op::kAdd && op <= Op::kDiv) || (op >= Op::kExp && op <= Op::kSigmoid) ||
         op == Op::kNormalCdf || op == Op::kPow;
}

}  // namespace

double Exponential(double a) { return std::exp(a); }
double SquareRoot(double a) { return std::sqrt(a); }
double Logarithm(double a) { return std::log(a); }
double Power(double a, double b) { return std::pow(a, b); }
double Whole(Op op, double a) { return EvaluateOp(op, DType::kF64, a).real(); }

double MagnitudeOfConstant(double value) { return std::isinf(value) ? 0 : std::abs(value); }

double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF64:
      return 0x1p-53;
    case DType::kF8E4M3:
      return 0x1p-4;
    case DType::kF8E5M2:
      return 0x1p-3;
    default:
      return 0;
  }
}

double LeastInteger(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return -0x1p7;
    case DType::kI32:
      return -0x1p31;
    case DType::kI64:
      return -0x1p63;
    default:
      return 0;
  }
}

double MostInteger(DType dtype) {
  if (dtype == DType::kBool) return 1;
  return dtype == DType::kU8 ? 0x1p8 - 1 : -LeastInteger(dtype) - 1;
}

bool IsWidening(DType from, DType to) {
  return IsFloat(from) && IsFloat(to) && (from == to || DTypeBytes(from) < DTypeBytes(to));
}

bool IsComparison(Op op) { return op >= Op::kLess && op <= Op::kEqual; }

bool RoundsToWhole(Op op) { return op >= Op::kRound && op <= Op::kTrunc; }

bool LosesDigits(DType from, DType to) {
  return IsFloat(from) && to != DType::kBool && !IsWidening(from, to);
}

Accuracy::Accuracy(const Workload& workload, ErrorOfOp error_of)
    : workload_(workload),
      error_of_(error_of),
      exact_(workload.tensors.size(), true),
      varies_(workload.tensors.size()),
      least_(workload.tensors.size(), kUnknownLeast) {
  for (const Stage& stage : workload.stages) AddStage(stage);
  terms_ = std::max(terms_, 1.0);
}

void Accuracy::AddStage(const Stage& stage) {
  // Errors of consecutive reductions add up. The sum over all stages bounds every chain.
  double points = 1;
  for (const Axis& axis : stage.reduce) points *= static_cast<double>(axis.extent);
  if (stage.reducer == Reducer::kProd) {
    terms_ = (terms_ + 1) * points * points;
  } else if (stage.reducer != Reducer::kNone) {
    terms_ += points;
  }
  keeps_integers_ &= stage.reducer != Reducer::kOnlineSoftmax;

  for (size_t c = 0; c < stage.tensors.size(); ++c) {
    const BufferId id = stage.tensors[c];
    const Tensor& tensor = workload_.tensors[id];
    roundoff_ = std::max(roundoff_, UnitRoundoff(AccumulatorOf(tensor.dtype)));
    const bool sums = stage.reducer == Reducer::kOnlineSoftmax && c == 1;
    const bool selects = stage.reducer == Reducer::kNone || (FindsExtreme(stage.reducer) && !sums);
    exact_[id] = !IsFloat(tensor.dtype) || (selects && IsExact(stage.values[c]));
    varies_[id] = VariesAsComputed(stage, c);
    least_[id] = LeastOfComponent(stage, c);
    rounds_on_the_way_ |= tensor.output && varies_[id];
    AddValue(stage.values[c]);
  }
}

void Accuracy::AddValue(ExprId value) {
  workload_.pool.Visit(value, [&](const Expr& expr) {
    if (!IsFloat(expr.dtype)) return;
    if (expr.op == Op::kConst) {
      const double constant = expr.value.real();
      keeps_integers_ &= std::isinf(constant) || constant == std::rint(constant);
    }
    if (expr.op >= Op::kAdd) {
      roundoff_ = std::max(roundoff_, UnitRoundoff(AccumulatorOf(expr.dtype)));
    }
    if (!RoundsItsResult(expr.op)) return;
    terms_ += error_of_(expr.op);
    keeps_integers_ &= expr.op < Op::kDiv;
  });
}

bool Accuracy::VariesAsComputed(const Stage& stage, size_t component) const {
  if (MayVary(stage.values[component])) return true;
  if (component == 0) return false;
  // Indices and sums of exponentials depend on the extreme.
  return stage.reducer == Reducer::kOnlineSoftmax ? MayVary(stage.values[0])
                                                  : MayDiffer(stage.values[0]);
}

bool Accuracy::MayVary(ExprId id) const {
  const Expr& expr = workload_.pool[id];
  if (expr.op == Op::kLoad) {
    const Tensor& tensor = workload_.tensors[expr.buffer];
    if (expr.gathered >= 0 && MayVary(expr.a)) return true;
    return varies_[expr.buffer] || (StoresShort(tensor) && !exact_[expr.buffer]);
  }
  bool computed = false;
  if (IsComparison(expr.op)) computed = !IsExact(expr.a) || !IsExact(expr.b);
  if (RoundsToWhole(expr.op)) computed = !IsExact(expr.a);
  if (expr.op == Op::kCast) {
    const DType from = workload_.pool[expr.a].dtype;
    computed = IsFloat(from) && !IsWidening(from, expr.dtype) && !IsExact(expr.a);
  }
  if (computed) return true;
  for (const ExprId operand : {expr.a, expr.b, expr.c}) {
    if (operand != kNoExpr && MayVary(operand)) return true;
  }
  return false;
}

double Accuracy::relative_error() const {
  return roundoff_ * std::max(4.0, std::min(2 * terms_, 8 * std::sqrt(terms_)));
}

bool Accuracy::IsExact(ExprId id) const {
  const Expr& expr = workload_.pool[id];
  if (!IsFloat(expr.dtype)) return true;
  switch (expr.op) {
    case Op::kConst:
    case Op::kIndex:
    case Op::kRound:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
      return true;
    case Op::kLoad:
      return exact_[expr.buffer] || StoresShort(workload_.tensors[expr.buffer]);
    case Op::kCast:
      return LosesDigits(workload_.pool[expr.a].dtype, expr.dtype) || IsExact(expr.a);
    case Op::kSelect:
      return IsExact(expr.b) && IsExact(expr.c);
    case Op::kNeg:
    case Op::kAbs:
      return IsExact(expr.a);
    case Op::kMin:
    case Op::kMax:
    case Op::kWhere:
      return IsExact(expr.a) && IsExact(expr.b);
    default:
      return false;
  }
}

bool Accuracy::IsPlain(ExprId id) const {
  const Expr& expr = workload_.pool[id];
  switch (expr.op) {
    case Op::kConst:
    case Op::kIndex:
    case Op::kRound:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
      return true;
    case Op::kLoad:
      return workload_.tensors[expr.buffer].input || StoresShort(workload_.tensors[expr.buffer]);
    case Op::kNeg:
    case Op::kAbs:
    case Op::kCast:
      return IsPlain(expr.a);
    default:
      return false;
  }
}

bool Accuracy::AddsErrors(const Expr& expr) const {
  return (expr.op == Op::kMul || expr.op == Op::kDiv) && !IsPlain(expr.a) && !IsPlain(expr.b);
}

bool Accuracy::AreEqual(ExprId a, ExprId b) const {
  if (a == b) return true;
  if (a == kNoExpr || b == kNoExpr) return false;
  const Expr &x = workload_.pool[a], &y = workload_.pool[b];
  if (x.op != y.op || x.dtype != y.dtype || x.buffer != y.buffer || x.gathered != y.gathered ||
      !(x.value == y.value)) {
    return false;
  }
  if ((x.indices < 0) != (y.indices < 0)) return false;
  if (x.indices >= 0 && workload_.pool.IndicesOf(x) != workload_.pool.IndicesOf(y)) return false;
  return AreEqual(x.a, y.a) && AreEqual(x.b, y.b) && AreEqual(x.c, y.c);
}

double Accuracy::LeastOfComponent(const Stage& stage, size_t component) const {
  const double least = LeastOf(stage.values[component]);
  switch (stage.reducer) {
    case Reducer::kNone:
      return least;
    case Reducer::kSum:
    case Reducer::kProd:
      return least >= 0 ? 0 : kUnknownLeast;
    default:
      return kUnknownLeast;
  }
}

double Accuracy::LeastOf(ExprId id) const {
  const Expr& expr = workload_.pool[id];
  if (!IsFloat(expr.dtype)) return kUnknownLeast;
  // Sums, products and conversions are rounded, and rounding is monotone.
  switch (expr.op) {
    case Op::kConst:
      return expr.value.real();
    case Op::kLoad:
      // A short format may round to 0.
      return CastTo(expr.dtype, least_[expr.buffer]).real();
    case Op::kAbs:
    case Op::kExp:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kSigmoid:
    case Op::kNormalCdf:
      return 0;
    case Op::kRound:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kPow:
      return LeastOf(expr.a) >= 0 ? 0 : kUnknownLeast;
    case Op::kAdd:
      return LeastOf(expr.a) + LeastOf(expr.b);
    case Op::kMul: {
      if (AreEqual(expr.a, expr.b)) return 0;
      const double a = LeastOf(expr.a), b = LeastOf(expr.b);
      return a >= 0 && b >= 0 ? a * b : kUnknownLeast;
    }
    case Op::kMin:
    case Op::kWhere:
      return std::min(LeastOf(expr.a), LeastOf(expr.b));
    case Op::kMax:
      return std::max(LeastOf(expr.a), LeastOf(expr.b));
    case Op::kSelect:
      return std::min(LeastOf(expr.b), LeastOf(expr.c));
    case Op::kCast:
      return CastTo(expr.dtype, LeastOf(expr.a)).real();
    default:
      return kUnknownLeast;
  }
}

double Accuracy::LeastOperand(const Expr& expr) const {
  // A margin that exceeds the rounding of constants.
  const double of_roundings = 1 - std::max(0x1p-5, 2 * UnitRoundoff(expr.dtype));
  switch (expr.op) {
    case Op::kDiv:
      return std::max(0.0, of_roundings * LeastOf(expr.b));
    case Op::kLog:
    case Op::kSqrt:
    case Op::kRsqrt:
      return std::max(0.0, of_roundings * LeastOf(expr.a));
    default:
      return 0;
  }
}

bool StoresShort(const Tensor& tensor) {
  return !tensor.input && AccumulatorOf(tensor.dtype) != tensor.dtype;
}

}  // namespace hone::ir
