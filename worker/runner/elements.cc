#include "worker/runner/elements.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "absl/numeric/int128.h"
#include "common/base/rng.h"

namespace hone::runner {
namespace {

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

template <typename T, typename Value>
void Fill(void* data, int64_t elements, Rng rng, const Value& value) {
  T* const typed = static_cast<T*>(data);
  for (int64_t i = 0; i < elements; ++i) typed[i] = static_cast<T>(value(rng()));
}

double RealFrom(uint64_t bits) { return static_cast<double>(bits >> 40) * 0x1p-23 - 1; }

bool IsUnsigned(ir::DType dtype) { return dtype == ir::DType::kU8 || dtype == ir::DType::kBool; }

}  // namespace

ir::Scalar ReadElement(ir::DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case ir::DType::kF16:
      return HalfToDouble(Load<uint16_t>(data, index));
    case ir::DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(data, index)) << 16);
    case ir::DType::kF8E4M3:
      return E4M3ToDouble(Load<uint8_t>(data, index));
    case ir::DType::kF8E5M2:  // the upper byte of a half
      return HalfToDouble(static_cast<uint16_t>(Load<uint8_t>(data, index) << 8));
    case ir::DType::kF32:
      return Load<float>(data, index);
    case ir::DType::kF64:
      return Load<double>(data, index);
    case ir::DType::kI8:
      return Load<int8_t>(data, index);
    case ir::DType::kU8:
    case ir::DType::kBool:
      return Load<uint8_t>(data, index);
    case ir::DType::kI32:
      return Load<int32_t>(data, index);
    case ir::DType::kI64:
      return Load<int64_t>(data, index);
  }
  return NAN;
}

void WriteElement(ir::DType dtype, void* data, int64_t index, ir::Scalar value) {
  value = ir::CastTo(dtype, value);
  switch (dtype) {
    case ir::DType::kF16:
      return Store(data, index, DoubleToHalf(value.real()));
    case ir::DType::kBF16:
      return Store(
          data, index,
          static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value.real())) >> 16));
    case ir::DType::kF8E4M3:
      return Store(data, index, DoubleToE4M3(value.real()));
    case ir::DType::kF8E5M2:
      return Store(data, index, static_cast<uint8_t>(DoubleToHalf(value.real()) >> 8));
    case ir::DType::kF32:
      return Store(data, index, static_cast<float>(value.real()));
    case ir::DType::kF64:
      return Store(data, index, value.real());
    case ir::DType::kI8:
      return Store(data, index, static_cast<int8_t>(value.whole()));
    case ir::DType::kU8:
    case ir::DType::kBool:
      return Store(data, index, static_cast<uint8_t>(value.whole()));
    case ir::DType::kI32:
      return Store(data, index, static_cast<int32_t>(value.whole()));
    case ir::DType::kI64:
      return Store(data, index, value.whole());
  }
}

void FillTensor(const TensorSpec& spec, Filling filling, uint64_t seed, int number, void* data) {
  const Rng rng(seed, static_cast<uint64_t>(number), static_cast<uint64_t>(filling));
  const auto small = [&](uint64_t bits) -> double {
    // Uses the upper bits, so the value is platform-independent, as for Rng::Below.
    const auto below = [&](int bound) { return static_cast<double>((bits >> 32) * bound >> 32); };
    if (spec.bound > 0) {
      return static_cast<double>(absl::Uint128High64(absl::uint128(bits) * spec.bound));
    }
    if (spec.dtype == ir::DType::kBool) return below(2);
    if (filling == Filling::kReal) return IsUnsigned(spec.dtype) ? below(16) : below(16) - 8;
    return IsUnsigned(spec.dtype) ? below(4) : below(7) - 3;
  };
  const auto value = [&](uint64_t bits) -> double {
    return filling == Filling::kReal && ir::IsFloat(spec.dtype) ? RealFrom(bits) : small(bits);
  };
  // Fast paths for the two common types; a large workload has tens of millions of elements.
  if (spec.dtype == ir::DType::kF32) return Fill<float>(data, spec.elements, rng, value);
  if (spec.dtype == ir::DType::kF64) return Fill<double>(data, spec.elements, rng, value);
  Rng other = rng;
  for (int64_t i = 0; i < spec.elements; ++i) WriteElement(spec.dtype, data, i, value(other()));
}

}  // namespace hone::runner
