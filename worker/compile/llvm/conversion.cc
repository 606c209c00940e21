#include "worker/compile/llvm/conversion.h"

#include <bit>
#include <cmath>

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicInst.h"

namespace hone::codegen {

using ir::DType;
using llvm::Value;

llvm::Type* Conversion::MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return b_.getInt16Ty();
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kBool:
      return b_.getInt8Ty();
    default:
      return ValueType(dtype);
  }
}

llvm::Type* Conversion::ValueType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF32:
      return b_.getFloatTy();
    case DType::kF64:
      return b_.getDoubleTy();
    case DType::kI8:
    case DType::kU8:
      return b_.getInt8Ty();
    case DType::kI32:
      return b_.getInt32Ty();
    case DType::kI64:
      return b_.getInt64Ty();
    case DType::kBool:
      return b_.getInt1Ty();
    case DType::kI4:
    case DType::kU4:  // lowering turns them into bytes
      break;
  }
  return nullptr;
}

llvm::Type* Conversion::Lanes(llvm::Type* scalar, int64_t lanes) {
  return lanes == 0 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

llvm::Type* Conversion::Like(Value* value, llvm::Type* scalar) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return Lanes(scalar, vector == nullptr ? 0 : vector->getNumElements());
}

Value* Conversion::FromMemory(Value* raw, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return FloatFromF16(raw);
    case DType::kBF16:
      return FloatFromBF16(raw);
    case DType::kF8E4M3:
      return FloatFromE4M3(raw);
    case DType::kF8E5M2:
      return FloatFromE5M2(raw);
    case DType::kBool:
      return b_.CreateICmpNE(raw, Int(raw, 0));
    default:
      return raw;
  }
}

Value* Conversion::ToMemory(Value* value, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return F16FromFloat(value);
    case DType::kBF16:
      return BF16FromFloat(value);
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return Float8FromFloat(value, dtype);
    case DType::kBool:
      return b_.CreateZExt(value, Like(value, b_.getInt8Ty()));
    default:
      return value;
  }
}

Value* Conversion::FloatFromF16(Value* bits) {
  if (machine_.ConvertsF16())
    return b_.CreateFPExt(b_.CreateBitCast(bits, Like(bits, b_.getHalfTy())),
                          Like(bits, b_.getFloatTy()));
  // A multiplication moves the exponent and also normalizes denormals.
  Value* wide = b_.CreateZExt(bits, Like(bits, b_.getInt32Ty()));
  Value* sign = b_.CreateShl(b_.CreateAnd(wide, Int(wide, 0x8000)), Int(wide, 16));
  Value* magnitude = b_.CreateShl(b_.CreateAnd(wide, Int(wide, 0x7fff)), Int(wide, 13));
  Value* moved = b_.CreateBitCast(magnitude, Like(bits, b_.getFloatTy()));
  Value* scaled = b_.CreateBitCast(b_.CreateFMul(moved, Float(moved, 0x1p112)), wide->getType());
  Value* special = b_.CreateICmpUGE(magnitude, Int(wide, 0x7c00 << 13));
  Value* exponent = b_.CreateSelect(special, Int(wide, 0x7f800000), Int(wide, 0));
  return b_.CreateBitCast(b_.CreateOr(b_.CreateOr(scaled, exponent), sign), moved->getType());
}

Value* Conversion::F16FromFloat(Value* value) {
  if (Value* computed = HalfArithmetic(value)) {
    return b_.CreateBitCast(computed, Like(value, b_.getInt16Ty()));
  }
  if (machine_.ConvertsF16())
    return b_.CreateBitCast(b_.CreateFPTrunc(value, Like(value, b_.getHalfTy())),
                            Like(value, b_.getInt16Ty()));
  Value* bits = b_.CreateBitCast(value, Like(value, b_.getInt32Ty()));
  Value* magnitude = b_.CreateAnd(bits, Int(bits, 0x7fffffff));
  // Rounds the last 13 bits to nearest even and lowers the exponent's bias by 112. A carry out of
  // the largest number gives ∞.
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, Int(bits, 13)), Int(bits, 1));
  Value* biased = b_.CreateAdd(b_.CreateAdd(magnitude, odd), Int(bits, 0xfff - (112u << 23)));
  Value* normal = b_.CreateLShr(biased, Int(bits, 13));
  // Adding ½ rounds to multiples of the smallest denormal.
  Value* absolute = b_.CreateBitCast(magnitude, value->getType());
  Value* sum = b_.CreateBitCast(b_.CreateFAdd(absolute, Float(value, 0.5)), bits->getType());
  Value* denormal = b_.CreateSub(sum, Int(bits, 0x3f000000));
  Value* result =
      b_.CreateSelect(b_.CreateICmpULT(magnitude, Int(bits, 0x38800000)), denormal, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, Int(bits, 0x47800000)), Int(bits, 0x7c00),
                           result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, Int(bits, 0x7f800000)), Int(bits, 0x7e00),
                           result);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, Int(bits, 16)), Int(bits, 0x8000));
  return b_.CreateTrunc(b_.CreateOr(result, sign), Like(value, b_.getInt16Ty()));
}

