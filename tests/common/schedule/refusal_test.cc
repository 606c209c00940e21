// Illegal uses of primitives: the reason is given, the place is named and marked in the printed
// program, and the program is unchanged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kDense[] =
    "workload w\ninput A: f32[10, 6]\ninput B: f32[6, 8] constant\n"
    "C[i: 10, j: 8] = sum(k: 6) A[i, k] * B[k, j]\noutput D[i: 10, j: 8] = max(C[i, j], 0.0)\n";
// b0, l0 l1 l2: C and its loops i j k; b1, l3 l4: D and its loops.
constexpr char kNames[] =
    "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nb1 = block(\"D\")\nl3, l4 = loops(b1)\n";
// P is computed under each h; its rows overlap.
constexpr char kWindow[] =
    "workload w\ninput X: f32[12, 8]\nP[i: 12, j: 8] = X[i, j] * 2.0\nS[i: 12] = sum(j: 8) P[i, "
    "j]\n"
    "output Y[h: 5] = max(r: 4) S[2*h + r]\noutput Z[i: 12] = P[i, 0]\n";
constexpr char kArgmax[] =
    "workload w\ninput X: f32[4, 8]\n(V, I)[i: 4] = argmax(k: 8) (X[i, k], index(k))\noutput Y[i: "
    "4] = V[i] + f32(I[i])\n"
    "output Q[i: 4] = X[i, 0]\n";

// Only D reads T; D also reads U; two blocks read R.
constexpr char kChain[] =
    "workload w\ninput A: f32[10, 8]\nT[i: 10, j: 8] = A[i, j] * 2.0\nR[i: 10] = A[i, 0]\n"
    "D[i: 10, j: 8] = T[i, j] + R[i]\noutput E[i: 8] = D[i, i] + R[i]\noutput F[i: 8] = D[2, i] + "
    "R[i + 1]\n";

// vnni_16x4 can compute its nest if B is packed accordingly.
constexpr char kQuantized[] =
    "workload w\ninput A: u8[4, 8]\ninput B: i8[8, 16] constant\noutput C[i: 4, j: 16] = sum(k: 8) "
    "i32(A[i, k]) * i32(B[k, j])\n";
constexpr char kPacked[] =
    "b0 = block(\"C\")\nb1 = cache_read(b0, \"B\", \"global\")\ntransform_layout(b1, \"k, j -> k / "
    "4, j, k % 4\")\n"
    "l0, l1, l2 = loops(b0)\nl3, l4 = split(l2, 0, 4)\nreorder(l3, l1, l4)\n";

// smmla_2x2x8 can compute its blocks of u and v if their elements are consecutive.
constexpr char kBlocks[] =
    "workload w\ninput A: i8[2, 8]\ninput B: i8[3, 2, 8]\noutput C[u: 2, j: 3, v: 2] = sum(k: 8) "
    "i32(A[u, k]) * i32(B[j, v, k])\n";

// P moves to S's loop, then S moves away.
constexpr char kMoved[] =
    "workload w\ninput X: f32[12]\nP[i: 12] = X[i] * 2.0\nS[i: 12] = P[i] + 1.0\noutput Y[h: 5] = "
    "max(r: 4) S[2*h + r]\n";
constexpr char kMove[] =
    "b0 = block(\"P\")\nb1 = block(\"S\")\nb2 = block(\"Y\")\nl0 = loops(b1)\ncompute_at(b0, "
    "l0)\nl1, l2 = loops(b2)\ncompute_at(b1, l1)\n";

struct Refused {
  const char* workload;
  std::string setup;  // legal
  const char* last;   // refused
  const char* why;
  const char* place;  // the marked line, without spaces
};

