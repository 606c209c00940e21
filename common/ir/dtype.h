#ifndef HONE_COMMON_IR_DTYPE_H_
#define HONE_COMMON_IR_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_DTYPE_H_
