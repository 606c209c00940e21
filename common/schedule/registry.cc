#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/intrinsic.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/algorithm.h"
#include "common/schedule/primitive/annotate.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/primitive/padding.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/tensorize.h"

namespace hone::schedule {
namespace {

using Count = Argument::Count;
using Kind = Argument::Kind;

constexpr Argument kBlock = {Kind::kBlock, "block"};
constexpr Argument kLoop = {Kind::kLoop, "loop"};
constexpr Argument kNode = {Kind::kBlockOrLoop, "loop_or_block"};
constexpr Argument kLoops = {Kind::kLoop, "loop", "outermost first", Count::kMany};
constexpr Argument kScope = {Kind::kString, "scope", "global, shared, local or fragment"};
constexpr Argument kParts = {Kind::kNamed, "parts", "how many numbers are drawn, 1 to 16"};
constexpr Argument kMaxInner = {Kind::kNamed, "max_inner", "upper limit of the last number",
                                Count::kOptional};

constexpr Argument LoopOf(absl::string_view name, absl::string_view meaning) {
  return {Kind::kLoop, name, meaning};
}
constexpr Argument NumberOf(absl::string_view name, absl::string_view meaning,
                            Count count = Count::kOne) {
  return {Kind::kNumber, name, meaning, count};
}
constexpr Argument StringOf(absl::string_view name, absl::string_view meaning) {
  return {Kind::kString, name, meaning};
}

absl::string_view InstructionNames() {
  static const auto* const names = new std::string(absl::StrJoin(
      ir::Intrinsics(), ", ",
      [](std::string* out, const ir::Intrinsic& each) { absl::StrAppend(out, each.name); }));
  return *names;
}

Primitive Transform(absl::string_view name, int version, absl::string_view results,
                    absl::Status (*apply)(Call&), absl::string_view meaning,
                    std::vector<Argument> arguments) {
  return {name, version, results, false, apply, meaning, std::move(arguments)};
}
Primitive Sampling(absl::string_view name, int version, absl::string_view results,
                   absl::Status (*apply)(Call&), absl::string_view meaning,
                   std::vector<Argument> arguments) {
  return {name, version, results, true, apply, meaning, std::move(arguments)};
}

std::vector<Primitive> MakePrimitives() {
  return {
      Transform("add_unit_loop", 1, "l", Apply<AddUnitLoop>,
                "puts a loop of one iteration around a loop or block", {kNode}),
      Transform(
          "annotate", 1, "", Apply<Annotate>, "adds a hint to a loop or block",
          {kNode,
           StringOf("key",
                    "omp_schedule (parallel loop), prefetch (serial loop) or nontemporal (block)"),
           NumberOf("value",
                    "omp_schedule: iterations that a thread fetches at a time, 0 for equal shares; "
                    "prefetch: iterations ahead; nontemporal: 1")}),
      Transform(
          "async_copy", 1, "", Apply<AsyncCopy>,
          "marks a copy as one that may run beside the computation; CUDA from sm_80 on does this "
          "for every pipelined copy",
          {kBlock}),
      Transform(
          "bind", 1, "", Apply<Bind>,
          "runs the iterations on a GPU axis; threads combine their results of a reduction",
          {kLoop, StringOf("axis", "blockIdx.x, .y or .z, threadIdx.x, .y or .z, or vthread")}),
      Transform("block", 1, "b", ApplyBlock, "finds a block by name",
                {StringOf("name", "the tensor that the block computes")}),
      Transform("blockize", 1, "", Apply<Blockize>, "treats the nest under a loop as one unit",
                {kLoop}),
      Transform("cache_read", 1, "b", Apply<CacheRead>,
                "reads through a copy; returns the block that copies",
                {kBlock, StringOf("buffer", "a buffer that the block reads"), kScope}),
      Transform("cache_write", 2, "b", Apply<CacheWrite>,
                "writes through a new buffer; returns the block that copies", {kBlock, kScope}),
      Transform("compute_at", 1, "", ApplyComputeAt,
                "computes a block inside a loop: each iteration computes the part that it needs",
                {kBlock, kLoop}),
      Transform("compute_inline", 2, "", Apply<ComputeInline>,
                "replaces reads with the block's expression", {kBlock}),
      Transform("decompose_padding", 1, "b", Apply<DecomposePadding>,
                "stores the zeros of a pad_einsum block before a loop, then copies the data",
                {kBlock, kLoop}),
      Transform("decompose_reduction", 1, "b", Apply<DecomposeReduction>,
                "stores the neutral element before a loop", {kBlock, kLoop}),
      Transform("double_buffer", 1, "", Apply<DoubleBuffer>,
                "alternates the block's output between two buffers (GPUs)", {kBlock}),
      Transform("fuse", 1, "l", Apply<Fuse>, "joins nested loops", {kLoops}),
      Transform("loop_kind", 1, "", Apply<SetLoopKind>,
                "keeps a loop serial, unrolls it or vectorizes it, chosen by number",
                {kLoop, NumberOf("kind", "0 serial, 1 unrolled, 2 vectorized")}),
      Transform(
          "loop_partition", 1, "l*", Apply<LoopPartition>, "cuts a loop into consecutive ranges",
          {kLoop,
           NumberOf("begin", "first iterations of the second and later ranges", Count::kMany)}),
      Transform("loops", 1, "l*", ApplyLoops, "the loops around a block, outermost first",
                {kBlock,
                 NumberOf("innermost", "only this many of the innermost loops", Count::kOptional)}),
      Transform(
          "pad_einsum", 1, "b*", Apply<PadEinsum>,
          "rounds the block's iteration variables up to multiples; returns the blocks that copy",
          {kBlock,
           NumberOf("factor", "one per iteration variable of the block; 1 leaves it unchanged",
                    Count::kMany)}),
      Transform("parallel", 1, "", Apply<Parallel>, "runs the iterations on threads", {kLoop}),
      Transform("register_tile", 1, "lll", ApplyRegisterTile,
                "keeps rows x vectors accumulators in registers; returns the outer row, vector and "
                "reduction loops",
                {kBlock, LoopOf("row", "a spatial loop"),
                 LoopOf("vector", "a spatial loop, which is vectorized"),
                 LoopOf("reduce", "a reduction loop"),
                 NumberOf("rows", "accumulators along the row loop"),
                 NumberOf("vectors", "vectors along the vector loop"),
                 NumberOf("lanes", "elements of a vector"),
                 NumberOf("k_unroll", "unrolled steps of the reduction")}),
      Transform("reorder", 1, "", Apply<Reorder>, "puts loops of a nest into the given order",
                {kLoops}),
      Transform("reorder_by", 1, "", ApplyReorderBy,
                "puts loops into one of several orders, chosen by number",
                {NumberOf("choice", "which of the orders, from 0"),
                 StringOf("orders", "orders of the loops, such as \"0 1 | 1 0\""),
                 {Kind::kLoop, "loop", "the loops that the orders number from 0", Count::kMany}}),
      Transform("reorder_space", 1, "l", Apply<ReorderSpace>,
                "fuses two nested loops in an order with better locality",
                {LoopOf("outer", ""), LoopOf("inner", "the loop directly inside it"),
                 StringOf("order", "grouped (by bands) or morton (powers of two)"),
                 NumberOf("group", "outer iterations of a band; morton ignores it")}),
      Transform("reverse_compute_at", 1, "", Apply<ReverseComputeAt>,
                "computes a block inside the loop of its producer: each iteration uses the part "
                "that it produced",
                {kBlock, kLoop}),
      Transform("reverse_compute_inline", 2, "", Apply<ReverseComputeInline>,
                "merges the block into its producer, as its last operation", {kBlock}),
      Transform(
          "rewrite", 2, "", Apply<RewriteAlgorithm>, "replaces a stage with another algorithm",
          {StringOf("algorithm",
                    "bf16, im2col, join_taps, online_softmax, pad_image, pixel_rows, regroup_axes, "
                    "split_k or winograd"),
           StringOf("stage", "the tensor that the stage computes"),
           NumberOf("number",
                    "join_taps: a multiple of terms; pixel_rows: multiples of rows (0: lines stay) "
                    "and of terms; split_k: parts; winograd: rows of a tile, 2, 4 or 6",
                    Count::kMany)}),
      Transform(
          "rfactor", 1, "b", ApplyRfactor,
          "computes partial results, one per iteration of a reduction loop; returns the block that "
          "computes them",
          {kBlock, LoopOf("loop", "a reduction loop"),
           NumberOf("dimension", "position of the new dimension in the buffer; -1 (default): last",
                    Count::kOptional)}),
      Sampling("sample_categorical", 1, "i", ApplySampleCategorical, "draws one number",
               {{Kind::kNamedList, "candidates", "the numbers to draw from"}}),
      Sampling("sample_compute_location", 1, "l", ApplySampleComputeLocation,
               "draws a loop for compute_at; -1 means none",
               {kBlock,
                {Kind::kNamed, "outermost", "draws one of this many outermost loops, never -1",
                 Count::kOptional}}),
      Sampling("sample_perfect_tile", 1, "i*", ApplySamplePerfectTile,
               "draws factors of a loop's extent", {kLoop, kParts, kMaxInner}),
      Sampling(
          "sample_register_tile", 1, "ii", ApplySampleRegisterTile,
          "draws one pair for register_tile",
          {{Kind::kNamedList, "candidates", "pairs of rows and vectors, one after the other"}}),
      Sampling("sample_tile", 1, "i*", ApplySampleTile, "draws sizes that cover a loop's extent",
               {kLoop, kParts, kMaxInner}),
      Transform("set_scope", 1, "", Apply<SetScope>,
                "places the buffer that the block writes in another scope", {kBlock, kScope}),
      Transform("software_pipeline", 1, "", Apply<SoftwarePipeline>, "overlaps iterations (GPUs)",
                {kLoop, NumberOf("stages", "2 to 8")}),
      Transform(
          "split", 1, "l*", Apply<Split>, "cuts a loop into nested loops",
          {kLoop,
           NumberOf("factor",
                    "extents of the new loops, outermost first; if the first is 0, it is inferred",
                    Count::kMany)}),
      Transform("storage_align", 1, "", ApplyStorageAlign,
                "pads the buffer that the block writes, so that the stride of a dimension is "
                "congruent to offset modulo factor",
                {kBlock, NumberOf("axis", "a dimension, counted from 0; not the last"),
                 NumberOf("factor", "1 to 2^20"), NumberOf("offset", "less than factor")}),
      Transform("tensorize", 1, "", Apply<Tensorize>,
                "computes the nest under a loop with an instruction",
                {kLoop, StringOf("instruction", InstructionNames())}),
      Transform("thread_count", 1, "", Apply<ThreadCount>,
                "sets the number of threads of a parallel loop",
                {LoopOf("loop", "a parallel loop"), NumberOf("threads", "1 to 1024; 1: no fork")}),
      Transform("transform_layout", 1, "", Apply<TransformLayout>,
                "stores the buffer that the block writes in another order",
                {kBlock, StringOf("map", "such as \"i, j -> j / $0, i, j % $0\""),
                 NumberOf("number", "the values of $0, $1, …", Count::kMany)}),
      Transform("unroll", 1, "", Apply<Unroll>, "repeats the body", {kLoop}),
      Transform("vectorize", 1, "", Apply<Vectorize>, "turns the iterations into vector lanes",
                {kLoop}),
  };
}

}  // namespace

absl::Span<const Primitive> Primitives() {
  static const auto* const primitives = new std::vector<Primitive>(MakePrimitives());
  return *primitives;
}

const Primitive* FindPrimitive(absl::string_view name) {
  const absl::Span<const Primitive> all = Primitives();
  const auto found = absl::c_find_if(all, [&](const Primitive& p) { return p.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace hone::schedule