TEST(RefusalTest, ErrorsNameCauseAndLocation) {
  const std::string names = kNames;
  const std::vector<Refused> cases = {
      {kDense, names, "l5, l6 = split(l0, 0, 0)",
       "split: factor 0 is not between 1 and the extent 10 (loop i)", "for i in 10"},
      {kDense, names, "l5, l6 = split(l0, 0, 11)",
       "split: factor 11 is not between 1 and the extent 10 (loop i)", "for i in 10"},
      {kDense, names, "l5, l6 = split(l0, 2, 4)",
       "split: the outer factor is 2, but 3 iterations cover the extent 10", "for i in 10"},
      {kDense, names, "l5, l6 = split(l0, 4, 4)", "split: the outer factor is 4, but 3 iterations",
       "for i in 10"},
      {kDense, names, "l5 = split(l0, 10)", "split: needs at least two factors", "for i in 10"},
      {kDense, names, "l5, l6, l7, l8 = split(l0, 1, 10, 10, 10)",
       "split: the inner factors exceed the extent", "for i in 10"},
      {kDense, names + "unroll(l2)\n", "l5, l6 = split(l2, 0, 2)",
       "split: the loop is not serial (loop k)", "unrolled k in 6"},
      {kDense, names, "l5 = fuse(l0, l2)",
       "fuse: the loop is not the only content of the one before (loop k)", "for k in 6"},
      {kDense, names, "l5 = fuse(l1, l0)",
       "fuse: the loop is not the only content of the one before", "for i in 10"},
      {kDense, names + "parallel(l0)\n", "l5 = fuse(l0, l1)",
       "fuse: the loop is not serial (loop i)", "parallel i in 10"},
      {kDense, names, "reorder(l0, l3)", "reorder: the loops are not on one path", nullptr},
      {kDense, names, "reorder(l0, l0)", "reorder: the loop is named twice (loop i)",
       "for i in 10"},
      {kDense, names + "parallel(l0)\n", "reorder(l1, l0)",
       "reorder: the loop is parallel or vectorized already", "parallel i in 10"},
      {kDense, names + "b2 = decompose_reduction(b0, l2)\n", "reorder(l2, l1)",
       "reorder: the loop contains more than the nest (loop j)", "for j in 8"},
      {kDense, names + "l5 = fuse(l0, l1, l2)\nl6, l7 = split(l5, 0, 7)\n", "reorder(l7, l6)",
       "reorder: the loop carries spatial and reduction iterations of a block that stores its "
       "neutral element first",
       nullptr},
      {kDense, names, "parallel(l2)", "parallel: block C reduces over the loop (loop k)",
       "for k in 6"},
      {kDense, names + "parallel(l0)\n", "parallel(l1)",
       "parallel: a loop above is parallel already (loop i)", "parallel i in 10"},
      {kDense, names + "parallel(l1)\n", "parallel(l0)",
       "parallel: a loop below is parallel already (loop j)", "parallel j in 8"},
      {kDense, names + "parallel(l0)\n", "parallel(l0)",
       "parallel: the loop is not serial (loop i)", "parallel i in 10"},
      {kDense, names + "l5 = fuse(l1, l2)\n", "vectorize(l5)",
       "vectorize: block C reduces over the loop (loop j.k)", nullptr},
      {kArgmax, "b0 = block(\"V\")\nl0, l1 = loops(b0)\n", "parallel(l1)",
       "parallel: block V reduces over the loop (loop k)", "for k in 8"},
      {kDense, names, "vectorize(l1)", "vectorize: the loop contains other loops (loop j)",
       "for j in 8"},
      {"workload w\ninput A: f32[65]\noutput B[i: 65] = A[i]\n",
       "b0 = block(\"B\")\nl0 = loops(b0)\n", "vectorize(l0)",
       "vectorize: 65 lanes; at most 64 (loop i)", "for i in 65"},
      {"workload w\ninput A: f32[1025]\noutput B[i: 1025] = A[i]\n",
       "b0 = block(\"B\")\nl0 = loops(b0)\n", "unroll(l0)",
       "unroll: 1025 iterations; at most 1024 (loop i)", "for i in 1025"},
      {kDense, names + "vectorize(l4)\n", "unroll(l4)", "unroll: the loop is not serial",
       "vectorized j in 8"},
      // Threads and hints.
      {kDense, names, "thread_count(l0, 2)", "thread_count: the loop is not parallel (loop i)",
       "for i in 10"},
      {kDense, names + "parallel(l0)\n", "thread_count(l0, 0)",
       "thread_count: 0 threads; from 1 to 1024 (loop i)", "parallel i in 10"},
      {kDense, names, "annotate(l0, \"omp_schedule\", 1)",
       "annotate: omp_schedule is for a parallel loop (loop i)", "for i in 10"},
      {kDense, names + "parallel(l0)\n", "annotate(l0, \"omp_schedule\", -1)",
       "annotate: omp_schedule of -1; from 0 to 1048576", "parallel i in 10"},
      {kDense, names, "annotate(b0, \"nontemporal\", 1)",
       "annotate: nontemporal is for a block that writes an output of the workload", "block C: "},
      {kDense, names + "annotate(l0, \"prefetch\", 4)\n", "l5, l6 = split(l0, 0, 2)",
       "split: the loop is annotated (loop i)", "for i in 10 @prefetch=4"},
      {kDense, names + "annotate(l0, \"prefetch\", 4)\n", "l5 = fuse(l0, l1)",
       "fuse: the loop is annotated (loop i)", "for i in 10 @prefetch=4"},
      {kDense, names, "double_buffer(b0)",
       "double_buffer: no loop is around the block and all that read its result (block C)",
       "block C: "},
      {kDense, names, "double_buffer(b1)",
       "double_buffer: D is an output of the workload (block D)", "block D: "},
      {kDense, names, "software_pipeline(l0, 2)",
       "software_pipeline: no nest in the loop reads what an earlier one computes (loop i)",
       "for i in 10"},
      {kDense, names + "reverse_compute_at(b1, l0)\n", "software_pipeline(l0, 9)",
       "software_pipeline: 9 stages; from 2 to 8 (loop i)", "for i in 10"},
      {kDense, names, "async_copy(b0)", "async_copy: the block does more than copy (block C)",
       "block C: "},
      {kDense, names + "b2 = cache_read(b0, \"A\", \"global\")\n", "async_copy(b2)",
       "async_copy: the copy is in scope global, not shared or local", "block A_copy: "},
      // GPU axes.
      {kDense, names, "bind(l2, \"blockIdx.x\")", "bind: block C reduces over the loop (loop k)",
       "for k in 6"},
      {kDense, names + "l5, l6 = split(l2, 0, 3)\nbind(l5, \"threadIdx.y\")\n",
       "bind(l6, \"threadIdx.x\")", "bind: block C would reduce over two loops of threads",
       nullptr},
      {kDense, names + "l5 = fuse(l1, l2)\n", "bind(l5, \"threadIdx.x\")",
       "bind: the loop carries spatial and reduction iterations", nullptr},
      {kDense, names + "parallel(l0)\n", "bind(l1, \"threadIdx.x\")",
       "bind: a loop above is parallel or vectorized (loop i)", "parallel i in 10"},
      {kDense, names + "parallel(l1)\n", "bind(l0, \"blockIdx.x\")",
       "bind: a loop below is parallel (loop j)", "parallel j in 8"},
      {kDense, names + "bind(l0, \"threadIdx.x\")\n", "bind(l1, \"threadIdx.x\")",
       "bind: threadIdx.x occurs twice on the path", "bound threadIdx.x i in 10"},
      {kDense, names + "bind(l0, \"threadIdx.x\")\n", "bind(l1, \"blockIdx.x\")",
       "bind: a blockIdx axis would lie inside a threadIdx axis", "bound threadIdx.x i in 10"},
      {kDense,
       names + "b2 = cache_read(b0, \"A\", \"shared\")\ncompute_at(b2, l0)\n"
               "l5, l6, l7 = loops(b2)\nbind(l1, \"threadIdx.x\")\n",
       "bind(l7, \"threadIdx.x\")", "bind: threadIdx.x has 8 here, not 6 (loop j)",
       "bound threadIdx.x j in 8"},
      {kDense, names + "bind(l0, \"blockIdx.x\")\n", "reorder(l1, l0)",
       "reorder: the loop is bound to a GPU axis (loop i)", "bound blockIdx.x i in 10"},
      {kDense, names + "bind(l0, \"blockIdx.x\")\n", "parallel(l1)",
       "parallel: a loop above is bound to a GPU axis (loop i)", "bound blockIdx.x i in 10"},
      // Ranges and orders.
      {kDense, names, "l5, l6 = loop_partition(l0, 10)",
       "loop_partition: 10 is not between 0 and the extent 10 (loop i)", "for i in 10"},
      {kDense, names, "l5, l6, l7 = loop_partition(l0, 5, 5)",
       "loop_partition: 5 is not between 5 and the extent 10 (loop i)", "for i in 10"},
      {kDense, names, "l5 = loop_partition(l0)", "loop_partition: needs at least one point",
       "for i in 10"},
      {kDense, names + "l5 = fuse(l1, l2)\n", "l6, l7 = loop_partition(l5, 7)",
       "loop_partition: the loop carries spatial and reduction iterations of a block", nullptr},
      {kDense, names, "l5 = reorder_space(l0, l2, \"grouped\", 2)",
       "reorder_space: the second loop is not the only content of the first (loop k)",
       "for k in 6"},
      {kDense, names, "l5 = reorder_space(l0, l1, \"morton\", 0)",
       "reorder_space: morton needs an extent that is a power of two (loop i)", "for i in 10"},
      {kDense, names, "l5 = reorder_space(l0, l1, \"grouped\", 0)",
       "reorder_space: bands of 0 iterations (loop i)", "for i in 10"},
      {kDense, names + "vectorize(l4)\n", "l5 = add_unit_loop(b1)",
       "add_unit_loop: the loop around is vectorized (loop j)", "vectorized j in 8"},
      // Loops that carry spatial and reduction iterations, and those tied to them.
      {"workload w\ninput A: f32[2, 5]\ninput B: f32[5, 7]\noutput C[i: 2, j: 7] = sum(k: 5) A[i, "
       "k] * B[k, j]\n",
       "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nl3 = fuse(l1, l2)\nl4, l5 = split(l3, 0, "
       "16)\nl6, l7 = split(l5, 0, 10)\n",
       "parallel(l6)", "parallel: different iterations write the same elements of C (loop j.k_1_0)",
       nullptr},
      {"workload w\ninput A: f32[2, 5]\ninput B: f32[5, 7]\noutput C[i: 2, j: 7] = sum(k: 5) A[i, "
       "k] * B[k, j]\n",
       "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nl3 = fuse(l1, l2)\nl4, l5 = split(l3, 0, "
       "16)\nl6, l7 = split(l5, 0, 10)\n",
       "reorder(l7, l6)",
       "reorder: the loop carries spatial and reduction iterations of a block that stores its "
       "neutral element first",
       nullptr},
      // Placement.
      {kChain, "b0 = block(\"R\")\n", "reverse_compute_inline(b0)",
       "reverse_compute_inline: the block reads no computed buffer (block R)", "block R: "},
      {kChain, "b0 = block(\"E\")\n", "reverse_compute_inline(b0)",
       "reverse_compute_inline: another block reads D (block F)", "block F: "},
      {kChain, "b0 = block(\"D\")\n", "reverse_compute_inline(b0)",
       "reverse_compute_inline: another block reads R (block E)", "block E: "},
      {kDense, names, "reverse_compute_inline(b1)",
       "reverse_compute_inline: the producer reduces (block C)", "block C: "},
      {kDense, names, "reverse_compute_inline(b0)",
       "reverse_compute_inline: the block reduces (block C)", "block C: "},
      {"workload w\ninput A: f32[8]\nT[i: 8] = A[i] + 1.0\noutput D[i: 8] = T[7 - i]\n",
       "b0 = block(\"D\")\n", "reverse_compute_inline(b0)",
       "reverse_compute_inline: the block does not read T at iteration variables of its own plus "
       "constants",
       "block D: "},
      {"workload w\ninput A: f32[8]\nT[i: 8] = A[i] + 1.0\noutput D[i: 8] = T[i] + T[0]\n",
       "b0 = block(\"D\")\n", "reverse_compute_inline(b0)",
       "reverse_compute_inline: the block reads more than one element of T", "block D: "},
      {"workload w\ninput A: f32[8]\nT[i: 8] = A[i] + 1.0\noutput D[i: 8, j: 3] = T[i] * A[j]\n",
       "b0 = block(\"D\")\n", "reverse_compute_inline(b0)",
       "reverse_compute_inline: j does not follow from what is read of T", "block D: "},
      {kDense, names, "b2 = rfactor(b0, l1)",
       "rfactor: the block does not reduce over the loop (loop j)", "for j in 8"},
      {kDense, names, "b2 = rfactor(b1, l3)", "rfactor: the block does not reduce (block D)",
       "block D: "},
      {kDense, names, "b2 = rfactor(b0, l2, 3)",
       "rfactor: no dimension 3 can be added to 2; at most 8 (block C)", "block C: "},
      {kDense, names + "unroll(l2)\n", "b2 = rfactor(b0, l2)",
       "rfactor: the loop is not serial (loop k)", "unrolled k in 6"},
      {kDense, names + "l5 = fuse(l1, l2)\n", "b2 = rfactor(b0, l5)",
       "rfactor: the loop carries spatial and reduction iterations", nullptr},
      {kDense, names + "b2 = decompose_reduction(b0, l2)\n", "b3 = rfactor(b0, l2)",
       "rfactor: the block has no init (block C)", "block C: "},
      {kDense, names, "compute_at(b0, l0)",
       "compute_at: the block is under the loop already (block C)", "block C: "},
      {kDense, names, "compute_at(b1, l0)", "compute_at: D is an output of the workload (block D)",
       "block D: "},
      {kDense, names + "b2 = cache_read(b0, \"B\", \"global\")\n", "compute_at(b2, l0)",
       "compute_at: the loop is in another kernel than the block", "for i in 10"},
      {kDense, names + "vectorize(l4)\n", "compute_at(b0, l4)",
       "compute_at: the loop is vectorized (loop j)", "vectorized j in 8"},
      {kDense, names + "b2 = decompose_reduction(b0, l2)\n", "compute_at(b0, l3)",
       "compute_at: another block writes the same buffer", "block C: "},
      {kDense, names + "transform_layout(b0, \"i, j -> j, i / 5, i % 5\")\n", "compute_at(b0, l3)",
       "compute_at: the block does not write at its own iteration variables", "block C: "},
      {kWindow, "b0 = block(\"P\")\nb1 = block(\"S\")\nl0, l1 = loops(b1)\n", "compute_at(b0, l0)",
       "compute_at: a reader is not under the loop (block Z)", "block Z: "},
      {kArgmax, "b0 = block(\"V\")\nb1 = block(\"Y\")\nl0 = loops(b1)\n", "compute_at(b0, l0)",
       "compute_at: the block writes several buffers", "block V: "},
      {kDense, names, "reverse_compute_at(b1, l2)",
       "reverse_compute_at: the producer is not complete under the loop, which reduces (loop k)",
       "for k in 6"},
      {kDense, names, "reverse_compute_at(b1, l4)",
       "reverse_compute_at: the block is under the loop already", "block D: "},
      {kDense, names, "reverse_compute_at(b0, l4)",
       "reverse_compute_at: the block reads no computed buffer", "block C: "},
      {kDense, names + "l5, l6 = split(l0, 0, 4)\nreorder(l6, l5)\n", "reverse_compute_at(b1, l6)",
       "reverse_compute_at: iterations of the loop produce interleaved parts, or the same (loop "
       "i_1)",
       "for i_1 in 4"},
      {kDense, names + "l5 = fuse(l0, l1, l2)\nl6, l7 = split(l5, 0, 5)\n",
       "reverse_compute_at(b1, l6)",
       "reverse_compute_at: the producer is not complete under the loop, which reduces", nullptr},
      {kWindow, "b0 = block(\"P\")\nl0, l1 = loops(b0)\nb1 = block(\"Z\")\n",
       "reverse_compute_at(b1, l0)",
       "reverse_compute_at: the block does not read at its own iteration variables", "block Z: "},
      {kWindow, "b0 = block(\"S\")\nl0, l1 = loops(b0)\nb1 = block(\"Y\")\n",
       "reverse_compute_at(b1, l0)",
       "reverse_compute_at: the block does not read at its own iteration variables", "block Y: "},
      {kArgmax, "b0 = block(\"V\")\nl0, l1 = loops(b0)\nb1 = block(\"Y\")\n",
       "reverse_compute_at(b1, l0)",
       "reverse_compute_at: the block reads more than one computed element", "block Y: "},
      {kDense, names, "compute_inline(b0)", "compute_inline: the block reduces (block C)",
       "block C: "},
      {kDense, names, "compute_inline(b1)", "compute_inline: D is an output of the workload",
       "block D: "},
      {kDense, names, "b2 = decompose_reduction(b1, l3)",
       "decompose_reduction: the block has no init (block D)", "block D: "},
      {kDense, names, "b2 = decompose_reduction(b0, l3)",
       "decompose_reduction: the loop is not above the block (loop i)", nullptr},
      {kDense, names + "reorder(l2, l1)\n", "b2 = decompose_reduction(b0, l1)",
       "decompose_reduction: a loop above the given one reduces (loop k)", "for k in 6"},
      {kDense, names + "l5 = fuse(l1, l2)\n", "b2 = decompose_reduction(b0, l0)",
       "decompose_reduction: the loop carries spatial and reduction iterations", nullptr},
      {kWindow,
       "b0 = block(\"S\")\nb1 = block(\"Y\")\nl0, l1 = loops(b1)\ncompute_at(b0, l0)\nl2, l3, l4 = "
       "loops(b0)\n",
       "b2 = decompose_reduction(b0, l2)",
       "decompose_reduction: iterations of the loop may compute the same elements (loop h)",
       "for h in 5"},
      // Data.
      {kDense, names, "b2 = cache_read(b0, \"Z\", \"global\")",
       "cache_read: the block reads no buffer called Z (block C)", "block C: "},
      {kDense, names, "b2 = cache_read(b0, \"D\", \"global\")",
       "cache_read: the block reads no buffer called D", "block C: "},
      {kDense, names + "b2 = cache_read(b0, \"B\", \"global\")\n",
       "b3 = cache_read(b2, \"B\", \"local\")",
       "cache_read: B is read ahead of time; its copy has scope global", "block B_copy: "},
      {kDense, names + "reverse_compute_at(b1, l0)\n", "b2 = cache_read(b1, \"C\", \"global\")",
       "cache_read: the buffer is computed in the reader's own nest (block C)", "block C: "},
      {kDense, names + "transform_layout(b0, \"i, j -> i / 4, j, i % 4\")\n",
       "b2 = cache_read(b1, \"C\", \"local\")", "cache_read: C is stored with padding",
       "block D: "},
      {kDense, names + "transform_layout(b0, \"i, j -> i / 4, j, i % 4\")\n",
       "b2 = cache_write(b0, \"local\")", "cache_write: C is stored with padding", "block C: "},
      {kDense, names + "reverse_compute_at(b1, l0)\n", "b2 = cache_write(b0, \"local\")",
       "cache_write: other blocks share the block's nest (loop i)", "for i in 10"},
      {kArgmax, "b0 = block(\"V\")\n", "b1 = cache_write(b0, \"local\")",
       "cache_write: the block writes several buffers", "block V: "},
      {kDense, names + "b2 = decompose_reduction(b0, l2)\n", "b3 = cache_write(b0, \"local\")",
       "cache_write: another block writes the same buffer", "block C: "},
      {kDense, names, "transform_layout(b1, \"i, j -> j, i\")",
       "transform_layout: D is an input or output", "block D: "},
      {kDense, names, "transform_layout(b0, \"i, j -> i\")",
       "transform_layout: the map does not send every element to a different place", "block C: "},
      {kDense, names, "transform_layout(b0, \"i, j -> i % 5, j\")",
       "transform_layout: the map does not send every element to a different place", "block C: "},
      {kDense, names, "transform_layout(b0, \"i, j -> i / 4, i % 3, j\")",
       "transform_layout: the map does not send every element to a different place", "block C: "},
      {kDense, names, "set_scope(b1, \"local\")",
       "set_scope: D is an output of the workload (block D)", "block D: "},
      {kDense, names + "b2 = cache_read(b0, \"B\", \"global\")\n", "set_scope(b2, \"local\")",
       "set_scope: B_copy is computed ahead of time, so its scope must stay global",
       "block B_copy: "},
      {kDense, names, "storage_align(b1, 0, 8, 0)",
       "storage_align: D is an output of the workload (block D)", "block D: "},
      {kDense, names, "storage_align(b0, 1, 8, 0)",
       "storage_align: axis 1 of C; one before the last of 2 (block C)", "block C: "},
      {kDense, names, "storage_align(b0, 0, 8, 8)",
       "storage_align: factor 8 and offset 8; 1 to 1048576, and the offset below the factor",
       "block C: "},
      {kDense, names + "storage_align(b0, 0, 8, 1)\n", "transform_layout(b0, \"i, j -> j, i\")",
       "transform_layout: the strides of C are aligned already", "block C: "},
      {kDense, names + "l5, l6 = loop_partition(l0, 4)\n", "b2 = rfactor(b0, l2)",
       "rfactor: another block writes the same buffer (block C)", "block C: "},
      {kDense, names + "l5, l6 = loop_partition(l1, 4)\n", "b2 = decompose_reduction(b0, l0)",
       "decompose_reduction: another block under the loop writes the same buffer (block C_part)",
       "block C_part: "},
      // After compute_at moves a block, it computes only what its readers need there.
      {kMoved, kMove, "b3 = cache_write(b0, \"local\")",
       "cache_write: the block computes only what other blocks need (block P)", "block P: "},
      {kMoved, kMove, "b3 = cache_read(b1, \"P\", \"local\")",
       "cache_read: the buffer is computed only as far as other blocks need (block P)",
       "block P: "},
      // Padding.
      {kDense, names, "pad_einsum(b1, 4, 4)",
       "pad_einsum: the block is not a sum with its init (block D)", "block D: "},
      {kDense, names, "pad_einsum(b0, 4, 4)",
       "pad_einsum: 2 factors for 3 iteration variables (block C)", "block C: "},
      {kDense, names + "l5, l6 = split(l0, 0, 5)\n", "b2, b3 = pad_einsum(b0, 4, 1, 1)",
       "pad_einsum: i is not bound to a loop of its own", "block C: "},
      {kDense, names + "parallel(l0)\n", "b2, b3 = pad_einsum(b0, 4, 1, 1)",
       "pad_einsum: the loop is not serial, or annotated (loop i)", "parallel i in 10"},
      {"workload w\ninput A: f32[6]\ninput B: f32[5]\noutput C[i: 5] = sum(k: 6) A[k] * B[i]\n",
       "b0 = block(\"C\")\n", "b1 = pad_einsum(b0, 1, 4)",
       "pad_einsum: the products over k need not be zero where it is padded (block C)",
       "block C: "},
      {"workload w\ninput A: f32[9]\noutput C[i: 5] = sum(k: 5) A[i + k]\n", "b0 = block(\"C\")\n",
       "b1 = pad_einsum(b0, 4, 1)", "pad_einsum: a load does not use i as a plain index (block C)",
       "block C: "},
      // The order of the loads does not matter.
      {"workload w\ninput A: f32[9]\noutput C[i: 5] = sum(k: 4) A[i] * A[8 - k]\n",
       "b0 = block(\"C\")\n", "b1, b2 = pad_einsum(b0, 4, 1)",
       "pad_einsum: the block reads A at several places (block C)", "block C: "},
      {"workload w\ninput A: f32[9]\noutput C[i: 5] = sum(k: 4) A[8 - k] * A[i]\n",
       "b0 = block(\"C\")\n", "b1, b2 = pad_einsum(b0, 4, 1)",
       "pad_einsum: the block reads A at several places (block C)", "block C: "},
      {kDense, names, "b2 = decompose_padding(b0, l0)",
       "decompose_padding: the block does not pad (block C)", "block C: "},
      {"workload w\ninput A: f32[5, 6]\nP[i: 5, k: 6] = A[i, k] * 2.0\noutput C[i: 5] = sum(k: 6) "
       "P[i, k]\n",
       "b0 = block(\"C\")\nb1, b2 = pad_einsum(b0, 4, 1)\nb3 = block(\"P\")\nl0, l1 = loops(b3)\n",
       "reverse_compute_at(b1, l0)", "reverse_compute_at: the block has guards (block P_pad)",
       "block P_pad: "},
      {"workload w\ninput A: f32[5, 6]\nP[i: 5, k: 6] = A[i, k] * 2.0\noutput C[i: 5] = sum(k: 6) "
       "P[i, k]\n",
       "b0 = block(\"C\")\nl2, l3 = loops(b0)\nb1 = decompose_reduction(b0, l2)\nb3 = "
       "block(\"P\")\nl0, l1 = loops(b3)\n",
       "reverse_compute_at(b0, l0)",
       "reverse_compute_at: another block writes the same buffer (block C)", "block C: "},
      // Tensor nests.
      {kDense, names + "unroll(l2)\n", "blockize(l0)", "blockize: the loop is not serial (loop k)",
       "unrolled k in 6"},
      {kDense, names + "reverse_compute_at(b1, l0)\n", "blockize(l0)",
       "blockize: the loop contains more than one nest (loop i)", "for i in 10"},
      {kDense, names + "blockize(l1)\n", "l5, l6 = split(l2, 0, 2)",
       "split: the loop is not serial (loop k)", "tensor k in 6"},
      {kDense, names + "blockize(l1)\n", "reorder(l0, l1)",
       "reorder: the loop is in a tensor nest (loop j)", "tensor j in 8"},
      {kDense, names + "blockize(l1)\n", "compute_at(b0, l3)",
       "compute_at: the block or the loop is in a tensor nest", nullptr},
      {kDense, names + "blockize(l1)\n", "b2 = rfactor(b0, l2)",
       "rfactor: the block is in a tensor nest (block C)", "block C: "},
      {kDense, names + "blockize(l1)\n", "transform_layout(b0, \"i, j -> j, i\")",
       "transform_layout: a tensor nest uses C", "block C: "},
      {kDense, names, "tensorize(l1, \"vnni_16x4\")",
       "tensorize: the nest is not what vnni_16x4 computes: loop j has 8 iterations, not 16 (loop "
       "j)",
       "for j in 8"},
      {kDense, names, "tensorize(l0, \"vnni_16x4\")",
       "tensorize: the nest is not what vnni_16x4 computes: the nest has 3 loops, not 2 (loop i)",
       "for i in 10"},
      {kQuantized,
       "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nl3, l4 = split(l2, 0, 4)\nreorder(l3, l1, l4)\n",
       "tensorize(l1, \"vnni_16x4\")",
       "tensorize: the nest is not what vnni_16x4 computes: the expression or the layout of an "
       "operand differs "
       "(loop j)",
       "for j in 16"},
      {kBlocks, "b0 = block(\"C\")\nl0, l1, l2, l3 = loops(b0)\nreorder(l1, l0, l2, l3)\n",
       "tensorize(l0, \"smmla_2x2x8\")",
       "tensorize: the nest is not what smmla_2x2x8 computes: the type or layout of C differs "
       "(loop u)",
       "for u in 2"},
      {kQuantized, std::string(kPacked) + "reorder(l4, l1)\n", "tensorize(l4, \"vnni_16x4\")",
       "tensorize: the nest is not what vnni_16x4 computes: loop k_1 has 4 iterations, not 16",
       "for k_1 in 4"},
      {kQuantized, std::string(kPacked) + "tensorize(l1, \"vnni_16x4\")\n",
       "tensorize(l1, \"vnni_16x4\")",
       "tensorize: the loop is not the outermost of its nest, or an instruction computes it "
       "already",
       "tensor j in 16 @intrinsic=1"},
      {kQuantized, std::string(kPacked) + "tensorize(l1, \"vnni_16x4\")\n",
       "storage_align(b1, 1, 8, 0)", "storage_align: a tensor nest uses B_copy (block C)",
       "block C: "},
      // The padding is between the lanes.
      {kQuantized, std::string(kPacked) + "storage_align(b1, 1, 8, 0)\n",
       "tensorize(l1, \"vnni_16x4\")",
       "tensorize: the nest is not what vnni_16x4 computes: the expression or the layout of an "
       "operand differs (loop j)",
       "for j in 16"},
      {kQuantized, std::string(kPacked) + "reorder(l1, l4)\n", "tensorize(l4, \"dp4a_i8\")",
       "tensorize: the nest is not what dp4a_i8 computes: the expression or the layout of an "
       "operand differs (loop k_1)",
       "for k_1 in 4"},
      // Register tiles.
      {kDense, names, "l5, l6, l7 = register_tile(b1, l3, l4, l4, 4, 2, 4, 1)",
       "register_tile: the block does not reduce (block D)", "block D: "},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l3, l1, l2, 4, 2, 4, 1)",
       "register_tile: the loop is not above the block (loop i)", nullptr},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l1, l1, l2, 4, 2, 4, 1)",
       "register_tile: the row loop is the vector loop (loop j)", "for j in 8"},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l2, l2, 4, 2, 4, 1)",
       "register_tile: the block reduces over this loop (loop k)", "for k in 6"},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l2, 4294967296, 4294967296, 4, 1)",
       "register_tile: a tile of 4294967296 x 4294967296 vectors", "block C: "},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l1, 4, 2, 4, 1)",
       "register_tile: the block does not reduce over this loop (loop j)", "for j in 8"},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l2, 9, 9, 1, 1)",
       "register_tile: a tile of 9 x 9 vectors; at most 64", "block C: "},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l2, 0, 1, 1, 1)",
       "register_tile: a tile of 0 x 1 vectors", "block C: "},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l2, 4, 2, 0, 1)",
       "register_tile: a tile of 4 x 2 vectors; at most 64, and no number may be less than 1",
       "block C: "},
  };
  for (const Refused& refused : cases) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(refused.workload));
    const auto shared = std::make_shared<const ir::Workload>(workload);
    const auto setup = ParseTrace(refused.setup);
    const auto whole = ParseTrace(absl::StrCat(refused.setup, refused.last));
    ASSERT_THAT(setup, IsOk()) << refused.setup;
    ASSERT_THAT(whole, IsOk()) << refused.last;
    HONE_ASSERT_OK_AND_ASSIGN(const auto before, Replay(shared, setup->trace, {}));
    const absl::Status status = Replay(shared, whole->trace, {}).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition)) << refused.last;
    const std::string message(status.message());
    const std::string start =
        absl::StrCat("instruction ", whole->trace.instructions.size(), " (",
                     whole->trace.instructions.back().primitive->name, "): ", refused.why);
    EXPECT_THAT(message, StartsWith(start)) << refused.last;
    // The unchanged program, with the place marked.
    std::string printed = message.substr(message.find('\n') + 1);
    const size_t mark = printed.find('>');
    if (refused.place != nullptr) {
      ASSERT_NE(mark, std::string::npos) << message;
      const size_t begin = printed.find_first_not_of("> ", mark);
      EXPECT_THAT(printed.substr(begin), StartsWith(refused.place)) << message;
    }
    if (mark != std::string::npos) {
      printed[mark] = ' ';
      EXPECT_EQ(printed, before.ToText()) << refused.last;
    }
  }
}

