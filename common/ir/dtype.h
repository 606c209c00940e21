#ifndef HONE_COMMON_IR_DTYPE_H_
#define HONE_COMMON_IR_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::ir {

// Scalar types. Index arithmetic is always 64-bit and has no DType.
enum class DType : uint8_t { kF16, kBF16, kF32, kF64, kI8, kU8, kI32, kI64, kBool };

// "f32", …
absl::string_view DTypeName(DType dtype);
// InvalidArgument: lists the names.
absl::StatusOr<DType> DTypeFromName(absl::string_view name);
// Size in memory; bool takes one byte.
int DTypeBytes(DType dtype);
bool IsFloat(DType dtype);
// Rounds a value to what the type can hold: the float formats to nearest even; integers drop the fraction and wrap, and take
// NaN and the infinities as 0.
double RoundTo(DType dtype, double value);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_DTYPE_H_
