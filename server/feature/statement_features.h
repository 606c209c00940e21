#ifndef HONE_SERVER_FEATURE_STATEMENT_FEATURES_H_
#define HONE_SERVER_FEATURE_STATEMENT_FEATURES_H_

#include "server/feature/feature_set.h"

namespace hone::feature {

// Ansor's 164 features of a store statement (Zheng et al., OSDI 2020), one row per block in order
// of execution:
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
  // position says on which
  // variables it acts; lines are divided by the extents of the loops without a stride (not by the
  // innermost extent each
  // time); reuse by another statement counts in both directions.
  kCorrected,
  // As public code has them, to compare with published results. Not reproduced: its contiguous
  // runs, which depend on the
  // values of pointers.
  kOriginal,
};

// "statement", "statement_original".
const FeatureSet& StatementFeatures(StatementVariant variant);

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_STATEMENT_FEATURES_H_
