#ifndef HONE_WORKER_COMPILE_LOWER_PASSES_H_
#define HONE_WORKER_COMPILE_LOWER_PASSES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/target/target.h"
#include "worker/compile/lower/layout.h"
#include "worker/compile/lower/lowered.h"

// The passes of Lower, in order. Each is a function of its input only.
namespace hone::lower {

// A pass between BuildTree and AssignStorage.
struct Pass {
  absl::string_view name;
  absl::Status (*run)(LoweredProgram& program);
};
// All of them, in order.
absl::Span<const Pass> Passes();

// Runs the passes before BuildTree: RemoveDeadBlocks, CompactBuffers and, for GPUs, MapThreads
// (gpu/gpu_passes.h). Errors are those of MapThreads.
absl::StatusOr<ir::Program> Prepare(const ir::Program& program, const target::Target& target);

// Removes blocks whose results are neither read nor outputs.
ir::Program RemoveDeadBlocks(const ir::Program& program);

// Shrinks each intermediate buffer to what one iteration of the innermost loop around all its uses
// accesses. REQUIRES that dead blocks are removed: a dead block has no other uses, so its buffer
// would shrink to a single reduction step.
ir::Program CompactBuffers(const ir::Program& program);

// Turns the program into a tree: blocks become stores over loop variables, and loops with one
// iteration disappear.
LoweredProgram BuildTree(const ir::Program& program, target::Kind kind = target::Kind::kCpu);

// For CPUs: a copy of a packed constant (ir::IsPacked) stays packed. Where one nest of the kernel
// that packs fills a buffer with elements of a packed input, and a row has a multiple of eight of
// them, the buffer gets words of i32 with eight elements each. A float from a vector of consecutive
// elements then takes a mask and a conversion, and its power of 2 is left to the other factors of a
// product. Above 2^96, such products of inputs may overflow early.
absl::Status PackConstants(LoweredProgram& program);

// Keeps the accumulators of a reduction in registers while only reduction loops and static loops
// run: loads or initializes them before, stores them after. At most 64 vectors. Sums of short
// floats accumulate in f32 and are rounded when stored. InvalidArgument: such a sum would be stored
// before it is complete, which would round its partial sums.
absl::Status PromoteAccumulators(LoweredProgram& program);

// For CPUs: computes a sum of products over the steps of an unrolled loop without the factors that
// are the same in all steps, such as the scale of a block of weights, and multiplies it by these
// once. What is subtracted from whole numbers in all steps, such as a zero point, is multiplied by
// the sum of the other factors once. Only where the accumulators and the partial sums fit the
// registers of any CPU.
absl::Status HoistFactors(LoweredProgram& program);

// Turns every remaining init into a nest before the outermost reduction loop.
absl::Status LowerInits(LoweredProgram& program);

// Turns conditions into loop bounds, or into branches at the outermost place where their variables
// are set. A guarded sum then runs only where its guard holds, and a remainder tile gets its own
// code.
absl::Status NarrowDomain(LoweredProgram& program);

// Flattens indices to offsets and assigns memory to buffers. InvalidArgument: more than 1 TiB of
// memory is needed, the strides of an argument fail CheckStrides (layout.h), or the outputs of one
// stage have different strides.
absl::Status AssignStorage(LoweredProgram& program, const ir::Program& source,
                           const target::Target& target, const ArgumentStrides& strides);

// Turns loads of packed types (ir::IsPacked) into loads of bytes and shifts. Their buffers become
// buffers of bytes. REQUIRES that storage is assigned.
void UnpackElements(LoweredProgram& program);

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_PASSES_H_
