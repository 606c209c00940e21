#ifndef HONE_TESTS_ORACLES_INTERPRETER_H_
#define HONE_TESTS_ORACLES_INTERPRETER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// The order in which the threads of a GPU block run between two barriers. Each thread runs alone
// until it waits at the barrier.
enum class ThreadOrder : uint8_t { kForward, kBackward, kShuffled };

// Runs a lowered program: all kernels, in order. This defines what back ends must generate. Accepts
// the result of every pass from BuildTree on. Values are as in ir::Interpret.
//
// A vectorized loop runs each store for all lanes: all lanes read before the first one writes,
// except where a store reduces over the lanes. Iterations of a parallel loop and the blocks of a
// GPU launch run in reverse order.
// After AssignStorage, memory is checked, too. Stacks, registers and per-thread memory do not keep
// their values from one iteration of a parallel loop to the next. Two iterations must not write the
// same element of shared memory, nor may one read what another writes. An element must not be read
// after another buffer has used its memory. Two threads of a block must not access an element that
// one of them writes without a barrier in between.
//
// InvalidArgument: wrong number or sizes of inputs. OutOfRange: a store accesses memory outside its
// buffer. FailedPrecondition: an element is read before it is written or after its memory was
// reused, iterations or threads race (the message has both stores), or only some threads of a block
// would wait at a barrier. Unimplemented: control flow that differs between lanes.
// ResourceExhausted: more than `max_steps` stores.
absl::StatusOr<std::vector<ir::Scalars>> Interpret(const LoweredProgram& program,
                                                   const ir::Workload& workload,
                                                   absl::Span<const ir::Scalars> inputs,
                                                   int64_t max_steps = int64_t{1} << 32,
                                                   ThreadOrder order = ThreadOrder::kForward);

}  // namespace hone::lower

#endif  // HONE_TESTS_ORACLES_INTERPRETER_H_
