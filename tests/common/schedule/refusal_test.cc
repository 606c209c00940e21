// What primitives refuse: with the reason, the place named and marked in the printed program, and the program unchanged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/replay.h"

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
    "workload w\ninput X: f32[12, 8]\nP[i: 12, j: 8] = X[i, j] * 2.0\nS[i: 12] = sum(j: 8) P[i, j]\n"
    "output Y[h: 5] = max(r: 4) S[2*h + r]\noutput Z[i: 12] = P[i, 0]\n";
constexpr char kArgmax[] =
    "workload w\ninput X: f32[4, 8]\n(V, I)[i: 4] = argmax(k: 8) (X[i, k], index(k))\noutput Y[i: 4] = V[i] + f32(I[i])\n"
    "output Q[i: 4] = X[i, 0]\n";

struct Refused {
  const char* workload;
  std::string setup;   // legal
  const char* last;    // refused
  const char* why;
  const char* place;   // the marked line, without blanks
};


TEST(RefusalTest, SaysWhyAndWhere) {
  const std::string names = kNames;
  const std::vector<Refused> cases = {
      {kDense, names, "l5, l6 = split(l0, 0, 0)", "split: factor 0 is not between 1 and the extent 10 (loop i)", "for i in 10"},
      {kDense, names, "l5, l6 = split(l0, 0, 11)", "split: factor 11 is not between 1 and the extent 10 (loop i)", "for i in 10"},
      {kDense, names, "l5, l6 = split(l0, 2, 4)", "split: the outer factor is 2, but 3 iterations cover the extent 10", "for i in 10"},
      {kDense, names, "l5, l6 = split(l0, 4, 4)", "split: the outer factor is 4, but 3 iterations", "for i in 10"},
      {kDense, names, "l5 = split(l0, 10)", "split: needs at least two factors", "for i in 10"},
      {kDense, names, "l5, l6, l7, l8 = split(l0, 1, 10, 10, 10)", "split: the inner factors exceed the extent", "for i in 10"},
      {kDense, names + "unroll(l2)\n", "l5, l6 = split(l2, 0, 2)", "split: the loop is not serial (loop k)", "unrolled k in 6"},
      {kDense, names, "l5 = fuse(l0, l2)", "fuse: the loop is not the only content of the one before (loop k)", "for k in 6"},
      {kDense, names, "l5 = fuse(l1, l0)", "fuse: the loop is not the only content of the one before", "for i in 10"},
      {kDense, names + "parallel(l0)\n", "l5 = fuse(l0, l1)", "fuse: the loop is not serial (loop i)", "parallel i in 10"},
      {kDense, names, "reorder(l0, l3)", "reorder: the loops are not on one path", nullptr},
      {kDense, names, "reorder(l0, l0)", "reorder: the loop is named twice (loop i)", "for i in 10"},
      {kDense, names + "parallel(l0)\n", "reorder(l1, l0)", "reorder: the loop is parallel or vectorized already", "parallel i in 10"},
      {kDense, names + "b2 = decompose_reduction(b0, l2)\n", "reorder(l2, l1)", "reorder: the loop has other content beside the nest (loop j)", "for j in 8"},
      {kDense, names + "l5 = fuse(l0, l1, l2)\nl6, l7 = split(l5, 0, 7)\n", "reorder(l7, l6)",
       "reorder: the loop carries spatial and reduction iterations of a block that stores its neutral element first", nullptr},
      {kDense, names, "parallel(l2)", "parallel: block C reduces over the loop (loop k)", "for k in 6"},
      {kDense, names + "parallel(l0)\n", "parallel(l1)", "parallel: a loop above is parallel already (loop i)", "parallel i in 10"},
      {kDense, names + "parallel(l1)\n", "parallel(l0)", "parallel: a loop below is parallel already (loop j)", "parallel j in 8"},
      {kDense, names + "parallel(l0)\n", "parallel(l0)", "parallel: the loop is not serial (loop i)", "parallel i in 10"},
      {kDense, names, "vectorize(l2)", "vectorize: block C reduces over the loop (loop k)", "for k in 6"},
      {kDense, names, "vectorize(l1)", "vectorize: the loop contains other loops (loop j)", "for j in 8"},
      {"workload w\ninput A: f32[65]\noutput B[i: 65] = A[i]\n", "b0 = block(\"B\")\nl0 = loops(b0)\n", "vectorize(l0)",
       "vectorize: 65 lanes; at most 64 (loop i)", "for i in 65"},
      {"workload w\ninput A: f32[1025]\noutput B[i: 1025] = A[i]\n", "b0 = block(\"B\")\nl0 = loops(b0)\n", "unroll(l0)",
       "unroll: 1025 iterations; at most 1024 (loop i)", "for i in 1025"},
      {kDense, names + "vectorize(l4)\n", "unroll(l4)", "unroll: the loop is not serial", "vectorized j in 8"},
      // Placement.
      {kDense, names, "compute_at(b0, l0)", "compute_at: the block is under the loop already (block C)", "block C: "},
      {kDense, names, "compute_at(b1, l0)", "compute_at: D is an output of the workload (block D)", "block D: "},
      {kDense, names + "b2 = cache_read(b0, \"B\", \"global\")\n", "compute_at(b2, l0)", "compute_at: the loop is in another kernel than the block", "for i in 10"},
      {kDense, names + "vectorize(l4)\n", "compute_at(b0, l4)", "compute_at: the loop is vectorized (loop j)", "vectorized j in 8"},
      {kDense, names + "b2 = decompose_reduction(b0, l2)\n", "compute_at(b0, l3)", "compute_at: another block writes the same buffer", "block C: "},
      {kDense, names + "transform_layout(b0, \"i, j -> j, i / 5, i % 5\")\n", "compute_at(b0, l3)",
       "compute_at: the block does not write at its own iteration variables", "block C: "},
      {kWindow, "b0 = block(\"P\")\nb1 = block(\"S\")\nl0, l1 = loops(b1)\n", "compute_at(b0, l0)", "compute_at: a reader is not under the loop (block Z)", "block Z: "},
      {kArgmax, "b0 = block(\"V\")\nb1 = block(\"Y\")\nl0 = loops(b1)\n", "compute_at(b0, l0)", "compute_at: the block writes several buffers", "block V: "},
      {kDense, names, "reverse_compute_at(b1, l2)", "reverse_compute_at: the producer is not complete under the loop, which reduces (loop k)", "for k in 6"},
      {kDense, names, "reverse_compute_at(b1, l4)", "reverse_compute_at: the block is under the loop already", "block D: "},
      {kDense, names, "reverse_compute_at(b0, l4)", "reverse_compute_at: the block reads no computed buffer", "block C: "},
      {kDense, names + "l5, l6 = split(l0, 0, 4)\nreorder(l6, l5)\n", "reverse_compute_at(b1, l6)",
       "reverse_compute_at: iterations of the loop produce interleaved parts, or the same (loop i_1)", "for i_1 in 4"},
      {kDense, names + "l5 = fuse(l0, l1, l2)\nl6, l7 = split(l5, 0, 5)\n", "reverse_compute_at(b1, l6)", "reverse_compute_at: the producer is not complete under the loop, which reduces", nullptr},
      {kWindow, "b0 = block(\"P\")\nl0, l1 = loops(b0)\nb1 = block(\"Z\")\n", "reverse_compute_at(b1, l0)",
       "reverse_compute_at: the block does not read at its own iteration variables", "block Z: "},
      {kWindow, "b0 = block(\"S\")\nl0, l1 = loops(b0)\nb1 = block(\"Y\")\n", "reverse_compute_at(b1, l0)",
       "reverse_compute_at: the block does not read at its own iteration variables", "block Y: "},
      {kArgmax, "b0 = block(\"V\")\nl0, l1 = loops(b0)\nb1 = block(\"Y\")\n", "reverse_compute_at(b1, l0)",
       "reverse_compute_at: the block reads more than one computed element", "block Y: "},
      {kDense, names, "compute_inline(b0)", "compute_inline: the block reduces (block C)", "block C: "},
      {kDense, names, "compute_inline(b1)", "compute_inline: D is an output of the workload", "block D: "},
      {kDense, names, "b2 = decompose_reduction(b1, l3)", "decompose_reduction: the block has no init (block D)", "block D: "},
      {kDense, names, "b2 = decompose_reduction(b0, l3)", "decompose_reduction: the loop is not above the block (loop i)", nullptr},
      {kDense, names + "reorder(l2, l1)\n", "b2 = decompose_reduction(b0, l1)", "decompose_reduction: a loop above the given one reduces (loop k)", "for k in 6"},
      {kDense, names + "l5 = fuse(l1, l2)\n", "b2 = decompose_reduction(b0, l0)", "decompose_reduction: the loop carries spatial and reduction iterations", nullptr},
      {kWindow, "b0 = block(\"S\")\nb1 = block(\"Y\")\nl0, l1 = loops(b1)\ncompute_at(b0, l0)\nl2, l3, l4 = loops(b0)\n",
       "b2 = decompose_reduction(b0, l2)", "decompose_reduction: iterations of the loop may compute the same elements (loop h)", "for h in 5"},
      // Data.
      {kDense, names, "b2 = cache_read(b0, \"Z\", \"global\")", "cache_read: the block reads no buffer called Z (block C)", "block C: "},
      {kDense, names, "b2 = cache_read(b0, \"D\", \"global\")", "cache_read: the block reads no buffer called D", "block C: "},
      {kDense, names, "b2 = cache_read(b0, \"B\", \"local\")", "cache_read: B is constant and copied ahead of time, to scope global only", "block C: "},
      {kDense, names + "reverse_compute_at(b1, l0)\n", "b2 = cache_read(b1, \"C\", \"global\")", "cache_read: the buffer is computed in the reader's own nest (block C)", "block C: "},
      {kDense, names + "transform_layout(b0, \"i, j -> i / 4, j, i % 4\")\n", "b2 = cache_read(b1, \"C\", \"local\")", "cache_read: C is stored with padding", "block D: "},
      {kDense, names + "transform_layout(b0, \"i, j -> i / 4, j, i % 4\")\n", "b2 = cache_write(b0, \"local\")", "cache_write: C is stored with padding", "block C: "},
      {kDense, names + "reverse_compute_at(b1, l0)\n", "b2 = cache_write(b0, \"local\")", "cache_write: other blocks share the block's nest (loop i)", "for i in 10"},
      {kArgmax, "b0 = block(\"V\")\n", "b1 = cache_write(b0, \"local\")", "cache_write: the block writes several buffers", "block V: "},
      {kDense, names + "b2 = decompose_reduction(b0, l2)\n", "b3 = cache_write(b0, \"local\")", "cache_write: another block writes the same buffer", "block C: "},
      {kDense, names, "transform_layout(b1, \"i, j -> j, i\")", "transform_layout: D is an input or output", "block D: "},
      {kDense, names, "transform_layout(b0, \"i, j -> i\")", "transform_layout: the map does not send every element to a place of its own", "block C: "},
      {kDense, names, "transform_layout(b0, \"i, j -> i % 5, j\")", "transform_layout: the map does not send every element to a place of its own", "block C: "},
      {kDense, names, "transform_layout(b0, \"i, j -> i / 4, i % 3, j\")", "transform_layout: the map does not send every element to a place of its own", "block C: "},
      // Register tiles.
      {kDense, names, "l5, l6, l7 = register_tile(b1, l3, l4, l4, 4, 2, 4, 1)", "register_tile: the block does not reduce (block D)", "block D: "},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l3, l1, l2, 4, 2, 4, 1)", "register_tile: the loop is not above the block (loop i)", nullptr},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l1, l1, l2, 4, 2, 4, 1)", "register_tile: the row loop is the vector loop (loop j)", "for j in 8"},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l2, l2, 4, 2, 4, 1)", "register_tile: the block reduces over this loop (loop k)", "for k in 6"},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l1, 4, 2, 4, 1)", "register_tile: the block does not reduce over this loop (loop j)", "for j in 8"},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l2, 9, 9, 1, 1)", "register_tile: a tile of 9 x 9 vectors; at most 64", "block C: "},
      {kDense, names, "l5, l6, l7 = register_tile(b0, l0, l1, l2, 0, 1, 1, 1)", "register_tile: a tile of 0 x 1 vectors", "block C: "},
  };
  for (const Refused& refused : cases) {
    const auto workload = ir::ParseWorkload(refused.workload);
    ASSERT_TRUE(workload.ok()) << workload.status();
    const auto shared = std::make_shared<const ir::Workload>(*workload);
    const auto setup = ParseTrace(refused.setup);
    const auto whole = ParseTrace(absl::StrCat(refused.setup, refused.last));
    ASSERT_TRUE(setup.ok()) << setup.status() << "\n" << refused.setup;
    ASSERT_TRUE(whole.ok()) << whole.status() << "\n" << refused.last;
    const auto before = Replay(shared, setup->trace, {});
    ASSERT_TRUE(before.ok()) << before.status();
    const absl::Status status = Replay(shared, whole->trace, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << refused.last << ": " << status;
    const std::string message(status.message());
    const std::string start = absl::StrCat("instruction ", whole->trace.instructions.size(), " (",
                                           whole->trace.instructions.back().primitive->name, "): ", refused.why);
    EXPECT_THAT(message, StartsWith(start)) << refused.last;
    // The program as it was, with the place marked.
    std::string printed = message.substr(message.find('\n') + 1);
    const size_t mark = printed.find('>');
    if (refused.place != nullptr) {
      ASSERT_NE(mark, std::string::npos) << message;
      const size_t begin = printed.find_first_not_of("> ", mark);
      EXPECT_THAT(printed.substr(begin), StartsWith(refused.place)) << message;
    }
    if (mark != std::string::npos) {
      printed[mark] = ' ';
      EXPECT_EQ(printed, before->ToText()) << refused.last;
    }
  }
}

