#ifndef HONE_WORKER_COMPILE_LLVM_LOAD_DISTANCE_H_
#define HONE_WORKER_COMPILE_LLVM_LOAD_DISTANCE_H_

#include "llvm/IR/Module.h"

namespace hone::codegen {

// For cores that execute instructions in order: in blocks of many multiply-adds, moves each load of
// an operand some multiply-adds ahead of its first use, as long as the operands fit into
// `registers` vector registers beside the accumulators. `grouped`: loads together, for cores that
// do not issue them beside multiply-adds; otherwise each on its own. Returns whether there was such
// a block. If so, LLVM's scheduler should not change the order.
bool MoveLoadsAhead(llvm::Module& module, int registers, bool grouped);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_LOAD_DISTANCE_H_
