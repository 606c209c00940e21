#ifndef HONE_SERVER_FEATURE_FEATURE_SETS_H_
#define HONE_SERVER_FEATURE_FEATURE_SETS_H_

#include <memory>

#include "server/feature/feature_set.h"

// The registered feature sets, each of <name>_features.cc.
namespace hone::feature {

// "statement" and "statement_original": Ansor's 164 features of a store statement (Zheng et al.,
// OSDI 2020), one row per block in order of execution:
//    57  operations × executions; vectorized, unrolled and parallel loops; GPU axes
//  5×18  the five buffers with the most cache lines: bytes, lines, reuse, stride
//    10  arithmetic intensity along the loops, at 10 fractions of the operations
//     4  allocation of the buffer that the block writes
//     3  executions, number of loops, unroll limit (always 0: unrolling is explicit in our
//     programs)
// Counts and sizes as sign(x)·log2(|x| + 1).
//
// What a row is: an init that is part of a reduction block belongs to that block's row; the block
// that decompose_reduction makes of it has a row of its own. The prepack kernel has none: it is not
// timed. A buffer's size is that of the region that is live, not of the whole tensor that it
// caches.
enum class StatementVariant {
  // The public extractor's known faults are repaired: a multiply-add is counted as such; a loop's
  // position says on which variables it acts; lines are divided by the extents of the loops without
  // a stride (not by the innermost extent each time); reuse by another statement counts in both
  // directions.
  kCorrected,
  // As public code has them, to compare with published results. Not reproduced: its contiguous
  // runs, which depend on the values of pointers.
  kOriginal,
};
std::unique_ptr<FeatureSet> MakeStatementFeatures(StatementVariant variant);

// "analytic": what can be computed of a program's speed without measuring (analytic_terms.h), one
// row per program: sums of the terms over its statements, each divided by the statement's speedup
// where it is time of the cores; then, of the statement with the largest bound, how well it uses
// the machine; last the two terms of Halide's formula. Everything as log2(x + 1), but `fill` and
// `wave` (share of the cores' time that the parallel iterations fill), which are in (0, 1].
std::unique_ptr<FeatureSet> MakeAnalyticFeatures();

// Those of published/:

// The decisions that a row holds; AutoTVM's largest templates have half as many.
inline constexpr int kKnobDecisions = 64;

// "knob": AutoTVM's configuration features, the decisions as they are, one row per program: factors
// of tiles, chosen values of the rest, in the order of the design space. A decision means something
// within its design space only, so the space is a column too: a model that splits by it learns each
// space on its own. Only ExtractCandidate gives them (a program does not carry its decisions);
// Extract is FailedPrecondition. InvalidArgument: more than kKnobDecisions.
std::unique_ptr<FeatureSet> MakeKnobFeatures();

// "itervar": AutoTVM's features of every loop (Chen et al., NeurIPS 2018), one row per program: the
// columns of loop_blocks.h per loop, in order of first appearance. Loops beyond the 32nd are left
// out, absent loops and accesses are 0.
//
// Two differences from public code, which sorts accesses by the names of buffers and pads to the
// longest program of a batch: here they come in order of execution, because names mean nothing, and
// rows have one length. As there, `mod` is always -1 where there is an access: it was never filled.
std::unique_ptr<FeatureSet> MakeItervarFeatures();

// The column that says which row of the candidate is the loop around this one; -1: none.
inline constexpr int kTreeParentColumn = 0;

// "tree": the loop tree, one row per loop (up to 256), for models that read a program's structure
// (AutoTVM's TreeGRU). The first column is the number of the parent's row among the candidate's,
// the others are the loop's features (loop_blocks.h). A row comes after its parent's. A program
// without loops has one row that is 0 but for the parent, -1.
std::unique_ptr<FeatureSet> MakeTreeFeatures();

// Which relation features and how: Chen et al. (NeurIPS 2018) as public code computes them, and
// what Zheng's study of them varies.
struct CurveOptions {
  enum Relation : unsigned {
    kCountToReuse = 1,
    kReuseToCount = 2,
    kCountToTopdown = 4,
    kTopdownToCount = 8,
    kAll = 15,
  };
  int samples = 20;           // points of every curve, at least 1
  unsigned relations = kAll;  // a sum of Relation, not 0
};

// The buffers that a row holds.
inline constexpr int kCurveBuffers = 6;

// Features that do not depend on the number of loops, one row per program. Of every buffer that the
// deepest statements touch (of several accesses to a buffer the last one) each loop around gives
// three numbers, as log2: count and reuse (touch.h), and topdown, the product of the extents down
// to that loop. A relation x → y is sampled at x = 0, 1, …, samples - 1: the y of the largest x not
// above it, and how far below it is. As in public code both sides are sorted apart, so that a pair
// can join different loops. Buffers in order of execution, for names mean nothing; absent ones
// are 0.
std::unique_ptr<FeatureSet> MakeCurveFeatures(std::string name, const CurveOptions& options);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_FEATURE_SETS_H_
