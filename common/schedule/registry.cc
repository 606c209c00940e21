#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"

namespace hone::schedule {
namespace {

constexpr Primitive kPrimitives[] = {
    {"add_unit_loop", 1, "n", "l", false, ApplyAddUnitLoop,
     "a loop of one iteration around a loop or block"},
    {"annotate", 1, "nsi", "", false, ApplyAnnotate,
     "loop or block, key, value: omp_schedule, prefetch, nontemporal"},
    {"async_copy", 1, "b", "", false, ApplyAsyncCopy,
     "runs the block's copies concurrently with the computation (GPUs)"},
    {"bind", 1, "ls", "", false, ApplyBind,
     "runs the iterations on a GPU axis: blockIdx.x … threadIdx.z, vthread"},
    {"block", 1, "s", "b", false, ApplyBlock, "finds a block by name"},
    {"blockize", 1, "l", "", false, ApplyBlockize, "makes the nest under a loop one unit"},
    {"cache_read", 1, "bss", "b", false, ApplyCacheRead,
     "block, buffer, scope: reads through a copy"},
    {"cache_write", 2, "bs", "b", false, ApplyCacheWrite,
     "block, scope: writes through a new buffer"},
    {"compute_at", 1, "bl", "", false, ApplyComputeAt,
     "computes a block where one iteration of a loop needs it"},
    {"compute_inline", 2, "b", "", false, ApplyComputeInline,
     "replaces reads by the block's expression"},
    {"decompose_padding", 1, "bl", "b", false, ApplyDecomposePadding,
     "stores the zeros before a loop, then copies"},
    {"decompose_reduction", 1, "bl", "b", false, ApplyDecomposeReduction,
     "stores the neutral element before a loop"},
    {"double_buffer", 1, "b", "", false, ApplyDoubleBuffer,
     "alternates the block's output between two buffers (GPUs)"},
    {"fuse", 1, "l*", "l", false, ApplyFuse, "joins nested loops"},
    {"loop_kind", 1, "li", "", false, ApplyLoopKind,
     "by number: 0 leaves the loop serial, 1 unrolls, 2 vectorizes it"},
    {"loop_partition", 1, "li*", "l*", false, ApplyLoopPartition,
     "cuts a loop into consecutive ranges that begin at the given iterations"},
    {"loops", 1, "bi*", "l*", false, ApplyLoops,
     "the loops around a block, outermost first; with a number, the innermost n of them"},
    {"pad_einsum", 1, "bi*", "b*", false, ApplyPadEinsum,
     "rounds the block's iteration variables up to multiples"},
    {"parallel", 1, "l", "", false, ApplyParallel, "runs the iterations on threads"},
    {"register_tile", 1, "blllii*", "lll", false, ApplyRegisterTile,
     "block, row, vector and reduction loop, rows, vectors, lanes, k_unroll: accumulators in "
     "registers"},
    {"reorder", 1, "l*", "", false, ApplyReorder, "puts loops of a nest into the given order"},
    {"reorder_by", 1, "isl*", "", false, ApplyReorderBy,
     "number, orders: puts loops into the chosen order of \"0 1 | 1 0\""},
    {"reorder_space", 1, "llsi", "l", false, ApplyReorderSpace,
     "fuses two nested loops in an order: \"grouped\" by bands, \"morton\""},
    {"reverse_compute_at", 1, "bl", "", false, ApplyReverseComputeAt,
     "consumes where one iteration of a loop produces"},
    {"reverse_compute_inline", 2, "b", "", false, ApplyReverseComputeInline,
     "merges the block into its producer, as its last operation"},
    {"rewrite", 2, "ssi*", "", false, ApplyRewrite,
     "algorithm, stage, numbers: replaces the stage by another algorithm"},
    {"rfactor", 1, "bli*", "b", false, ApplyRfactor,
     "partial results per iteration of a reduction loop; dimension (-1: last)"},
    {"sample_categorical", 1, "", "i", true, ApplySampleCategorical, "one of candidates=[…]"},
    {"sample_compute_location", 1, "b", "l", true, ApplySampleComputeLocation,
     "a loop for compute_at, or none; outermost=: one of that many loops"},
    {"sample_perfect_tile", 1, "l", "i*", true, ApplySamplePerfectTile,
     "parts= factors of a loop's extent, max_inner="},
    {"sample_register_tile", 1, "", "ii", true, ApplySampleRegisterTile,
     "one (rows, vectors) of candidates=[…]"},
    {"sample_tile", 1, "l", "i*", true, ApplySampleTile,
     "parts= sizes that cover a loop's extent, max_inner="},
    {"set_scope", 1, "bs", "", false, ApplySetScope,
     "places what the block writes in another scope"},
    {"software_pipeline", 1, "li", "", false, ApplySoftwarePipeline,
     "overlaps the iterations in n stages (GPUs)"},
    {"split", 1, "li*", "l*", false, ApplySplit,
     "cuts a loop; the first factor may be 0: inferred"},
    {"storage_align", 1, "biii", "", false, ApplyStorageAlign,
     "axis, factor, offset: pads the stride of what the block writes"},
    {"tensorize", 1, "ls", "", false, ApplyTensorize,
     "computes the nest under a loop by an instruction"},
    {"thread_count", 1, "li", "", false, ApplyThreadCount, "a parallel loop's threads; 1: no fork"},
    {"transform_layout", 1, "bsi*", "", false, ApplyTransformLayout,
     "stores the block's buffer in another order"},
    {"unroll", 1, "l", "", false, ApplyUnroll, "repeats the body"},
    {"vectorize", 1, "l", "", false, ApplyVectorize, "makes the iterations lanes"},
};

}  // namespace

absl::Span<const Primitive> Primitives() { return kPrimitives; }

const Primitive* FindPrimitive(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kPrimitives), std::end(kPrimitives),
                                   [&](const Primitive& p) { return p.name == name; });
  return found == std::end(kPrimitives) ? nullptr : found;
}

}  // namespace hone::schedule
