#include "common/ir/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hone::ir {
namespace {

struct DTypeInfo {
  absl::string_view name;
  int bytes;
  bool is_float;
};
constexpr DTypeInfo kInfo[] = {
    {"f16", 2, true},   {"bf16", 2, true},   {"f32", 4, true},    {"f64", 8, true},
    {"i8", 1, false},   {"u8", 1, false},    {"i32", 4, false},   {"i64", 8, false},
    {"bool", 1, false}, {"f8e4m3", 1, true}, {"f8e5m2", 1, true}, {"i4", 1, false},
    {"u4", 1, false},
};

constexpr double kLargestE4M3 = 448, kLargestE5M2 = 57344;

// Rounds to a binary format with `digits` significant bits (including the hidden one) and
// `min_exponent` as the exponent of its smallest normal number. Finite values beyond `max_finite`
// become `overflow`.
double RoundSignificand(double value, int digits, int min_exponent, double max_finite,
                        double overflow = INFINITY) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent;
  std::frexp(value, &exponent);  // value = f·2^exponent, ½ ≤ |f| < 1
  const int ulp = std::max(exponent, min_exponent) - digits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -ulp)), ulp);
  return std::abs(rounded) > max_finite ? std::copysign(overflow, value) : rounded;
}

// What other programs call the types, in lower case.
constexpr std::pair<absl::string_view, absl::string_view> kOtherNames[] = {
    {"float32", "f32"},
    {"fp32", "f32"},
    {"float", "f32"},
    {"single", "f32"},
    {"float16", "f16"},
    {"fp16", "f16"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"float64", "f64"},
    {"fp64", "f64"},
    {"double", "f64"},
    {"int8", "i8"},
    {"uint8", "u8"},
    {"int32", "i32"},
    {"int", "i32"},
    {"int64", "i64"},
    {"long", "i64"},
    {"boolean", "bool"},
    {"int4", "i4"},
    {"uint4", "u4"},
    {"float8e4m3", "f8e4m3"},
    {"float8_e4m3fn", "f8e4m3"},
    {"float8e4m3fn", "f8e4m3"},
    {"float8e5m2", "f8e5m2"},
    {"float8_e5m2", "f8e5m2"}};

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

template <typename T>
T Load(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * sizeof(T), &value, sizeof(T));
}

double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -value : value;
}

// REQUIRES: a half can represent `value`.
uint16_t DoubleToHalf(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (magnitude < 0x1p-14) return sign | static_cast<uint16_t>(std::ldexp(magnitude, 24));
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  const auto significand = static_cast<int>(std::ldexp(fraction, 11)) - 1024;
  return static_cast<uint16_t>(sign | (exponent + 14) << 10 | significand);
}

// As a half with one more bit in the exponent, the number is too small by a factor of 2^8.
double E4M3ToDouble(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return NAN;
  return 0x1p8 * HalfToDouble(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7));
}

// REQUIRES: f8e4m3 can represent `value`.
uint8_t DoubleToE4M3(double value) {
  if (std::isnan(value)) return 0x7f;
  const uint16_t half = DoubleToHalf(value * 0x1p-8);
  return static_cast<uint8_t>((half >> 8 & 0x80) | (half >> 7 & 0x7f));
}

// The position of an element of a packed type in its byte, in bits.
int NibbleShift(int64_t index) { return static_cast<int>(index % 2) * 4; }

}  // namespace

absl::string_view DTypeName(DType dtype) { return kInfo[static_cast<int>(dtype)].name; }
int DTypeBytes(DType dtype) { return kInfo[static_cast<int>(dtype)].bytes; }
bool IsPacked(DType dtype) { return dtype == DType::kI4 || dtype == DType::kU4; }

DType LoadedAs(DType dtype) {
  if (!IsPacked(dtype)) return dtype;
  return dtype == DType::kI4 ? DType::kI8 : DType::kU8;
}

int64_t BytesOf(DType dtype, int64_t elements) {
  return IsPacked(dtype) ? (elements + 1) / 2 : elements * DTypeBytes(dtype);
}

