#ifndef HONE_SERVER_SPACE_SPLIT_SUM_H_
#define HONE_SERVER_SPACE_SPLIT_SUM_H_

#include <cstdint>
#include <vector>

#include "common/ir/program.h"
#include "server/space/rule.h"

namespace hone::space {

// A sketch in which a reduction is computed in parts, which a second nest combines:
//   for i, j, k: C[i, j] += …  →  for i, j, part, k_1: C_rf[part, i, j] += …;
//                                 for i, j, part: C[i, j] += C_rf[part, i, j]
struct SplitSum {
  Sketch sketch;  // other rules schedule the nest of the parts
  schedule::Operand combining;
  ir::Block combining_block;  // its axes; the caller schedules it without reading its decision
};

// Returns the sizes of parts that divide a reduction of `extent` terms: `least` to `most` parts of
// at least `least_terms` terms.
std::vector<int64_t> PartSizes(int64_t extent, int64_t least, int64_t most, int64_t least_terms);

// Splits the reduction `axis` of a nest's block; the size of a part is a decision among `sizes`.
// `dimension` is that of the parts in the partial results; -1: the last one.
SplitSum SplitReduction(const Sketch& sketch, int nest, const ir::Block& block, int axis,
                        std::vector<int64_t> sizes, int dimension);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_SPLIT_SUM_H_
