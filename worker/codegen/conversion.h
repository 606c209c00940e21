#ifndef HONE_WORKER_CODEGEN_CONVERSION_H_
#define HONE_WORKER_CODEGEN_CONVERSION_H_

#include "common/ir/dtype.h"
#include "common/target/target.h"
#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

// How numbers look in memory and in registers, and the way from one dtype to another, for scalars
// and vectors of any width. f16 and bf16 are 16-bit integers in memory and float in registers:
// arithmetic is in f32 and rounds where the interpreter rounds, at stores and casts. bool is a byte
// in memory (anything but 0 is true) and i1 in registers. What converts is vector code without
// calls: the hardware's instructions where there are any, integer arithmetic elsewhere.
class Conversion {
 public:
  // Both outlive this.
  Conversion(llvm::IRBuilder<>& builder, const target::Target& target);

  llvm::Type* MemoryType(ir::DType dtype);
  llvm::Type* ValueType(ir::DType dtype);
  // `lanes` 0: the scalar.
  static llvm::Type* Lanes(llvm::Type* scalar, int64_t lanes);

  // Between the two forms; a vector for a vector. ToMemory rounds to nearest even.
  llvm::Value* FromMemory(llvm::Value* raw, ir::DType dtype);
  llvm::Value* ToMemory(llvm::Value* value, ir::DType dtype);

  // Casts a value as ir::RoundTo says: floats round to nearest even; integers wrap; floats to
  // integers drop the fraction and wrap, NaN and the infinities give 0; anything but 0 is true.
  llvm::Value* Cast(llvm::Value* value, ir::DType from, ir::DType to);

  // Integers: a / b towards 0, 0 for b = 0; the least number by −1 wraps. Vectors divide as floats,
  // which is exact up to i32.
  llvm::Value* Divide(llvm::Value* a, llvm::Value* b, ir::DType dtype);

 private:
  llvm::Value* FloatFromF16(llvm::Value* bits);
  llvm::Value* F16FromFloat(llvm::Value* value);
  llvm::Value* FloatFromBF16(llvm::Value* bits);
  llvm::Value* BF16FromFloat(llvm::Value* value);
  // f64 → f32 rounded to odd: rounding the result once more gives what rounding at once gives.
  llvm::Value* RoundToOdd(llvm::Value* value);
  // i64: a number that is exact in f64 and rounds to the short formats as `value` does.
  llvm::Value* WithoutLowBits(llvm::Value* value);
  // The whole part modulo 2^bits, of 32 or 64.
  llvm::Value* ToInteger(llvm::Value* value, int bits);

  llvm::Type* Like(llvm::Value* value, llvm::Type* scalar);
  llvm::Value* Int(llvm::Value* like, uint64_t value) {
    return llvm::ConstantInt::get(like->getType(), value);
  }
  llvm::Value* Float(llvm::Value* like, double value) {
    return llvm::ConstantFP::get(like->getType(), value);
  }

  llvm::IRBuilder<>& b_;
  bool hardware_f16_;
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_CONVERSION_H_
