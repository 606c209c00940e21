#include "common/ir/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "common/base/rng.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

// The value of a 16-bit format, from its bits.
double HalfFromBits(uint32_t bits) {
  const int sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

double BFloatFromBits(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

double E4M3FromBits(uint32_t bits) {
  const int sign = bits >> 7 ? -1 : 1, exponent = (bits >> 3) & 15, fraction = bits & 7;
  if ((bits & 127) == 127) return std::nan("");
  return sign * (exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9));
}

// The upper byte of an f16.
double E5M2FromBits(uint32_t bits) { return HalfFromBits(bits << 8); }

// Checks rounding to nearest even by a search for the two neighbours among the finite values.
void ExpectNearestEven(DType dtype, double (*from_bits)(uint32_t), uint32_t largest_finite,
                       double value) {
  uint32_t low = 0, high = largest_finite;  // positive bit patterns are ordered like their values
  const double magnitude = std::abs(value);
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    (from_bits(middle) <= magnitude) ? low = middle : high = middle - 1;
  }
  const double below = from_bits(low);
  // Beyond the largest finite value, the next value of the same exponent stands for infinity.
  const double step = from_bits(largest_finite) - from_bits(largest_finite - 1);
  const double above = low == largest_finite ? below + step : from_bits(low + 1);
  double expected = magnitude - below < above - magnitude                ? below
                    : magnitude - below > above - magnitude || (low & 1) ? above
                                                                         : below;
  if (low == largest_finite) {
    expected = Saturates(dtype) ? below : expected == above ? INFINITY : expected;
  }
  expected = std::copysign(expected, value);
  const double actual = RoundTo(dtype, value);
  EXPECT_EQ(std::bit_cast<uint64_t>(actual), std::bit_cast<uint64_t>(expected))
      << DTypeName(dtype) << " of " << value << " is " << actual << ", expected " << expected;
}

TEST(DTypeTest, ShortFormatValuesRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double half = HalfFromBits(bits), bfloat = BFloatFromBits(bits);
    if (!std::isnan(half)) {
      EXPECT_EQ(RoundTo(DType::kF16, half), half);
    }
    if (!std::isnan(bfloat)) {
      EXPECT_EQ(RoundTo(DType::kBF16, bfloat), bfloat);
    }
  }
  EXPECT_TRUE(std::isnan(RoundTo(DType::kF16, std::nan(""))));
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const double e4m3 = E4M3FromBits(bits), e5m2 = E5M2FromBits(bits);
    if (!std::isnan(e4m3)) {
      EXPECT_EQ(RoundTo(DType::kF8E4M3, e4m3), e4m3);
    }
    if (!std::isnan(e5m2)) {
      EXPECT_EQ(RoundTo(DType::kF8E5M2, e5m2), e5m2);
    }
  }
}

// ONNX's Cast saturates. Infinities of f8e5m2 remain, because a value of the type is not changed.
TEST(DTypeTest, EightBitFloatsSaturate) {
  for (const auto& [dtype, largest, infinite] :
       {std::tuple{DType::kF8E4M3, 448.0, 448.0}, {DType::kF8E5M2, 57344.0, double{INFINITY}}}) {
    for (const double sign : {1.0, -1.0}) {
      for (const double beyond : {1.01 * largest, 1.2 * largest, 1e9, 1e300}) {
        EXPECT_EQ(RoundTo(dtype, sign * beyond), sign * largest);
      }
      EXPECT_EQ(RoundTo(dtype, sign * INFINITY), sign * infinite);
    }
    EXPECT_TRUE(std::isnan(RoundTo(dtype, std::nan(""))));
    EXPECT_EQ(AccumulatorOf(dtype), DType::kF32);
  }
}

TEST(DTypeTest, RoundsToNearestEven) {
  Rng rng(20240501);
  for (int i = 0; i < 20000; ++i) {
    // Spread over the exponents of both formats, some close to the middle of two values.
    const double value = std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(50)) - 30);
    ExpectNearestEven(DType::kF16, HalfFromBits, 0x7bff, value);
    const double wide = std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(270)) - 140);
    ExpectNearestEven(DType::kBF16, BFloatFromBits, 0x7f7f, wide);
  }
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    ExpectNearestEven(DType::kF16, HalfFromBits, 0x7bff,
                      (HalfFromBits(bits) + HalfFromBits(bits + 1)) / 2);
  }
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    ExpectNearestEven(DType::kBF16, BFloatFromBits, 0x7f7f,
                      (BFloatFromBits(bits) + BFloatFromBits(bits + 1)) / 2);
  }
  for (const auto& [dtype, from_bits, largest] :
       {std::tuple{DType::kF8E4M3, &E4M3FromBits, 0x7eu}, {DType::kF8E5M2, &E5M2FromBits, 0x7bu}}) {
    for (uint32_t bits = 0; bits < largest; ++bits) {
      const double low = from_bits(bits), high = from_bits(bits + 1), middle = (low + high) / 2;
      for (const double value : {low, middle, std::nextafter(middle, low), high,
                                 std::nextafter(middle, high), std::nextafter(low, high)}) {
        ExpectNearestEven(dtype, from_bits, largest, value);
        ExpectNearestEven(dtype, from_bits, largest, -value);
      }
    }
    for (int i = 0; i < 20000; ++i) {
      const double value = std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(50)) - 25);
      ExpectNearestEven(dtype, from_bits, largest, value);
    }
  }
  for (const double value :
       {65504.0, 65519.999, 65520.0, 65536.0, 1e9, 0.0, -0.0, 0x1p-25, 0x1.8p-25}) {
    ExpectNearestEven(DType::kF16, HalfFromBits, 0x7bff, value);
  }
  EXPECT_EQ(RoundTo(DType::kF32, 0.1), static_cast<double>(0.1f));
}

TEST(DTypeTest, PackedTypesShareBytes) {
  for (int d = 0; d <= static_cast<int>(DType::kU4); ++d) {
    const auto dtype = static_cast<DType>(d);
    const bool packed = dtype == DType::kI4 || dtype == DType::kU4;
    EXPECT_EQ(IsPacked(dtype), packed);
    EXPECT_EQ(BytesOf(dtype, 7), packed ? 4 : 7 * DTypeBytes(dtype)) << DTypeName(dtype);
    EXPECT_EQ(LoadedAs(dtype) == dtype, !packed);
  }
  EXPECT_EQ(LoadedAs(DType::kI4), DType::kI8);
  EXPECT_EQ(LoadedAs(DType::kU4), DType::kU8);
}

TEST(DTypeTest, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::kU4); ++i) {
    const auto dtype = static_cast<DType>(i);
    HONE_ASSERT_OK_AND_ASSIGN(const auto read, DTypeFromName(DTypeName(dtype)));
    EXPECT_EQ(read, dtype);
  }
  EXPECT_EQ(
      DTypeFromName("f31").status().message(),
      "unknown dtype 'f31'; known: f16, bf16, f32, f64, i8, u8, i32, i64, bool, f8e4m3, f8e5m2, "
      "i4, u4");
}

}  // namespace
}  // namespace hone::ir
