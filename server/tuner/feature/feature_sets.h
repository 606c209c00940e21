#ifndef HONE_SERVER_TUNER_FEATURE_FEATURE_SETS_H_
#define HONE_SERVER_TUNER_FEATURE_FEATURE_SETS_H_

#include <memory>

#include "server/tuner/feature/feature_set.h"

// The feature sets of the product, which are defined in the *_features.cc files; those of the
// literature are in server/research/feature.
namespace hone::feature {

// Adds a set to the registry, after the others. REQUIRES: the registry has no set of that name, and
// no other thread uses it.
void RegisterFeatureSet(std::unique_ptr<FeatureSet> set);

// "statement" and "statement_original": Ansor's 164 features of a store statement (Zheng et al.,
// OSDI 2020), one row per block in order of execution:
//    57  operations × executions; vectorized, unrolled and parallel loops; GPU axes
//  5×18  the five buffers with the most cache lines: bytes, lines, reuse, stride
//    10  arithmetic intensity along the loops, at 10 fractions of the operations
//     4  allocation of the buffer that the block writes
//     3  executions, number of loops, unroll limit (always 0: unrolling is explicit in our
//     programs)
// Counts and sizes are given as sign(x)·log2(|x| + 1).
//
// The init of a reduction block belongs to that block's row; a separate init block, as
// decompose_reduction makes, has its own row. The prepack kernel has no rows, because it is not
// timed. A buffer's size is the size of its live region, not of the whole tensor that it caches.
enum class StatementVariant {
  // Without the public extractor's known faults: a multiply-add counts as one; a loop's position
  // shows which variables it affects; lines are divided by the extents of the loops without a
  // stride, not by the innermost extent each time; and reuse by another statement counts in both
  // directions.
  kCorrected,
  // As the public code computes them, for comparison with published results. Its contiguous runs
  // are not reproduced, because they depend on the values of pointers.
  kOriginal,
};
std::unique_ptr<FeatureSet> MakeStatementFeatures(StatementVariant variant);

// "analytic": an estimate of a program's speed without measurements (analytic_terms.h), one row per
// program. The first columns are sums of the terms over the statements; times of the cores are
// divided by the statement's parallel speedup. The next columns say how well the most expensive
// statement uses the machine. The last two columns are the terms of Halide's formula. Values are
// given as log2(x + 1), except for `fill` and `wave` (the share of the cores' time that the
// parallel iterations fill), which are in (0, 1].
std::unique_ptr<FeatureSet> MakeAnalyticFeatures();

// "draft": what the estimate of a program's cycles adds up, one row per statement, so that the cost
// model "draft" can weigh the parts anew (server/tuner/cost_model/draft_model.cc). CPUs and GPUs
// have columns of their own; those of the other kind are 0. All columns are cycles of the machine's
// constants on the busiest core or compute unit, except for `memory_jumps`, a share of `memory`,
// and three: a unit runs `gpu_waves` full waves of `gpu_resident` blocks and one of `gpu_last`
// blocks. `forks` is in the first row only. Of a GPU, each launch has one row, that of the
// statement with the most operations; `gpu_estimate` is its whole estimate, and these add up to
// that of the program.
std::unique_ptr<FeatureSet> MakeDraftFeatures();

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_FEATURE_SETS_H_
