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
// InvalidArgument: unknown name; the message lists the names.
absl::StatusOr<DType> DTypeFromName(absl::string_view name);
// Size in memory in bytes; bool takes one.
int DTypeBytes(DType dtype);
bool IsFloat(DType dtype);
// Rounds to the nearest value of a float type, ties to even. REQUIRES: IsFloat(dtype).
double RoundTo(DType dtype, double value);
// The type used to accumulate sums and products: f32 for f16 and bf16, where rounding at every step
// would lose most of a long sum; otherwise the type itself.
DType AccumulatorOf(DType dtype);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_DTYPE_H_
