#ifndef HONE_SERVER_TUNER_SPACE_SPLIT_SUM_H_
#define HONE_SERVER_TUNER_SPACE_SPLIT_SUM_H_

#include <cstdint>
#include <vector>

#include "common/ir/program.h"
#include "server/tuner/space/rule.h"

namespace hone::space {

// A sketch in which a reduction is computed in parts, which a second nest combines:
//   for i, j, k: C[i, j] += …  →  for i, j, part, k_1: C_rf[part, i, j] += …;
//                                 for i, j, part: C[i, j] += C_rf[part, i, j]
struct SplitSum {
  Sketch sketch;  // other rules schedule the nest of the parts
  schedule::Operand combining;
  // Only `iters` is set. The extent of the reduction axis is that of the unsplit axis, because the
  // number of parts is a decision.
  ir::Block combining_block;
};

// Returns the part sizes that divide `extent` evenly into `least` to `most` parts of at least
// `least_terms` terms each.
std::vector<int64_t> PartSizes(int64_t extent, int64_t least, int64_t most, int64_t least_terms);

// Splits the reduction `axis` of a nest's block; the size of a part is a decision among `sizes`.
// `dimension` is the position of the parts' dimension in the buffer of partial results, 0 in the
// example above; -1: the last one.
SplitSum SplitReduction(const Sketch& sketch, int nest, const ir::Block& block, int axis,
                        std::vector<int64_t> sizes, int dimension);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_SPLIT_SUM_H_