// Errors in the text of an argument.
TEST(RefusalTest, MalformedArguments) {
  const std::pair<const char*, const char*> kCases[] = {
      {"b9 = block(\"Z\")", "unknown block 'Z' in\ninput A"},
      {"l9 = loops(b0)", "gives 3 results here, but 1 are named"},
      {"l9 = loops(b0, 2)", "gives 2 results here, but 1 are named"},
      {"l9 = loops(b0, 4)", "loops takes one number from 1 to the 3 loops around the block"},
      {"l9 = loops(b0, 0)", "loops takes one number from 1 to the 3 loops around the block"},
      {"b9 = cache_write(b0, \"stack\")",
       "unknown scope 'stack'; known: global, shared, local, fragment"},
      {"transform_layout(b0, \"i, j\")",
       "layout map \"i, j\": expected \"variables -> dimensions\""},
      {"transform_layout(b0, \"i -> i\")", "names 1 variables for a buffer of rank 2"},
      {"transform_layout(b0, \"i, j -> i, q\")", "unknown variable 'q'"},
      {"transform_layout(b0, \"i, j -> i /, j\")", "a dimension ends with an operator"},
      {"transform_layout(b0, \"i, j -> i / 0, j\")", "a divisor is out of range"},
      {"transform_layout(b0, \"i, j -> i / x, j\")", "'x' is not a number"},
      {"transform_layout(b0, \"i, j -> i / $1, i % $0, j\", 4)", "'$1' names no number"},
      {"transform_layout(b0, \"i, j -> i + 4, j\")",
       "a dimension is a variable, then '/ number', then '% number'"},
      {"transform_layout(b0, \"i, j -> i % 4 / 2, j\")",
       "a dimension is a variable, then '/ number', then '% number'"},
      {"transform_layout(b0, \"i, j -> , j\")", "an empty dimension"},
      {"transform_layout(b0, \"i, j -> i / 99999999999999999999, j\")", "is not a number"},
      {"transform_layout(b0, \"i, j -> i / $0*$0*$0*$0, j\", 999999999)",
       "a divisor is out of range"},
      {"reorder(l0)", "reorder: needs at least two loops"},
      {"annotate(l0, \"fast\", 1)",
       "annotate: unknown key 'fast'; known: omp_schedule, prefetch, nontemporal"},
      {"bind(l0, \"warp\")",
       "bind: unknown axis 'warp'; known: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x"},
      {"l9 = reorder_space(l0, l1, \"hilbert\", 0)",
       "reorder_space: unknown order 'hilbert'; known: grouped, morton"},
      {"tensorize(l1, \"dot\")",
       "tensorize: unknown intrinsic 'dot'; known: vnni_16x4, vnni_8x4, bf16dot_16x2"},
      {"set_scope(b0, \"stack\")", "unknown scope 'stack'"},
      {"reorder_by(2, \"0 1 | 1 0\", l0, l1)",
       "reorder_by: there is no order number 2 in \"0 1 | 1 0\""},
      {"reorder_by(0, \"0 0\", l0, l1)",
       "reorder_by: \"0 0\" is no order of 2 loops, counted from 0"},
      {"reorder_by(0, \"0\", l0, l1)",
       "reorder_by: \"0\" orders 1 loops, not the 2 that are given"},
      {"storage_align(b0, -1, 64, 5)", "the argument 'axis' is -1, and must be from 0 to 8"},
      {"storage_align(b0, -4294967296, 64, 5)",
       "the argument 'axis' is -4294967296, and must be from 0 to 8"},
      {"storage_align(b0, 4294967296, 64, 5)",
       "the argument 'axis' is 4294967296, and must be from 0 to 8"},
      {"b9 = rfactor(b0, l2, -2)", "the argument 'dimension' is -2, and must be from -1 to 8"},
      {"b9 = rfactor(b0, l2, -4294967297)",
       "the argument 'dimension' is -4294967297, and must be from -1 to 8"},
      {"b9 = rfactor(b0, l2, 4294967295)",
       "the argument 'dimension' is 4294967295, and must be from -1 to 8"},
      {"loop_kind(l0, 4294967296)", "loop_kind: 4294967296 is not 0"},
      {"reorder_by(-4294967296, \"0 1\", l0, l1)", "there is no order number -4294967296"},
      {"l9 = loops(b0, 4294967297)",
       "loops takes one number from 1 to the 3 loops around the block"},
      {"loop_kind(l0, 3)", "loop_kind: 3 is not 0 (serial), 1 (unrolled) or 2 (vectorized)"},
  };
  const auto workload = std::make_shared<const ir::Workload>(*ir::ParseWorkload(kDense));
  for (const auto& [line, error] : kCases) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto parsed, ParseTrace(absl::StrCat(kNames, line)));
    EXPECT_THAT(std::string(Replay(workload, parsed.trace, {}).status().message()),
                HasSubstr(error))
        << line;
  }
}

