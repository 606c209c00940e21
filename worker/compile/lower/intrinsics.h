#ifndef HONE_WORKER_COMPILE_LOWER_INTRINSICS_H_
#define HONE_WORKER_COMPILE_LOWER_INTRINSICS_H_

#include "absl/status/status.h"
#include "common/ir/intrinsic.h"
#include "common/target/target.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// Returns the instruction that computes a store, as matched by the primitive tensorize; nullptr if
// there is none.
const ir::Intrinsic* IntrinsicOf(const Stmt& store);

// Unimplemented: the program uses an instruction that the target lacks.
absl::Status CheckIntrinsics(const LoweredProgram& program, const target::Target& target);

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_INTRINSICS_H_
