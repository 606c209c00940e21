#ifndef HONE_SERVER_TUNER_SPACE_TILE_CONSTRAINTS_H_
#define HONE_SERVER_TUNER_SPACE_TILE_CONSTRAINTS_H_

#include <cstdint>
#include <vector>

#include "server/tuner/space/design_space.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {

// A loop split in two. The positions of its two sizes in the decision vector are `outer` and
// `outer` + 1.
struct Tile {
  int outer = -1;
  bool sampled() const { return outer >= 0; }
};

// The positions of a tiled contraction's decisions in the vector, in the order in which they are
// drawn.
struct TileDecisions {
  int rows = -1, vectors = -1, k_unroll = -1;
  std::vector<Tile> others;  // batch, height, …
  Tile vector, row;
  int window_unroll = -1;     // -1: no unrolled window
  Tile reduce;                // not sampled if the reduction is not tiled
  int64_t window_points = 1;  // iterations of all windows together
  bool guarded = false;       // the reduction's domain has guards
  bool short_steps =
      false;  // the innermost reduction is so short that all of its steps may form one body
};

struct TileShape {
  bool row_first = true;  // order of the inner tile loops: rows outside, vectors inside
  int64_t lanes = 1;
  int64_t element_bytes = 4;
};

// Adds the constraints on the decisions of a tiled contraction, each of which is checked as early
// as possible:
//   parallel    at least as many outer iterations as cores, or as there are tiles;
//   and those of AddCacheConstraints.
void AddTileConstraints(const TileLimits& limits, const TileDecisions& decisions,
                        const TileShape& shape, std::vector<Constraint>& constraints);

// Adds the constraints on what a contraction keeps in registers and caches:
//   statements  rows · vectors · k_unroll · unrolled window within the limit;
//   panels      the two panels of a micro-kernel within limits.panel_bytes, unless they have the
//               minimum size;
//   block       the operand that the inner tile loops stream repeatedly within
//               limits.block_bytes, with the same exception.
void AddCacheConstraints(const TileLimits& limits, const TileDecisions& decisions,
                         const TileShape& shape, std::vector<Constraint>& constraints);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_TILE_CONSTRAINTS_H_
