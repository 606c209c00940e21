#ifndef HONE_COMMON_LOWER_PASSES_H_
#define HONE_COMMON_LOWER_PASSES_H_

#include "absl/status/status.h"
#include "common/ir/program.h"
#include "common/lower/lowered.h"
#include "common/target/target.h"

// The passes of Lower, in their order; each is a function of its input alone.
namespace hone::lower {

// Program → program: blocks are gone whose results nobody reads and that are no outputs.
ir::Program RemoveDeadBlocks(const ir::Program& program);

// Program → program: every intermediate buffer shrinks to what one iteration of the innermost loop
// around all its uses touches. REQUIRES no dead blocks: one has no uses around which to look for a
// loop but its own, and would keep no more than one step of a reduction.
ir::Program CompactBuffers(const ir::Program& program);

// Program → tree: block instances become stores over loop variables; loops of one iteration vanish.
LoweredProgram BuildTree(const ir::Program& program);

// Reductions whose results stay in place while only reduction loops (and static ones) run
// accumulate in registers: load or neutral element before, store after. At most 64 vectors. Sums of
// f16 and bf16 accumulate in f32 and are rounded when they are stored. InvalidArgument: one would
// be stored before it is complete, which rounds its partial sums.
absl::Status PromoteAccumulators(LoweredProgram& program);

// Every remaining init becomes a nest before the outermost reduction loop.
void LowerInits(LoweredProgram& program);

// Conditions become loop bounds, or branches at the outermost place where they can be decided: a
// guarded sum runs over what the guard leaves, a remainder tile becomes code of its own.
void NarrowDomain(LoweredProgram& program);

// Multi-dimensional indices become offsets; buffers get their places in memory. InvalidArgument:
// the memory exceeds 1 TiB.
absl::Status AssignStorage(LoweredProgram& program, const ir::Program& source,
                           const target::Target& target);

}  // namespace hone::lower

#endif  // HONE_COMMON_LOWER_PASSES_H_
