#include "common/ir/scalar.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hone::ir {
namespace {

// Converts to a double that rounds to the short float formats as the integer itself would: if bits
// are lost, the last kept bit is set ("round to odd").
double RoundedToOdd(int64_t value) {
  const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : value;
  const int excess = 64 - std::countl_zero(magnitude) - 53;
  if (excess <= 0) return static_cast<double>(value);
  const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
  const uint64_t kept = (magnitude >> excess | (lost != 0)) << excess;
  return value < 0 ? -static_cast<double>(kept) : static_cast<double>(kept);
}

int64_t Wrapped(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI4:
      return ((value & 15) ^ 8) - 8;
    case DType::kU4:
      return value & 15;
    case DType::kI32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

}  // namespace

int64_t Scalar::whole() const {
  if (is_whole_) return whole_;
  if (!std::isfinite(real_)) return 0;
  const double number = std::trunc(real_);
  if (number >= -0x1p63 && number < 0x1p63) return static_cast<int64_t>(number);
  const double wrapped = std::fmod(number, 0x1p64);  // exact
  return static_cast<int64_t>(wrapped < 0 ? -static_cast<uint64_t>(-wrapped)
                                          : static_cast<uint64_t>(wrapped));
}

std::string Scalar::ToText() const {
  return is_whole_ ? absl::StrCat(whole_) : absl::StrFormat("%.17g", real_);
}

Scalar CastTo(DType dtype, Scalar value) {
  if (dtype == DType::kBool) return int64_t{value.IsTrue()};
  if (!IsFloat(dtype)) return Wrapped(dtype, value.whole());
  if (!value.is_whole() || dtype == DType::kF64) return RoundTo(dtype, value.real());
  if (dtype == DType::kF32) return static_cast<float>(value.whole());
  return RoundTo(dtype, RoundedToOdd(value.whole()));
}

void AddTo(DigestBuilder& builder, Scalar value) {
  builder.Add(value.real());
  if (value.is_whole() && value != Scalar(value.real()).whole()) {
    builder.Add(absl::string_view("i64")).Add(value.whole());
  }
}

}  // namespace hone::ir
