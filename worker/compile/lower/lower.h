#ifndef HONE_WORKER_COMPILE_LOWER_LOWER_H_
#define HONE_WORKER_COMPILE_LOWER_LOWER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/intrinsic.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "worker/compile/lower/layout.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// Returns the instruction that computes a store, as matched by the primitive tensorize; nullptr if
// there is none.
const ir::Intrinsic* IntrinsicOf(const Stmt& store);

// Unimplemented: the program uses an instruction that the target lacks.
absl::Status CheckIntrinsics(const LoweredProgram& program, const target::Target& target);

// Lowers a scheduled program for a target with the passes of passes.h. InvalidArgument: the program
// needs more than 1 TiB of memory, or would round partial sums to short floats; or the strides are
// invalid (layout.h).
absl::StatusOr<LoweredProgram> Lower(const ir::Program& program, const target::Target& target,
                                     const ArgumentStrides& strides = {});

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_LOWER_H_
