// log x = k·ln 2 + log(1 + f).
#include "worker/compile/llvm/vector_math/logarithm.h"

#include <limits>

#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

namespace {

// k·high enters by fma.
constexpr double kLogOf2HighF32 = 0x1.62e43p-1, kLogOf2LowF32 = -0x1.05c61p-29;

// (log(1 + f) − f) / f², weighted by f² / log(1 + f): 0.05 ulp.
constexpr double kLogF32[] = {-0x1.fffff8p-2, 0x1.55555p-2,  -0x1.000426p-2,
                              0x1.99a3f4p-3,  -0x1.54275p-3, 0x1.22717p-3,
                              -0x1.0f384ap-3, 0x1.084a08p-3, -0x1.382f92p-4};
// (log((1 + s) / (1 − s)) − 2s) / s³ in s², weighted by s²: 0.01 ulp.
constexpr double kLogF64[] = {0x1.5555555555592p-1, 0x1.999999997fd4p-2,  0x1.24924941f86b4p-2,
                              0x1.c71c5202f468ap-3, 0x1.74664050de101p-3, 0x1.39a19427585b7p-3,
                              0x1.2f06fd4c5f634p-3};

// log(1 + f) + k·ln 2.
Value* LogF32(MathBuilder& m, Value* f, Value* k) {
  Value* tail =
      m.Fma(m.Mul(f, f), m.Polynomial(f, kLogF32, {}), m.Mul(k, m.Number(f, kLogOf2LowF32)));
  return m.Fma(k, m.Number(f, kLogOf2HighF32), m.Add(f, tail));
}

// s = f / (2 + f), log(1 + f) = f − (f²/2 − s·(f²/2 + R)) with R = s²·T(s²): the series of the
// inverse hyperbolic tangent (Muller, Elementary Functions, 3rd ed., section 11.4), grouped as in
// FDLIBM (Sun Microsystems 1993).
Value* LogF64(MathBuilder& m, Value* f, Value* k) {
  Value* s = m.Div(f, m.Add(f, m.Number(f, 2)));
  Value* z = m.Mul(s, s);
  Value* half_square = m.Mul(m.Mul(f, f), m.Number(f, 0.5));
  Value* sum = m.Fma(z, m.Polynomial(z, {}, kLogF64), half_square);
  Value* correction = m.Fma(s, sum, m.Mul(k, m.Number(f, kLogOf2LowF64)));
  Value* rest = m.Sub(f, m.Sub(half_square, correction));
  return m.Fma(k, m.Number(f, kLogOf2HighF64), rest);
}

}  // namespace

PowerAndFraction SplitPowerOfTwo(MathBuilder& m, Value* x) {
  llvm::IRBuilder<>& b = m.ir();
  const bool f64 = MathBuilder::IsF64(x);
  const int digits = f64 ? 52 : 23;
  const uint64_t bias = f64 ? 1023 : 127;
  // Denormals are scaled to normal numbers.
  const double scale = f64 ? 0x1p52 : 0x1p23;
  Value* small = b.CreateFCmpOLT(x, m.Number(x, 0x1p-126, 0x1p-1022));
  Value* y = b.CreateSelect(small, m.Mul(x, m.Number(x, scale)), x);
  // Subtracts the bits of √½: the exponent field is then k, and the fraction counts from √½.
  const uint64_t root = f64 ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  Value* moved = b.CreateAdd(m.ToBits(y), m.Bits(x, (bias << digits) - root));
  Value* field = b.CreateLShr(moved, m.Bits(x, digits));
  Value* fraction = b.CreateAnd(moved, m.Bits(x, (uint64_t{1} << digits) - 1));
  Value* f =
      m.Sub(b.CreateBitCast(b.CreateAdd(fraction, m.Bits(x, root)), x->getType()), m.Number(x, 1));
  // A small integer in the low bits of 2^digits.
  Value* number = b.CreateBitCast(
      b.CreateOr(field, m.Bits(x, f64 ? 0x4330000000000000 : 0x4b000000)), x->getType());
  Value* offset = b.CreateSelect(small, m.Number(x, scale + static_cast<double>(bias) + digits),
                                 m.Number(x, scale + static_cast<double>(bias)));
  return {f, m.Sub(number, offset)};
}

Value* Log(MathBuilder& m, Value* x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  llvm::IRBuilder<>& b = m.ir();
  const auto [f, k] = SplitPowerOfTwo(m, x);
  Value* result = MathBuilder::IsF64(x) ? LogF64(m, f, k) : LogF32(m, f, k);
  // ∞ and NaN return themselves; 0 and negative numbers have special results.
  result = b.CreateSelect(b.CreateFCmpOLT(x, m.Number(x, kInfinity)), result, x);
  Value* nonpositive = b.CreateSelect(b.CreateFCmpOEQ(x, m.Number(x, 0)), m.Number(x, -kInfinity),
                                      m.Number(x, std::numeric_limits<double>::quiet_NaN()));
  return b.CreateSelect(b.CreateFCmpOLE(x, m.Number(x, 0)), nonpositive, result);
}

}  // namespace hone::codegen
