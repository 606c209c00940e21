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

namespace hone::ir {

// Identifies an expression in an ExprPool.
using ExprId = int32_t;
inline constexpr ExprId kNoExpr = -1;
// Identifies a tensor of a workload or a buffer of a program, whichever owns the pool.
using BufferId = int32_t;

enum class Op : uint8_t {
  kConst,  // value
  kIndex,  // an index as a number (i64)
  kLoad,   // buffer[indices]; one index may be the value of `a`, see Expr::gathered
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
  // Program digests contain these numbers: append new operations at the end. kNormalCdf is the CDF
  // of the normal distribution, erfc(−a / √2) / 2.
  kNormalCdf,
  // A guarded value: a where every index of a list is at least 0, else b. The operand that is not
  // chosen is not evaluated. Lowering divides the points into cases (cases.h).
  kWhere,
  kRound,  // to the nearest whole number, ties to even
  kFloor,
  kCeil,
  kTrunc,
  kPow,  // a to the power of b, as in C
  // Of integers. A count that is negative or at least the width shifts every bit out.
  kShiftLeft,
  kShiftRight,  // keeps the sign
};

struct OpInfo {
  absl::string_view name;  // in the text form: "+", "exp", …
  int operands;
  bool infix;
  int precedence;  // of infix operators; higher binds tighter
};
const OpInfo& InfoOf(Op op);

struct Expr {
  Op op = Op::kConst;
  DType dtype = DType::kF32;
  // kLoad: the dimension whose index is the value of `a`, clamped into the dimension. Its entry in
  // the index list is 0. −1 if all indices are affine.
  int8_t gathered = -1;
  ExprId a = kNoExpr, b = kNoExpr, c = kNoExpr;
  Scalar value;          // kConst; representable in the dtype
  BufferId buffer = -1;  // kLoad
  int32_t indices = -1;  // kLoad, kIndex, kWhere: position in the pool's index lists
};

using IndexList = absl::InlinedVector<Index, 4>;

// The expressions of one workload or program. Append-only. Copyable; IDs stay valid in a copy.
class ExprPool {
 public:
  const Expr& operator[](ExprId id) const { return exprs_[id]; }
  const IndexList& IndicesOf(const Expr& expr) const { return index_lists_[expr.indices]; }
  int size() const { return static_cast<int>(exprs_.size()); }

  // Casts the value to the dtype.
  ExprId Const(DType dtype, Scalar value);
  ExprId OfIndex(Index index);
  // `dtype` is that of the buffer, whose elements are loaded as LoadedAs(dtype).
  ExprId Load(BufferId buffer, DType dtype, IndexList indices);
  // A load whose index in one dimension is the value of an i32 or i64 expression. REQUIRES:
  // indices[dimension] is 0.
  ExprId Gather(BufferId buffer, DType dtype, IndexList indices, int dimension, ExprId at);
  // The dtype is that of the operands; comparisons return bool. REQUIRES operands of equal dtype.
  ExprId Unary(Op op, ExprId a);
  ExprId Binary(Op op, ExprId a, ExprId b);
  ExprId Select(ExprId condition, ExprId then, ExprId otherwise);
  // Returns `value` if the list is empty.
  ExprId Where(IndexList non_negative, ExprId value, ExprId otherwise);
  // Casts constants immediately.
  ExprId Cast(DType dtype, ExprId a);
  // The value as stored in a tensor of its dtype: rounded once to a short float, unlike the
  // results of arithmetic. Returns the same expression for other dtypes or if it is already
  // rounded.
  ExprId Rounded(ExprId value);
  // The value in f32. Arithmetic on short floats is done in f32, so its operands are cast.
  ExprId Widened(ExprId value);
  // A copy of an expression with new operands.
  ExprId WithOperands(ExprId of, ExprId a, ExprId b, ExprId c);

  // Rebuilds an expression. `load` returns the replacement of a load, whose operand is already
  // rebuilt, or kNoExpr to keep it with its indices mapped; `index` maps every index. Unchanged
  // shared subtrees are kept.
  ExprId Rewrite(ExprId root, absl::FunctionRef<ExprId(const Expr&)> load,
                 absl::FunctionRef<Index(const Index&)> index);

  void VisitLoads(ExprId root, absl::FunctionRef<void(const Expr&)> visit) const;
  // Visits every node of the tree, operands first.
  void Visit(ExprId root, absl::FunctionRef<void(const Expr&)> visit) const;

 private:
  ExprId Add(Expr expr);
  std::vector<Expr> exprs_;
  std::vector<IndexList> index_lists_;
};

// The monoids of reductions. Each works on a tuple of `arity` components.
//   sum prod min max: one component. argmax argmin: (value, index), the lower index wins ties.
//   online_softmax: (max, sum of exp(x − max)), (Milakov and Gimelshein, 2018).
enum class Reducer : uint8_t { kNone, kSum, kProd, kMin, kMax, kArgMax, kArgMin, kOnlineSoftmax };
absl::string_view ReducerName(Reducer reducer);
// kNone if no reducer has that name.
Reducer ReducerFromName(absl::string_view name);
int ReducerArity(Reducer reducer);
// Whether the first component is a maximum or a minimum.
bool FindsExtreme(Reducer reducer);
bool IsMinimum(Reducer reducer);
// The accumulation type of a reduction into `dtype`: that of AccumulatorOf() for sums and products,
// otherwise `dtype`.
DType AccumulatorOf(Reducer reducer, DType dtype);
// The neutral element of a component.
Scalar ReducerIdentity(Reducer reducer, int component, DType dtype);
// Builds the expressions that combine two tuples.
absl::InlinedVector<ExprId, 2> Combine(ExprPool& pool, Reducer reducer,
                                       absl::Span<const ExprId> left,
                                       absl::Span<const ExprId> right);

// Prints e.g. "max(C[i, j] + 1.0, 0.0)", which parses back. `buffer_name` returns the name of a
// tensor or buffer.
std::string PrintExpr(const ExprPool& pool, const AtomTable& atoms, ExprId root,
                      absl::FunctionRef<std::string(BufferId)> buffer_name);
// "[i, j + 1]".
std::string PrintIndices(const AtomTable& atoms, const IndexList& indices);
// The shortest decimal text that parses back to the same value of the dtype. Floats always have a
// point or an exponent, or are inf or nan.
std::string PrintConst(DType dtype, Scalar value);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_EXPR_H_