// A chain of squares doubles with every stage: inlining all of it would never end.
TEST(RefusalTest, InliningIsBounded) {
  std::string text = "workload w\ninput A: f32[2]\nB0[i: 2] = A[i]\n", trace;
  for (int s = 1; s < 40; ++s)
    absl::StrAppend(&text, "B", s, "[i: 2] = B", s - 1, "[i] * B", s - 1, "[i]\n");
  absl::StrAppend(&text, "output C[i: 2] = B39[i]\n");
  for (int s = 0; s < 40; ++s)
    absl::StrAppend(&trace, "b", s, " = block(\"B", s, "\")\ncompute_inline(b", s, ")\n");
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(text));
  EXPECT_THAT(std::string(Replay(std::make_shared<const ir::Workload>(workload),
                                 ParseTrace(trace)->trace, {})
                              .status()
                              .message()),
              HasSubstr("nodes; at most 4096"));
}

// Buffers that are private to the iterations of a parallel loop stay private.
TEST(RefusalTest, RejectsMovesThatBreakParallelLoops) {
  const auto workload = ir::ParseWorkload(
      "workload w\ninput X: f32[12]\nP[i: 12] = X[i] * 2.0\nS[h: 5] = sum(r: 4) P[2*h + r]\noutput "
      "Y[h: 5] = S[h] + 1.0\n");
  const auto shared = std::make_shared<const ir::Workload>(*workload);
  HONE_ASSERT_OK_AND_ASSIGN(const auto parsed,
                            ParseTrace("b0 = block(\"P\")\nb1 = block(\"S\")\nl0, l1 = "
                                       "loops(b1)\ncompute_at(b0, l0)\nparallel(l0)\n"
                                       "b2 = block(\"Y\")\nl2 = loops(b2)\ncompute_at(b1, l2)\n"));
  EXPECT_THAT(std::string(Replay(shared, parsed.trace, {}).status().message()),
              HasSubstr("a parallel loop would no longer be one: different iterations write the "
                        "same elements of P (loop h)"));
}

