// log: x = 2^k · (1 + f) with √½ ≤ 1 + f < √2, log x = k·ln 2 + log(1 + f).
#include <limits>

#include "worker/codegen/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

namespace {

// k·high is exact or enters by fma.
constexpr double kLn2HighF32 = 0x1.62e43p-1, kLn2LowF32 = -0x1.05c61p-29;
constexpr double kLn2HighF64 = 0x1.62e42fee00000p-1, kLn2LowF64 = 0x1.a39ef35793c76p-33;

// (log(1 + f) − f) / f², weighted by f² / log(1 + f): 0.05 ulp.
constexpr double kLogF32[] = {-0x1.fffff8p-2, 0x1.55555p-2,  -0x1.000426p-2,
                              0x1.99a3f4p-3,  -0x1.54275p-3, 0x1.22717p-3,
                              -0x1.0f384ap-3, 0x1.084a08p-3, -0x1.382f92p-4};
// (log((1 + s) / (1 − s)) − 2s) / s³ in s², weighted by s²: 0.01 ulp.
constexpr double kLogF64[] = {0x1.5555555555592p-1, 0x1.999999997fd4p-2,  0x1.24924941f86b4p-2,
                              0x1.c71c5202f468ap-3, 0x1.74664050de101p-3, 0x1.39a19427585b7p-3,
                              0x1.2f06fd4c5f634p-3};

}  // namespace

Value* VectorMath::LogF32(Value* f, Value* k) {
  Value* tail =
      Fma(b_.CreateFMul(f, f), Polynomial(f, kLogF32), b_.CreateFMul(k, Number(f, kLn2LowF32)));
  return Fma(k, Number(f, kLn2HighF32), b_.CreateFAdd(f, tail));
}

// s = f / (2 + f), log(1 + f) = f − (f²/2 − s·(f²/2 + R)) with R = s²·T(s²): the series of the
// inverse hyperbolic tangent (Muller, Elementary Functions, 3rd ed., section 11.4), grouped as in
// FDLIBM (Sun Microsystems 1993).
Value* VectorMath::LogF64(Value* f, Value* k) {
  Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, Number(f, 2)));
  Value* z = b_.CreateFMul(s, s);
  Value* half_square = b_.CreateFMul(b_.CreateFMul(f, f), Number(f, 0.5));
  Value* sum = Fma(z, Polynomial(z, kLogF64), half_square);
  Value* correction = Fma(s, sum, b_.CreateFMul(k, Number(f, kLn2LowF64)));
  Value* rest = b_.CreateFSub(f, b_.CreateFSub(half_square, correction));
  return Fma(k, Number(f, kLn2HighF64), rest);
}

Value* VectorMath::Log(Value* x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool f64 = IsF64(x);
  const int digits = f64 ? 52 : 23;
  const uint64_t bias = f64 ? 1023 : 127;
  // Denormals are scaled to normal numbers.
  const double scale = f64 ? 0x1p52 : 0x1p23;
  Value* small = b_.CreateFCmpOLT(x, Number(x, f64 ? 0x1p-1022 : 0x1p-126));
  Value* y = b_.CreateSelect(small, b_.CreateFMul(x, Number(x, scale)), x);
  // Subtracts the bits of √½: the exponent field is then k, and the fraction counts from √½.
  const uint64_t root = f64 ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  Value* moved = b_.CreateAdd(ToBits(y), Bits(x, (bias << digits) - root));
  Value* field = b_.CreateLShr(moved, Bits(x, digits));
  Value* fraction = b_.CreateAnd(moved, Bits(x, (uint64_t{1} << digits) - 1));
  Value* f = b_.CreateFSub(b_.CreateBitCast(b_.CreateAdd(fraction, Bits(x, root)), x->getType()),
                           Number(x, 1));
  // A small integer in the low bits of 2^digits.
  Value* number = b_.CreateBitCast(
      b_.CreateOr(field, Bits(x, f64 ? 0x4330000000000000 : 0x4b000000)), x->getType());
  Value* offset = b_.CreateSelect(small, Number(x, scale + static_cast<double>(bias) + digits),
                                  Number(x, scale + static_cast<double>(bias)));
  Value* k = b_.CreateFSub(number, offset);
  Value* result = f64 ? LogF64(f, k) : LogF32(f, k);
  // ∞ and NaN return themselves; 0 and negative numbers have results of their own.
  result = b_.CreateSelect(b_.CreateFCmpOLT(x, Number(x, kInfinity)), result, x);
  Value* nonpositive = b_.CreateSelect(b_.CreateFCmpOEQ(x, Number(x, 0)), Number(x, -kInfinity),
                                       Number(x, std::numeric_limits<double>::quiet_NaN()));
  return b_.CreateSelect(b_.CreateFCmpOLE(x, Number(x, 0)), nonpositive, result);
}

}  // namespace hone::codegen
