#include "common/ir/element_bytes.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hone::ir {
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

// The position of an element of a packed type in its byte, in bits.
int NibbleShift(int64_t index) { return static_cast<int>(index % 2) * 4; }

}  // namespace

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
