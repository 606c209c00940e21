#ifndef HONE_WORKER_COMPILE_LLVM_BROADCAST_LOADS_H_
#define HONE_WORKER_COMPILE_LLVM_BROADCAST_LOADS_H_

#include "llvm/IR/Module.h"

namespace hone::codegen {

// For CPUs whose multiply-adds take one operand from any lane of a register: loads of f32 that lie
// side by side in memory, each broadcast to a vector, become one load of a vector and broadcasts of
// its lanes. `lanes`: the longest vectors for which multiply-adds do so. Only loads with no write
// between them are joined. Loads of several steps (unrolled_loop.h) are joined if the operands
// fit into `registers` vector registers beside the accumulators. Reads no memory that the separate
// loads would not read.
void JoinBroadcastLoads(llvm::Module& module, unsigned lanes, int registers);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_BROADCAST_LOADS_H_
