#ifndef HONE_WORKER_RUNNER_MATH_ERRORS_H_
#define HONE_WORKER_RUNNER_MATH_ERRORS_H_

#include "common/ir/error_bound.h"
#include "common/target/target.h"

namespace hone::runner {

// Returns the largest errors that the interface of a device allows for its functions. The check of
// outputs allows for them, so that no correct kernel is refused because the functions of its device
// are less accurate than those of a CPU.
ir::ErrorOfOp ErrorsOf(target::Kind kind);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_MATH_ERRORS_H_
