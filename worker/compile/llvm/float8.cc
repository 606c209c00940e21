// Conversions of f8e4m3 and f8e5m2.
#include <bit>
#include <cmath>

#include "worker/compile/llvm/conversion.h"

namespace hone::codegen {

using ir::DType;
using llvm::Value;

// The upper byte of an f16 has the layout of f8e5m2.
Value* Conversion::FloatFromE5M2(Value* bits) {
  Value* half = b_.CreateZExt(bits, Like(bits, b_.getInt16Ty()));
  return FloatFromF16(b_.CreateShl(half, Int(half, 8)));
}

Value* Conversion::FloatFromE4M3(Value* bits) {
  // As an f16 with one more bit in the exponent, the number is too small by a factor of 2^8. The
  // first bit of the exponent is a copy of the sign, and is cleared.
  Value* wide = b_.CreateSExt(bits, Like(bits, b_.getInt16Ty()));
  Value* half = b_.CreateAnd(b_.CreateShl(wide, Int(wide, 7)), Int(wide, 0xbfff));
  Value* magnitude = b_.CreateAnd(half, Int(wide, 0x3f80));
  Value* nan = b_.CreateICmpEQ(magnitude, Int(wide, 0x3f80));
  half = b_.CreateSelect(nan, Int(wide, 0x7e00), half);
  Value* number = FloatFromF16(half);
  return b_.CreateFMul(number, Float(number, 0x1p8));
}

Value* Conversion::Float8FromFloat(Value* value, DType dtype) {
  constexpr uint32_t kInfinity = 0x7f800000;
  const bool e4m3 = dtype == DType::kF8E4M3;
  const int fraction = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, shift = 23 - fraction;
  const auto bits_of = [](double number) {
    return std::bit_cast<uint32_t>(static_cast<float>(number));
  };
  Value* bits = b_.CreateBitCast(value, Like(value, b_.getInt32Ty()));
  Value* magnitude = b_.CreateAnd(bits, Int(bits, 0x7fffffff));
  // Numbers beyond the range become the largest number.
  const uint32_t largest = bits_of(ir::RoundTo(dtype, 1e30));
  Value* inside = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, magnitude, Int(bits, largest));
  // Rounds the last bits to nearest even and lowers the exponent's bias.
  const uint32_t half_ulp = 1u << (shift - 1), rebias = static_cast<uint32_t>(127 - bias) << 23;
  Value* odd = b_.CreateAnd(b_.CreateLShr(inside, Int(bits, shift)), Int(bits, 1));
  Value* biased = b_.CreateAdd(b_.CreateAdd(inside, odd), Int(bits, half_ulp - 1 - rebias));
  Value* normal = b_.CreateLShr(biased, Int(bits, shift));
  // The last bit of the summand is the smallest denormal, so the sum is rounded to its multiples.
  const double summand = std::ldexp(1.0, 23 + 1 - bias - fraction);
  Value* absolute = b_.CreateBitCast(inside, value->getType());
  Value* sum = b_.CreateBitCast(b_.CreateFAdd(absolute, Float(value, summand)), bits->getType());
  Value* denormal = b_.CreateSub(sum, Int(bits, bits_of(summand)));
  const uint32_t least_normal = bits_of(std::ldexp(1.0, 1 - bias));
  Value* is_denormal = b_.CreateICmpULT(inside, Int(bits, least_normal));
  Value* result = b_.CreateSelect(is_denormal, denormal, normal);
  if (!e4m3) {
    Value* infinite = b_.CreateICmpEQ(magnitude, Int(bits, kInfinity));
    result = b_.CreateSelect(infinite, Int(bits, 0x7c), result);
  }
  Value* nan = b_.CreateICmpUGT(magnitude, Int(bits, kInfinity));
  result = b_.CreateSelect(nan, Int(bits, e4m3 ? 0x7f : 0x7e), result);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, Int(bits, 24)), Int(bits, 0x80));
  return b_.CreateTrunc(b_.CreateOr(result, sign), Like(value, b_.getInt8Ty()));
}

}  // namespace hone::codegen
