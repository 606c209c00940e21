#ifndef HONE_TESTS_ORACLES_VERIFIER_H_
#define HONE_TESTS_ORACLES_VERIFIER_H_

#include "absl/status/status.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// Checks what back ends rely on in the result of Lower:
// - The kernels are "main", or "prepack" and "main".
// - Every variable belongs to a loop around its use, or to the instruction of its store.
// - Loops have a body and at least one iteration; static loops have no bounds; a vectorized loop
//   contains no vectorized and no parallel loop, a parallel loop no parallel loop.
// - A store has one flat index, and values of its buffers' dtypes.
// - Registers are indexed by variables of static loops only.
// - Buffers lie within their memory, at multiples of kBufferAlignment.
// - Nothing writes inputs; only "prepack" writes packed constants, and it reads only constants.
// Internal: a rule is broken, which is a bug in a pass. The message has the statement.
absl::Status Verify(const LoweredProgram& program);

}  // namespace hone::lower

#endif  // HONE_TESTS_ORACLES_VERIFIER_H_
