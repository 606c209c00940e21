#ifndef HONE_COMMON_IR_ACCURACY_H_
#define HONE_COMMON_IR_ACCURACY_H_

#include <cstdint>
#include <vector>

#include "common/ir/workload.h"

namespace hone::ir {

// The largest error of an operation on floats, as a multiple of the unit roundoff of its result.
using ErrorOfOp = double (*)(Op op);
// Of a device that rounds the exact result of every operation.
inline double RoundsOnce(Op) { return 1; }

// How accurately a correct kernel computes the values of a workload.
class Accuracy {
 public:
  // The workload must outlive this object. `error_of` is that of the device.
  explicit Accuracy(const Workload& workload, ErrorOfOp error_of = RoundsOnce);

  // The number of roundings in the longest chain of operations that an element depends on, at least
  // 1: the terms of reductions and the operations of expressions, each as often as the device's
  // error of it demands. A product of n factors counts n² times the terms of its factors, because
  // relative errors of factors add up.
  double terms() const { return terms_; }
  // Unit roundoff of the coarsest float type used in computation (f32 for short floats); 0 without
  // floats.
  double roundoff() const { return roundoff_; }
  // Bound on the error of a computed float, as a fraction of its magnitude, in addition to the
  // rounding that it inherits (error_bound.h). A sum of K terms has at most K roundings. Their
  // expected sum grows with √K in any order (Higham, Accuracy and Stability of Numerical
  // Algorithms, 2002, section 4.2). The factor 8 leaves room for equal terms, whose roundings do
  // not cancel.
  double relative_error() const;
  // Whether no float arithmetic contributes to the value of an expression after its last conversion
  // or rounding to a whole number. Such a value has no error besides that rounding.
  bool IsExact(ExprId id) const;
  // The same for the value that a stage computes for a tensor, before it is stored.
  bool IsComputedExactly(BufferId tensor) const { return exact_[tensor]; }
  // Whether an expression is a product or quotient of two computed values, whose relative errors
  // add up (MagnitudeOfProduct() and MagnitudeOfQuotient()).
  bool AddsErrors(const Expr& expr) const;
  // Whether the value of an expression has no arithmetic error.
  bool IsPlain(ExprId id) const;
  // A positive lower bound, in any correct computation, on the divisor of a quotient or the operand
  // of a logarithm or root; 0 if none is known.
  double LeastOperand(const Expr& expr) const;
  // Whether the rounding of an expression may be positive (error_bound.h).
  bool MayVary(ExprId id) const;
  // Whether two correct computations of an expression may differ.
  bool MayDiffer(ExprId id) const { return !IsExact(id) || MayVary(id); }
  // Whether the rounding of an output may be positive: an intermediate tensor is a short float, a
  // cast loses digits, computed floats are compared or rounded to whole numbers, or the output is
  // the index of an extreme of computed floats.
  bool rounds_on_the_way() const { return rounds_on_the_way_; }
  // Whether float inputs that are integers give outputs that are integers: the workload consists of
  // sums, products and comparisons of loads and integer constants.
  bool keeps_integers() const { return keeps_integers_; }

 private:
  void AddStage(const Stage& stage);
  void AddValue(ExprId value);
  bool VariesAsComputed(const Stage& stage, size_t component) const;
  double LeastOfComponent(const Stage& stage, size_t component) const;
  bool AreEqual(ExprId a, ExprId b) const;
  // A lower bound on an expression in any correct computation, apart from the rounding of
  // constants; −infinity if none is known.
  double LeastOf(ExprId id) const;

  const Workload& workload_;
  const ErrorOfOp error_of_;
  double terms_ = 0;
  double roundoff_ = 0;
  bool rounds_on_the_way_ = false;
  bool keeps_integers_ = true;
  std::vector<bool> exact_, varies_;  // by tensor, before it is stored
  std::vector<double> least_;         // by tensor, see LeastOf()
};

// Whether a tensor's dtype has fewer digits than the computation of its values.
bool StoresShort(const Tensor& tensor);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ACCURACY_H_