// Errors of the text of an argument, not of the program.
TEST(RefusalTest, MalformedArguments) {
  const std::pair<const char*, const char*> kCases[] = {
      {"b9 = block(\"Z\")", "no block is called 'Z' in\ninput A"},
      {"l9 = loops(b0)", "gives 3 results here, but 1 are named"},
      {"b9 = cache_write(b0, \"stack\")", "unknown scope 'stack'; known: global, shared, local, fragment"},
      {"transform_layout(b0, \"i, j\")", "layout map \"i, j\": expected \"variables -> dimensions\""},
      {"transform_layout(b0, \"i -> i\")", "names 1 variables for a buffer of rank 2"},
      {"transform_layout(b0, \"i, j -> i, q\")", "unknown variable 'q'"},
      {"transform_layout(b0, \"i, j -> i /, j\")", "a dimension ends with an operator"},
      {"transform_layout(b0, \"i, j -> i / 0, j\")", "a divisor is out of range"},
      {"transform_layout(b0, \"i, j -> i / x, j\")", "'x' is not a number"},
      {"transform_layout(b0, \"i, j -> i / $1, i % $0, j\", 4)", "'$1' names no number"},
      {"transform_layout(b0, \"i, j -> i + 4, j\")", "a dimension is a variable, then '/ number', then '% number'"},
      {"transform_layout(b0, \"i, j -> i % 4 / 2, j\")", "a dimension is a variable, then '/ number', then '% number'"},
      {"transform_layout(b0, \"i, j -> , j\")", "an empty dimension"},
      {"transform_layout(b0, \"i, j -> i / 99999999999999999999, j\")", "is not a number"},
      {"transform_layout(b0, \"i, j -> i / $0*$0*$0*$0, j\", 999999999)", "a divisor is out of range"},
      {"reorder(l0)", "reorder: needs two loops"},
  };
  const auto workload = std::make_shared<const ir::Workload>(*ir::ParseWorkload(kDense));
  for (const auto& [line, error] : kCases) {
    const auto parsed = ParseTrace(absl::StrCat(kNames, line));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_THAT(std::string(Replay(workload, parsed->trace, {}).status().message()), HasSubstr(error)) << line;
  }
}

