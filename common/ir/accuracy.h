#ifndef HONE_COMMON_IR_ACCURACY_H_
#define HONE_COMMON_IR_ACCURACY_H_

#include <cstdint>
#include <vector>

#include "common/ir/workload.h"

namespace hone::ir {

// How accurately a correct kernel computes the values of a workload.
class Accuracy {
 public:
  // The workload must outlive this object.
  explicit Accuracy(const Workload& workload);

  // Terms of the longest chain of reductions that an element depends on, at least 1. A product of n
  // factors counts n² times their terms, because relative errors of factors add up.
  double terms() const { return terms_; }
  // Unit roundoff of the coarsest float type that values are computed in, which is f32 for f16 and
  // bf16; 0 without floats.
  double roundoff() const { return roundoff_; }
  // The error of a computed float is at most this times its magnitude, beside what it inherits of
  // roundings (error_bound.h). The expected error of a sum of K terms in any order grows with √K
  // (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2); 4 covers blocked
  // orders with room.
  double relative_error() const;
  // Whether the value of an expression is known but for its rounding: it takes no float arithmetic
  // after the last conversion.
  bool IsExact(ExprId id) const;
  // The same for what a stage computes, before it is stored.
  bool IsComputedExactly(BufferId tensor) const { return exact_[tensor]; }
  // Whether the magnitude of an expression is that of MagnitudeOfProduct() or
  // MagnitudeOfQuotient(). MagnitudeOf() says the same where an operand's magnitude is its absolute
  // value, and is used for large operands, which those formulas hold more than once.
  bool BoundsClosely(const Expr& expr) const;
  // Whether conversions may drive two computations of an output apart: an intermediate tensor of
  // f16 or bf16, a cast that loses digits, or the index of an extreme of computed floats.
  bool rounds_on_the_way() const { return rounds_on_the_way_; }

 private:
  void AddStage(const Stage& stage);
  bool IsPlain(ExprId id) const;  // its magnitude is its absolute value

  const Workload& workload_;
  double terms_ = 0;
  double roundoff_ = 0;
  bool rounds_on_the_way_ = false;
  std::vector<bool> exact_;          // by tensor
  std::vector<int64_t> tree_sizes_;  // nodes of each expression as a tree, up to a limit
};

// Whether a tensor keeps fewer digits than its values are computed with.
bool StoresShort(const Tensor& tensor);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ACCURACY_H_
