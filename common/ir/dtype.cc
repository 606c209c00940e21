#include "common/ir/dtype.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

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

}  // namespace hone::ir