// A chain of squares doubles with every stage: inlining it all would never end.
TEST(RefusalTest, InliningIsBounded) {
  std::string text = "workload w\ninput A: f32[2]\nB0[i: 2] = A[i]\n", trace;
  for (int s = 1; s < 40; ++s) absl::StrAppend(&text, "B", s, "[i: 2] = B", s - 1, "[i] * B", s - 1, "[i]\n");
  absl::StrAppend(&text, "output C[i: 2] = B39[i]\n");
  for (int s = 0; s < 40; ++s) absl::StrAppend(&trace, "b", s, " = block(\"B", s, "\")\ncompute_inline(b", s, ")\n");
  const auto workload = ir::ParseWorkload(text);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_THAT(std::string(Replay(std::make_shared<const ir::Workload>(*workload), ParseTrace(trace)->trace, {}).status().message()),
              HasSubstr("nodes; at most 4096"));
}

// What was private to the iterations of a parallel loop stays so.
TEST(RefusalTest, MovesKeepParallelLoopsLegal) {
  const auto workload = ir::ParseWorkload(
      "workload w\ninput X: f32[12]\nP[i: 12] = X[i] * 2.0\nS[h: 5] = sum(r: 4) P[2*h + r]\noutput Y[h: 5] = S[h] + 1.0\n");
  const auto shared = std::make_shared<const ir::Workload>(*workload);
  const auto parsed = ParseTrace(
      "b0 = block(\"P\")\nb1 = block(\"S\")\nl0, l1 = loops(b1)\ncompute_at(b0, l0)\nparallel(l0)\n"
      "b2 = block(\"Y\")\nl2 = loops(b2)\ncompute_at(b1, l2)\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(std::string(Replay(shared, parsed->trace, {}).status().message()),
              HasSubstr("a parallel loop would no longer be one: different iterations write the same elements of P (loop h)"));
}

}  // namespace
}  // namespace hone::schedule
