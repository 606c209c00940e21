#ifndef HONE_WORKER_COMPILE_LOWER_LOWER_H_
#define HONE_WORKER_COMPILE_LOWER_LOWER_H_

#include "absl/status/statusor.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "worker/compile/lower/layout.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// Lowers a scheduled program for a target with the passes of passes.h. InvalidArgument: the program
// needs more than 1 TiB of memory, or would round partial sums to short floats; or the strides are
// invalid (layout.h). Unimplemented: there are no passes for the target's kind.
absl::StatusOr<LoweredProgram> Lower(const ir::Program& program, const target::Target& target,
                                     const ArgumentStrides& strides = {});

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_LOWER_H_
