#ifndef HONE_COMMON_IR_EXPR_H_
#define HONE_COMMON_IR_EXPR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/dtype.h"
#include "common/ir/index.h"
#include "common/ir/scalar.h"

namespace hone::ir {

// Names an expression in an ExprPool.
using ExprId = int32_t;
inline constexpr ExprId kNoExpr = -1;
// Names a tensor of a workload or a buffer of a program, as the owner of the pool says.
using BufferId = int32_t;

enum class Op : uint8_t {
  kConst,  // value
  kIndex,  // an index as a number (i64)
  kLoad,   // buffer[indices]
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kNeg,
  kAbs,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kErf,
  kSigmoid,
  kLess,
  kLessEqual,
  kEqual,
  kAnd,
  kOr,
  kNot,
  kSelect,  // a ? b : c
  kCast,    // a as dtype
  // Digests of programs hold these numbers, so new operations come last.
  kNormalCdf,  // of the normal distribution: erfc(−a / √2) / 2
};

struct OpInfo {
  absl::string_view name;  // in text: "+", "exp", …
  int operands;
  bool infix;
  int precedence;  // of infix operators; larger binds tighter
};
const OpInfo& InfoOf(Op op);

struct Expr {
  Op op = Op::kConst;
  DType dtype = DType::kF32;
  ExprId a = kNoExpr, b = kNoExpr, c = kNoExpr;
  Scalar value;          // kConst; one that the dtype can hold
  BufferId buffer = -1;  // kLoad
  int32_t indices = -1;  // kLoad, kIndex: which entry of the pool's index lists
};

using IndexList = absl::InlinedVector<Index, 4>;

// The expressions of one workload or program, append-only. Copyable; ids stay valid in a copy.
class ExprPool {
 public:
  const Expr& operator[](ExprId id) const { return exprs_[id]; }
  const IndexList& IndicesOf(const Expr& expr) const { return index_lists_[expr.indices]; }
  int size() const { return static_cast<int>(exprs_.size()); }

  // The value is cast to the dtype.
  ExprId Const(DType dtype, Scalar value);
  ExprId OfIndex(Index index);
  ExprId Load(BufferId buffer, DType dtype, IndexList indices);
  // dtype follows the operands; comparisons give bool. REQUIRES operands of equal dtype.
  ExprId Unary(Op op, ExprId a);
  ExprId Binary(Op op, ExprId a, ExprId b);
  ExprId Select(ExprId condition, ExprId then, ExprId otherwise);
  // A constant is cast at once.
  ExprId Cast(DType dtype, ExprId a);
  // The value as a tensor of its dtype would hold it: rounded once to f16 or bf16, which arithmetic
  // does not do. Itself if it is of another dtype, or known to be rounded.
  ExprId Rounded(ExprId value);
  // The value in f32. For f16 and bf16, arithmetic is done in f32 and what it reads is cast.
  ExprId Widened(ExprId value);
  // A copy of an expression with new operands.
  ExprId WithOperands(ExprId of, ExprId a, ExprId b, ExprId c);

  // Rebuilds an expression: `load` answers a replacement for a load (or kNoExpr to keep it with its
  // indices mapped), `index` maps every index. Shared subtrees without change are kept.
  ExprId Rewrite(ExprId root, absl::FunctionRef<ExprId(const Expr&)> load,
                 absl::FunctionRef<Index(const Index&)> index);

  void VisitLoads(ExprId root, absl::FunctionRef<void(const Expr&)> visit) const;
  // Every node of the tree, operands first.
  void Visit(ExprId root, absl::FunctionRef<void(const Expr&)> visit) const;

 private:
  ExprId Add(Expr expr);
  std::vector<Expr> exprs_;
  std::vector<IndexList> index_lists_;
};

// The monoids that reductions use. Each works on a tuple of `arity` components.
//   sum prod min max: one component. argmax argmin: (value, index), the lower index wins ties.
//   online_softmax: (max, sum of exp(x − max)), (Milakov and Gimelshein, 2018).
enum class Reducer : uint8_t { kNone, kSum, kProd, kMin, kMax, kArgMax, kArgMin, kOnlineSoftmax };
absl::string_view ReducerName(Reducer reducer);
// kNone when no reducer has that name.
Reducer ReducerFromName(absl::string_view name);
int ReducerArity(Reducer reducer);
// Whether the first component is a maximum or a minimum; which of them.
bool FindsExtreme(Reducer reducer);
bool IsMinimum(Reducer reducer);
// The dtype that a reduction into `dtype` adds up in: AccumulatorOf() for sums and products, where
// rounding each partial result loses digits.
DType AccumulatorOf(Reducer reducer, DType dtype);
// The neutral element of a component.
Scalar ReducerIdentity(Reducer reducer, int component, DType dtype);
// The expressions of combining two tuples.
absl::InlinedVector<ExprId, 2> Combine(ExprPool& pool, Reducer reducer,
                                       absl::Span<const ExprId> left,
                                       absl::Span<const ExprId> right);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_EXPR_H_
