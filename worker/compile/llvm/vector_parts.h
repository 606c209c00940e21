#ifndef HONE_WORKER_COMPILE_LLVM_VECTOR_PARTS_H_
#define HONE_WORKER_COMPILE_LLVM_VECTOR_PARTS_H_

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

// Vectors whose number of lanes is not a power of two. LLVM takes them apart into single lanes
// where they are shuffled or cross from one block to another, so they are handled as parts here.
namespace hone::codegen {

// Returns the vector with the next power of two of lanes. The other lanes are arbitrary.
llvm::Value* PadLanes(llvm::IRBuilder<>& b, llvm::Value* vector);
// Splits a vector into parts of `part` lanes, a power of two. The last one may have arbitrary
// lanes.
llvm::SmallVector<llvm::Value*, 8> SplitLanes(llvm::IRBuilder<>& b, llvm::Value* vector, int part);
// The inverse: returns the first `lanes` lanes of the parts.
llvm::Value* JoinLanes(llvm::IRBuilder<>& b, llvm::ArrayRef<llvm::Value*> parts, int lanes);

// Makes every such vector that lives across blocks live in parts of at most `vector_bits` bits.
void KeepInParts(llvm::Function& function, int vector_bits);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_VECTOR_PARTS_H_
