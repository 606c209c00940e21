#ifndef HONE_WORKER_COMPILE_LLVM_CONVERSION_H_
#define HONE_WORKER_COMPILE_LLVM_CONVERSION_H_

#include "common/ir/dtype.h"
#include "llvm/IR/IRBuilder.h"
#include "worker/compile/llvm/machine.h"

namespace hone::codegen {

// Defines how numbers are represented in memory and in registers, and converts between dtypes, for
// scalars and vectors of any width. f16, bf16, f8e4m3 and f8e5m2 are integers in memory and float
// in registers: arithmetic is in f32 and rounds where the interpreter rounds, at stores and casts.
// bool is a byte in memory (any value but 0 is true) and i1 in registers. Conversions are vector
// code without calls: hardware instructions where available, integer arithmetic elsewhere.
class Conversion {
 public:
  // `builder` and `machine` must outlive this object.
  Conversion(llvm::IRBuilder<>& builder, const Machine& machine) : b_(builder), machine_(machine) {}

  llvm::Type* MemoryType(ir::DType dtype);
  llvm::Type* ValueType(ir::DType dtype);
  // `lanes` 0: a scalar.
  static llvm::Type* Lanes(llvm::Type* scalar, int64_t lanes);

  // Converts between the two forms; a vector gives a vector. ToMemory rounds to nearest even.
  llvm::Value* FromMemory(llvm::Value* raw, ir::DType dtype);
  llvm::Value* ToMemory(llvm::Value* value, ir::DType dtype);

  // Casts a value as ir::RoundTo defines. Floats round to nearest even; integers wrap. A float cast
  // to an integer drops the fraction and wraps; NaN and the infinities give 0. Any value but 0 is
  // true.
  llvm::Value* Cast(llvm::Value* value, ir::DType from, ir::DType to);

  // Integer division, truncating: b = 0 gives 0, and the least number divided by −1 wraps. Vectors
  // divide as floats, which is exact up to i32.
  llvm::Value* Divide(llvm::Value* a, llvm::Value* b, ir::DType dtype);

  // Integer shifts by any count: a negative count, or one of the width or more, shifts every bit
  // out.
  llvm::Value* ShiftLeft(llvm::Value* a, llvm::Value* count);
  llvm::Value* ShiftRight(llvm::Value* a, llvm::Value* count, ir::DType dtype);

 private:
  llvm::Value* FloatFromF16(llvm::Value* bits);
  llvm::Value* F16FromFloat(llvm::Value* value);
  llvm::Value* FloatFromBF16(llvm::Value* bits);
  llvm::Value* BF16FromFloat(llvm::Value* value);
  // Returns the f16 that `value`, an operation in f32, is rounded to, computed in f16; nullptr if
  // the CPU does not compute in f16 or the result could differ.
  llvm::Value* HalfArithmetic(llvm::Value* value);
  llvm::Value* AsHalf(llvm::Value* value);
  llvm::Value* FloatFromE4M3(llvm::Value* bits);
  llvm::Value* FloatFromE5M2(llvm::Value* bits);
  llvm::Value* Float8FromFloat(llvm::Value* value, ir::DType dtype);
  // Converts f64 to f32, rounding to odd. Rounding the result again gives the same as rounding
  // once.
  llvm::Value* RoundToOdd(llvm::Value* value);
  // Converts an i64 to a number that is exact in f64 and that rounds to f32 and the short formats
  // in the same way as `value`.
  llvm::Value* WithoutLowBits(llvm::Value* value);
  // Returns the whole part modulo 2^bits; `bits` is 32 or 64.
  llvm::Value* ToInteger(llvm::Value* value, int bits);

  llvm::Type* Like(llvm::Value* value, llvm::Type* scalar);
  llvm::Value* Int(llvm::Value* like, uint64_t value) {
    return llvm::ConstantInt::get(like->getType(), value);
  }
  llvm::Value* Float(llvm::Value* like, double value) {
    return llvm::ConstantFP::get(like->getType(), value);
  }

  llvm::IRBuilder<>& b_;
  const Machine& machine_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_CONVERSION_H_
