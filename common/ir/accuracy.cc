#include "common/ir/accuracy.h"

#include <algorithm>
#include <cmath>

#include "common/ir/error_bound.h"

namespace hone::ir {
namespace {

constexpr int64_t kMostTreeSize = 1 << 20;

}  // namespace

Accuracy::Accuracy(const Workload& workload)
    : workload_(workload), exact_(workload.tensors.size(), true) {
  for (ExprId id = 0; id < workload.pool.size(); ++id) {
    const Expr& expr = workload.pool[id];
    int64_t size = 1;
    for (const ExprId operand : {expr.a, expr.b, expr.c}) {
      if (operand != kNoExpr) size = std::min(size + tree_sizes_[operand], kMostTreeSize);
    }
    tree_sizes_.push_back(size);
  }
  for (const Stage& stage : workload.stages) AddStage(stage);
  terms_ = std::max(terms_, 1.0);
}

void Accuracy::AddStage(const Stage& stage) {
  // Errors of consecutive reductions add up. The sum over all stages bounds every chain.
  double points = 1;
  for (const Axis& axis : stage.reduce) points *= static_cast<double>(axis.extent);
  terms_ = stage.reducer == Reducer::kProd ? (terms_ + 1) * points * points : terms_ + points;

  for (size_t c = 0; c < stage.tensors.size(); ++c) {
    const BufferId id = stage.tensors[c];
    const DType dtype = workload_.tensors[id].dtype;
    roundoff_ = std::max(roundoff_, UnitRoundoff(AccumulatorOf(dtype)));
    const bool sums = stage.reducer == Reducer::kOnlineSoftmax && c == 1;
    const bool selects = stage.reducer == Reducer::kNone || (FindsExtreme(stage.reducer) && !sums);
    exact_[id] = !IsFloat(dtype) || (selects && IsExact(stage.values[c]));
    workload_.pool.Visit(stage.values[c], [&](const Expr& expr) {
      if (expr.op >= Op::kAdd && IsFloat(expr.dtype)) {
        roundoff_ = std::max(roundoff_, UnitRoundoff(AccumulatorOf(expr.dtype)));
      }
      if (expr.op == Op::kLoad) {
        const Tensor& read = workload_.tensors[expr.buffer];
        rounds_on_the_way_ |= StoresShort(read) && !exact_[expr.buffer];
      }
      if (expr.op == Op::kCast) {
        rounds_on_the_way_ |=
            LosesDigits(workload_.pool[expr.a].dtype, expr.dtype) && !IsExact(expr.a);
      }
    });
  }
  const bool finds_index = stage.reducer == Reducer::kArgMax || stage.reducer == Reducer::kArgMin;
  rounds_on_the_way_ |= finds_index && !IsExact(stage.values[0]);
}

double Accuracy::relative_error() const { return 4 * roundoff_ * std::sqrt(terms_); }

bool Accuracy::IsExact(ExprId id) const {
  const Expr& expr = workload_.pool[id];
  if (!IsFloat(expr.dtype)) return true;
  switch (expr.op) {
    case Op::kConst:
    case Op::kIndex:
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
      return true;
    case Op::kLoad:
      return workload_.tensors[expr.buffer].input || StoresShort(workload_.tensors[expr.buffer]);
    case Op::kNeg:
    case Op::kAbs:
    case Op::kCast:
      return IsPlain(expr.a);
    case Op::kMul:
      return IsPlain(expr.a) && IsPlain(expr.b);
    default:
      return false;
  }
}

bool Accuracy::BoundsClosely(const Expr& expr) const {
  constexpr int64_t kMostNodes = 32;
  if (expr.op != Op::kMul && expr.op != Op::kDiv) return false;
  return tree_sizes_[expr.a] + tree_sizes_[expr.b] <= kMostNodes && !IsPlain(expr.a) &&
         !IsPlain(expr.b);
}

bool StoresShort(const Tensor& tensor) {
  return !tensor.input && AccumulatorOf(tensor.dtype) != tensor.dtype;
}

}  // namespace hone::ir