Value* Conversion::FloatFromBF16(Value* bits) {
  Value* wide = b_.CreateZExt(bits, Like(bits, b_.getInt32Ty()));
  return b_.CreateBitCast(b_.CreateShl(wide, Int(wide, 16)), Like(bits, b_.getFloatTy()));
}

Value* Conversion::BF16FromFloat(Value* value) {
  // Not VCVTNEPS2BF16, which flushes denormals to 0.
  Value* bits = b_.CreateBitCast(value, Like(value, b_.getInt32Ty()));
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, Int(bits, 16)), Int(bits, 1));
  Value* rounded =
      b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(bits, odd), Int(bits, 0x7fff)), Int(bits, 16));
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(value, value), Int(bits, 0x7fc0), rounded);
  return b_.CreateTrunc(result, Like(value, b_.getInt16Ty()));
}

Value* Conversion::RoundToOdd(Value* value) {
  Value* rounded = b_.CreateFPTrunc(value, Like(value, b_.getFloatTy()));
  Value* back = b_.CreateFPExt(rounded, value->getType());
  Value* bits = b_.CreateBitCast(rounded, Like(value, b_.getInt32Ty()));
  Value* inexact = b_.CreateFCmpONE(back, value);
  const auto abs = [&](Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  Value* above = b_.CreateFCmpOGT(abs(back), abs(value));
  // Rounds towards 0, then sets the last bit if anything was lost.
  Value* truncated = b_.CreateSub(bits, b_.CreateZExt(above, bits->getType()));
  Value* odd = b_.CreateOr(truncated, b_.CreateZExt(inexact, bits->getType()));
  return b_.CreateBitCast(odd, rounded->getType());
}

Value* Conversion::WithoutLowBits(Value* value) {
  // For a number of more than 53 bits: drops the last 11 bits and sets one bit if anything was
  // lost. The result is exact in f64.
  constexpr uint64_t kLow = (1 << 11) - 1;
  Value* low = b_.CreateAnd(value, Int(value, kLow));
  Value* kept = b_.CreateXor(value, low);
  Value* lost = b_.CreateICmpNE(low, Int(value, 0));
  Value* odd =
      b_.CreateOr(kept, b_.CreateShl(b_.CreateZExt(lost, value->getType()), Int(value, 11)));
  Value* magnitude = b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, b_.getFalse());
  Value* is_large = b_.CreateICmpUGE(magnitude, Int(value, uint64_t{1} << 53));
  return b_.CreateSelect(is_large, odd, value);
}

Value* Conversion::ToInteger(Value* value, int bits) {
  const bool wide = bits == 64;
  const double modulus = wide ? 0x1p64 : 0x1p32, half = modulus / 2;
  llvm::Type* type = Like(value, b_.getIntNTy(bits));
  // value − round(value / modulus)·modulus, exactly.
  Value* whole = b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value);
  Value* turns = b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint,
                                         b_.CreateFMul(whole, Float(value, 1 / modulus)));
  Value* rest = b_.CreateIntrinsic(llvm::Intrinsic::fma, {value->getType()},
                                   {turns, Float(value, -modulus), whole});
  // Both ends of the range give the least integer; NaN compares false.
  Value* least = b_.CreateFCmpOEQ(rest, Float(value, half));
  rest = b_.CreateSelect(least, Float(value, -half), rest);
  Value* number = b_.CreateFCmpORD(rest, rest);
  return b_.CreateFPToSI(b_.CreateSelect(number, rest, Float(value, 0)), type);
}

Value* Conversion::Cast(Value* value, DType from, DType to) {
  if (from == to) return value;
  llvm::Type* type = Like(value, ValueType(to));
  const bool from_float = ir::IsFloat(from), to_float = ir::IsFloat(to);
  const bool is_unsigned = from == DType::kU8 || from == DType::kBool;
  if (to == DType::kBool) {
    Value* zero = llvm::Constant::getNullValue(value->getType());
    return from_float ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  }
  if (ir::AccumulatorOf(to) != to) {
    // Bytes are exact in f32, f16 and bf16; wider types pass through f64, which is then rounded
    // again.
    if (from == DType::kI8 || is_unsigned) {
      Value* exact = Cast(value, from, DType::kF32);
      return ir::DTypeBytes(to) > 1 ? exact : Cast(exact, DType::kF32, to);
    }
    if (from == DType::kI64) value = WithoutLowBits(value);
    if (!from_float) return Cast(Cast(value, from, DType::kF64), DType::kF64, to);
    if (from == DType::kF64) value = RoundToOdd(value);
    return FromMemory(ToMemory(value, to), to);
  }
  if (to_float && from_float) return b_.CreateFPCast(value, type);
  if (from == DType::kI64 && to == DType::kF32 && type->isVectorTy() && machine_.RoundsI64Twice()) {
    value = WithoutLowBits(value);
  }
  if (to_float) return is_unsigned ? b_.CreateUIToFP(value, type) : b_.CreateSIToFP(value, type);
  if (!from_float) return b_.CreateIntCast(value, type, !is_unsigned);
  if (to == DType::kI64) return ToInteger(value, 64);
  if (to == DType::kI32 || from == DType::kF64)
    return b_.CreateIntCast(ToInteger(value, 32), type, true);
  if (Value* whole = machine_.EmitTruncation(b_, value)) return b_.CreateTrunc(whole, type);
  // A float beyond ±2^31 is a multiple of 256.
  Value* inside =
      b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value), Float(value, 0x1p31));
  Value* whole = b_.CreateFPToSI(b_.CreateSelect(inside, value, Float(value, 0)),
                                 Like(value, b_.getInt32Ty()));
  return b_.CreateTrunc(whole, type);
}

