#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"

namespace hone::schedule {
namespace {

constexpr Primitive kPrimitives[] = {
    {"block", 1, "s", "b", false, ApplyBlock, "finds a block by name"},
    {"cache_read", 1, "bss", "b", false, ApplyCacheRead, "block, buffer, scope: reads through a copy"},
    {"cache_write", 1, "bs", "b", false, ApplyCacheWrite, "block, scope: writes through a buffer of its own"},
    {"compute_at", 1, "bl", "", false, ApplyComputeAt, "computes a block where one iteration of a loop needs it"},
    {"compute_inline", 1, "b", "", false, ApplyComputeInline, "replaces reads by the block's expression"},
    {"decompose_reduction", 1, "bl", "b", false, ApplyDecomposeReduction, "stores the neutral element before a loop"},
    {"fuse", 1, "l*", "l", false, ApplyFuse, "joins nested loops"},
    {"loops", 1, "b", "l*", false, ApplyLoops, "the loops around a block, outermost first"},
    {"parallel", 1, "l", "", false, ApplyParallel, "runs the iterations on threads"},
    {"register_tile", 1, "blllii*", "lll", false, ApplyRegisterTile,
     "block, row, vector and reduction loop, rows, vectors, lanes, k_unroll: accumulators in registers"},
    {"reorder", 1, "l*", "", false, ApplyReorder, "puts loops of a nest into the given order"},
    {"reverse_compute_at", 1, "bl", "", false, ApplyReverseComputeAt, "consumes where one iteration of a loop produces"},
    {"rewrite", 1, "ssi*", "", false, ApplyRewrite, "algorithm, stage, its numbers: other stages that compute the same"},
    {"sample_categorical", 1, "", "i", true, ApplySampleCategorical, "one of candidates=[…]"},
    {"sample_perfect_tile", 1, "l", "i*", true, ApplySamplePerfectTile, "parts= factors of a loop's extent, max_inner="},
    {"sample_register_tile", 1, "", "ii", true, ApplySampleRegisterTile, "one (rows, vectors) of candidates=[…]"},
    {"sample_tile", 1, "l", "i*", true, ApplySampleTile, "parts= sizes that cover a loop's extent, max_inner="},
    {"split", 1, "li*", "l*", false, ApplySplit, "cuts a loop; the first factor may be 0: inferred"},
    {"transform_layout", 1, "bsi*", "", false, ApplyTransformLayout, "stores the block's buffer in another order"},
    {"unroll", 1, "l", "", false, ApplyUnroll, "repeats the body"},
    {"vectorize", 1, "l", "", false, ApplyVectorize, "makes the iterations lanes"},
};

}  // namespace

absl::Span<const Primitive> Primitives() { return kPrimitives; }

const Primitive* FindPrimitive(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kPrimitives), std::end(kPrimitives), [&](const Primitive& p) { return p.name == name; });
  return found == std::end(kPrimitives) ? nullptr : found;
}

absl::Status Illegal(const ir::Program& program, ir::NodeId node, absl::string_view what) {
  const ir::Node& at = program.node(node);
  const std::string name = at.kind == ir::Node::Kind::kLoop    ? absl::StrCat("loop ", program.atoms[at.var].name)
                           : at.kind == ir::Node::Kind::kBlock ? absl::StrCat("block ", program.BlockOf(node).name)
                                                               : "";
  return absl::FailedPreconditionError(absl::StrCat(what, " (", name, ")\n", program.ToText(node)));
}

}  // namespace hone::schedule
