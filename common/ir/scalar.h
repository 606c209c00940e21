#ifndef HONE_COMMON_IR_SCALAR_H_
#define HONE_COMMON_IR_SCALAR_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

#include "common/base/digest.h"
#include "common/ir/dtype.h"

namespace hone::ir {

// The value of one element: a whole number for integer dtypes and bool, a real number for float
// dtypes. Whole numbers are exact over all of i64. A Scalar does not know its dtype; CastTo()
// converts it to a value of a dtype.
class Scalar {
 public:
  constexpr Scalar() = default;
  constexpr Scalar(double value) : real_(value), is_whole_(false) {}
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  constexpr Scalar(T value) : whole_(static_cast<int64_t>(value)), is_whole_(true) {}

  constexpr bool is_whole() const { return is_whole_; }
  // The value as a double. Whole numbers beyond 2^53 are rounded.
  constexpr double real() const { return is_whole_ ? static_cast<double>(whole_) : real_; }
  // The integer part modulo 2^64. 0 for NaN and infinities.
  int64_t whole() const;
  constexpr bool IsTrue() const { return is_whole_ ? whole_ != 0 : real_ != 0; }

  // Numeric comparison. Two whole numbers compare exactly, others as doubles, where NaN is
  // unordered.
  friend constexpr bool operator==(Scalar a, Scalar b) {
    return a.is_whole_ && b.is_whole_ ? a.whole_ == b.whole_ : a.real() == b.real();
  }
  friend constexpr bool operator<(Scalar a, Scalar b) {
    return a.is_whole_ && b.is_whole_ ? a.whole_ < b.whole_ : a.real() < b.real();
  }
  friend constexpr bool operator<=(Scalar a, Scalar b) {
    return a.is_whole_ && b.is_whole_ ? a.whole_ <= b.whole_ : a.real() <= b.real();
  }
  // Prints whole numbers in full, and real numbers with as many digits as a double may need.
  std::string ToText() const;
  friend std::ostream& operator<<(std::ostream& out, Scalar value) { return out << value.ToText(); }

 private:
  union {
    double real_;
    int64_t whole_ = 0;
  };
  bool is_whole_ = true;
};

// Converts to a dtype. Floats round once, to nearest even. Integers drop the fraction and wrap; NaN
// and infinities become 0. bool is 1 for every value but 0.
Scalar CastTo(DType dtype, Scalar value);

// Adds the value to a digest. A whole number that a double represents exactly is encoded as that
// double.
void AddTo(DigestBuilder& builder, Scalar value);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_SCALAR_H_