// Each round may double the length of an index, which would take time and memory without end. The
// fusion that is refused changes nothing, and others stay legal.
TEST(RefusalTest, IndicesThatBecomeTooLongAreRefused) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      ir::ParseWorkload("workload w\ninput A: f32[64]\noutput B[i: 64] = A[i]\n"));
  ir::Program program = ir::Program::FromWorkload(std::make_shared<const ir::Workload>(workload));
  ir::NodeId loop = program.LoopsAbove(program.FindBlock("B"))[0];
  for (int round = 0; round < 60; ++round) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto parts, Split(program, loop, {{0}, {7 + 2 * (round % 5)}}));
    const ir::NodeId outer = parts[0], inner = parts[1];
    ASSERT_THAT(Reorder(program, {inner, outer}), IsOk());
    const std::string before = program.ToText();
    const auto fused = Fuse(program, {inner, outer});
    if (fused.ok()) {
      loop = *fused;
      continue;
    }
    EXPECT_THAT(std::string(fused.status().message()),
                HasSubstr("the index expressions would become too long (loop "));
    EXPECT_EQ(program.ToText(), before);
    HONE_ASSERT_OK_AND_ASSIGN(const auto unit, AddUnitLoop(program, inner));
    EXPECT_THAT(Fuse(program, {unit}), IsOk());
    return;
  }
  FAIL() << "no fusion is refused";
}

}  // namespace
}  // namespace hone::schedule