bool IsFloat(DType dtype) { return kInfo[static_cast<int>(dtype)].is_float; }

absl::StatusOr<DType> DTypeFromName(absl::string_view name) {
  std::string known;
  for (size_t i = 0; i < std::size(kInfo); ++i) {
    if (kInfo[i].name == name) return static_cast<DType>(i);
    absl::StrAppend(&known, i ? ", " : "", kInfo[i].name);
  }
  const std::string lower = absl::AsciiStrToLower(name);
  for (const auto& [other, ours] : kOtherNames) {
    if (lower != other) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("unknown dtype '", name, "'; Hone calls it ", ours, "; known: ", known));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype '", name, "'; known: ", known));
}

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kF16:
      return RoundSignificand(value, 11, -13, 65504.0);
    case DType::kBF16:
      return RoundSignificand(value, 8, -125, 0x1.fep127);
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF8E4M3:
      if (std::isinf(value)) return std::copysign(kLargestE4M3, value);
      return RoundSignificand(value, 4, -5, kLargestE4M3, kLargestE4M3);
    case DType::kF8E5M2:
      return RoundSignificand(value, 3, -13, kLargestE5M2, kLargestE5M2);
    default:
      return value;
  }
}

bool Saturates(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }

DType AccumulatorOf(DType dtype) {
  return IsFloat(dtype) && DTypeBytes(dtype) < DTypeBytes(DType::kF32) ? DType::kF32 : dtype;
}

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

Scalar ReadElement(DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DType::kF16:
      return HalfToDouble(Load<uint16_t>(data, index));
    case DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(data, index)) << 16);
    case DType::kF8E4M3:
      return E4M3ToDouble(Load<uint8_t>(data, index));
    case DType::kF8E5M2:  // the upper byte of a half
      return HalfToDouble(static_cast<uint16_t>(Load<uint8_t>(data, index) << 8));
    case DType::kF32:
      return Load<float>(data, index);
    case DType::kF64:
      return Load<double>(data, index);
    case DType::kI8:
      return Load<int8_t>(data, index);
    case DType::kU8:
    case DType::kBool:
      return Load<uint8_t>(data, index);
    case DType::kI32:
      return Load<int32_t>(data, index);
    case DType::kI64:
      return Load<int64_t>(data, index);
    case DType::kI4:
    case DType::kU4:
      return CastTo(dtype, Load<uint8_t>(data, index / 2) >> NibbleShift(index));
  }
  return NAN;
}

void WriteElement(DType dtype, void* data, int64_t index, Scalar value) {
  value = CastTo(dtype, value);
  switch (dtype) {
    case DType::kF16:
      return Store(data, index, DoubleToHalf(value.real()));
    case DType::kBF16:
      return Store(
          data, index,
          static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value.real())) >> 16));
    case DType::kF8E4M3:
      return Store(data, index, DoubleToE4M3(value.real()));
    case DType::kF8E5M2:
      return Store(data, index, static_cast<uint8_t>(DoubleToHalf(value.real()) >> 8));
    case DType::kF32:
      return Store(data, index, static_cast<float>(value.real()));
    case DType::kF64:
      return Store(data, index, value.real());
    case DType::kI8:
      return Store(data, index, static_cast<int8_t>(value.whole()));
    case DType::kU8:
    case DType::kBool:
      return Store(data, index, static_cast<uint8_t>(value.whole()));
    case DType::kI32:
      return Store(data, index, static_cast<int32_t>(value.whole()));
    case DType::kI64:
      return Store(data, index, value.whole());
    case DType::kI4:
    case DType::kU4: {
      const int shift = NibbleShift(index);
      const int other = Load<uint8_t>(data, index / 2) & (0xf0 >> shift);
      const auto own = static_cast<int>(value.whole() & 15) << shift;
      return Store(data, index / 2, static_cast<uint8_t>(other | own));
    }
  }
}

}  // namespace hone::ir