Value* Conversion::Divide(Value* a, Value* b, DType dtype) {
  const bool is_unsigned = dtype == DType::kU8;
  Value* is_zero = b_.CreateICmpEQ(b, Int(b, 0));
  if (a->getType()->isVectorTy() && dtype != DType::kI64 && !llvm::isa<llvm::Constant>(b)) {
    // The format is precise enough that a quotient never rounds up to the next whole number.
    const DType exact = dtype == DType::kI32 ? DType::kF64 : DType::kF32;
    Value* safe = b_.CreateSelect(is_zero, Int(b, 1), b);
    Value* quotient = b_.CreateFDiv(Cast(a, dtype, exact), Cast(safe, dtype, exact));
    return b_.CreateSelect(is_zero, Int(b, 0), Cast(quotient, exact, dtype));
  }
  if (is_unsigned)
    return b_.CreateSelect(is_zero, Int(b, 0),
                           b_.CreateUDiv(a, b_.CreateSelect(is_zero, Int(b, 1), b)));
  Value* is_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  Value* quotient =
      b_.CreateSDiv(a, b_.CreateSelect(b_.CreateOr(is_zero, is_minus_one), Int(b, 1), b));
  return b_.CreateSelect(is_zero, Int(b, 0),
                         b_.CreateSelect(is_minus_one, b_.CreateNeg(a), quotient));
}

Value* Conversion::ShiftLeft(Value* a, Value* count) {
  Value* inside = b_.CreateICmpULT(count, Int(a, a->getType()->getScalarSizeInBits()));
  Value* shifted = b_.CreateShl(a, b_.CreateSelect(inside, count, Int(a, 0)));
  return b_.CreateSelect(inside, shifted, Int(a, 0));
}

Value* Conversion::ShiftRight(Value* a, Value* count, DType dtype) {
  const unsigned width = a->getType()->getScalarSizeInBits();
  if (dtype != DType::kU8) {
    return b_.CreateAShr(a,
                         b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, count, Int(a, width - 1)));
  }
  Value* inside = b_.CreateICmpULT(count, Int(a, width));
  Value* shifted = b_.CreateLShr(a, b_.CreateSelect(inside, count, Int(a, 0)));
  return b_.CreateSelect(inside, shifted, Int(a, 0));
}

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

using llvm::Value;

// Returns the f16 that was converted to this float; nullptr if there is none.
Value* Conversion::AsHalf(Value* value) {
  if (const auto* extension = llvm::dyn_cast<llvm::FPExtInst>(value)) {
    return extension->getSrcTy()->getScalarType()->isHalfTy() ? extension->getOperand(0) : nullptr;
  }
  Value* element = value->getType()->isVectorTy() ? llvm::getSplatValue(value) : value;
  if (element == nullptr) return nullptr;
  Value* half = nullptr;
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantFP>(element)) {
    llvm::APFloat number = constant->getValueAPF();
    bool loses = false;
    number.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &loses);
    if (!loses) half = llvm::ConstantFP::get(b_.getHalfTy(), number);
  } else if (element != value) {
    half = AsHalf(element);
  }
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return half == nullptr || vector == nullptr
             ? half
             : b_.CreateVectorSplat(vector->getNumElements(), half);
}

// If an operation on f16 is computed in f32 and then rounded to f16, the result is that of the
// operation in f16, although it is rounded twice: sums, differences, products, quotients and roots
// of numbers of p digits may first be rounded to 2p + 2 digits (Figueroa, When is double rounding
// innocuous?, 1995), and f32 has 24 = 2 * 11 + 2. The same holds for denormal results: sums and
// products are then exact in f32, and a quotient differs from the middle of two f16, which has at
// most 12 digits, by at least 2^-23 of it. It does not hold for a fused multiply-add.
Value* Conversion::HalfArithmetic(Value* value) {
  if (!machine_.ComputesF16()) return nullptr;
  if (const auto* root = llvm::dyn_cast<llvm::IntrinsicInst>(value)) {
    Value* a =
        root->getIntrinsicID() == llvm::Intrinsic::sqrt ? AsHalf(root->getArgOperand(0)) : nullptr;
    return a == nullptr ? nullptr : b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
  }
  const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
  if (operation == nullptr) return nullptr;
  switch (operation->getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
      break;
    default:
      return nullptr;
  }
  Value* x = AsHalf(operation->getOperand(0));
  Value* y = AsHalf(operation->getOperand(1));
  return x == nullptr || y == nullptr ? nullptr : b_.CreateBinOp(operation->getOpcode(), x, y);
}

}  // namespace hone::codegen
