#ifndef HONE_COMMON_IR_DTYPE_H_
#define HONE_COMMON_IR_DTYPE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"

namespace hone::ir {

// Scalar types. Index arithmetic is always 64-bit and has no DType. Digests contain these numbers:
// append new types at the end. f8e4m3 and f8e5m2 are the formats E4M3 and E5M2 of the OCP 8-bit
// Floating Point Specification: the first has no infinities (in other systems, E4M3FN). i4 and u4
// are storage types, which only inputs have: see IsPacked().
enum class DType : uint8_t {
  kF16,
  kBF16,
  kF32,
  kF64,
  kI8,
  kU8,
  kI32,
  kI64,
  kBool,
  kF8E4M3,
  kF8E5M2,
  kI4,
  kU4,
};

// "f32", …
absl::string_view DTypeName(DType dtype);
// InvalidArgument: unknown name; the message lists the names.
absl::StatusOr<DType> DTypeFromName(absl::string_view name);
// Returns the size of an element in memory, in bytes; 1 for bool and, rounded up, for packed types.
int DTypeBytes(DType dtype);
// Whether a byte holds two elements, as for i4 and u4. The first of them is in the low bits. Only
// the elements of a whole tensor are packed: its rows are not padded.
bool IsPacked(DType dtype);
// Returns the type of a loaded element: i8 for i4, u8 for u4, otherwise the type itself.
DType LoadedAs(DType dtype);
// Returns the size of a dense tensor in memory, in bytes.
int64_t BytesOf(DType dtype, int64_t elements);
bool IsFloat(DType dtype);
// Rounds to the nearest value of a float type, ties to even. Finite values beyond the largest one
// become infinite; in the 8-bit formats, which saturate, they become the largest one, and so do
// infinities in f8e4m3. A value of the type is not changed. REQUIRES: IsFloat(dtype).
double RoundTo(DType dtype, double value);
// Whether RoundTo() never makes a finite value infinite, as in the 8-bit floats.
bool Saturates(DType dtype);
// The type used to accumulate sums and products: f32 for short floats (f16, bf16 and the 8-bit
// ones), where rounding at every step would lose most of a long sum; otherwise the type itself.
DType AccumulatorOf(DType dtype);

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

// Access to elements of a tensor in memory, by dtype. The data need not be aligned. Integers and
// bool are whole numbers. Written values are cast to the dtype (see CastTo). Elements of packed
// types share bytes, which only one thread may write at a time.
Scalar ReadElement(DType dtype, const void* data, int64_t index);
void WriteElement(DType dtype, void* data, int64_t index, Scalar value);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_DTYPE_H_
