#ifndef HONE_SERVER_TUNER_SPACE_TILE_LIMITS_H_
#define HONE_SERVER_TUNER_SPACE_TILE_LIMITS_H_

#include <cstdint>
#include <vector>

#include "common/ir/dtype.h"
#include "common/target/target.h"
#include "server/tuner/space/design_space.h"

namespace hone::space {

// Limits of tiles on a target: the parameters of the rules.
struct TileLimits {
  int64_t lanes = 4;  // of the widest useful vector, for the dtype
  int64_t vector_registers = 16;
  int64_t registers_per_operand = 1;  // of a vector that is multiplied
  int64_t accumulators = 8;           // needed to hide the FMA's latency: latency × FMAs per cycle
  int64_t max_vectors = 4;            // in a register tile's row
  std::vector<int64_t> k_unroll = {1, 2, 4, 8};
  int64_t whole_unroll = 8;  // loops of up to this many iterations may be unrolled completely
  // Limit for a micro-kernel's body. A longer one takes long to compile and gains nothing. A
  // guarded block is compiled several times (first, interior and last tiles).
  int64_t unrolled_statements = 256;
  int64_t guarded_statements = 112;
  // The limit if the innermost reduction is so short (the channels of an image) that the body is
  // long enough only with an unrolled window.
  int64_t short_statements = 512;
  // With fewer steps than this, a micro-kernel is too short unless a window is unrolled.
  int64_t few_steps = 8;
  // A reduction of up to this many steps is only divided into equal tiles. Otherwise the
  // accumulators would be stored and loaded again for a few steps.
  int64_t short_reduction = 32;
  int64_t prefetch_steps =
      4;  // how far ahead the micro-kernel's loop prefetches; covers the latency of L3
  // The same for constants that are unpacked and read once: with 48 to 384 bytes a step, 2 to 6
  // KiB.
  int64_t prefetch_stream = 16;
  int64_t prefetch_rows = 4;  // how far ahead a copy prefetches; hardware prefetchers stop at pages
  int64_t cores = 1;          // minimum number of parallel iterations
  int64_t panel_bytes =
      0;  // limit for a micro-kernel's two panels; leaves room in L2 for the next ones
  int64_t block_bytes = 0;  // limit for the operand that the inner tile loops read repeatedly
  int64_t collision_bytes = 4096;  // rows at this distance share L1 sets
  // For reductions along rows and over windows.
  std::vector<int64_t> wide = {1, 2, 3, 4};  // vectors per row that are processed side by side
  int64_t row_block = 4;                     // rows whose lane sums overlap
  int64_t few_rows = 4;               // per core; with fewer rows, threads may share a reduction
  int64_t reduction_parts = 8;        // maximum per core
  int64_t serial_elements = 1 << 17;  // elements one thread processes while the others wake up
  int64_t window_accumulators =
      8;  // more make windows slower, because no registers are left for loads
  int64_t window_statements = 160;  // in an unrolled window over a tile

  static TileLimits Of(const target::Target& target, ir::DType dtype);
};

// Returns the register tiles that fit, as consecutive (rows, vectors) pairs sorted by vectors, then
// rows. A pair meets
//   rows · vectors + p · (vectors + 1) ≤ registers   (accumulators, one row of the vector operand,
//                                                     a broadcast; p: registers_per_operand)
//   rows · vectors ≥ accumulators                    (or as near as the extents allow)
// and does not exceed the extents.
std::vector<int64_t> RegisterTiles(const TileLimits& limits, int64_t row_extent,
                                   int64_t vector_extent);

// Returns how many steps of a reduction of `extent` steps a micro-kernel may unroll: those of
// limits.k_unroll, and all of them if there are only a few, so that data shared by the steps is
// loaded once.
std::vector<int64_t> KUnrolls(const TileLimits& limits, int64_t extent);

// Returns vector widths for a row of `extent` elements: multiples of limits.lanes that divide the
// row. If none divides it, those not longer than the row, or else its length. Never empty.
std::vector<int64_t> RowWidths(const TileLimits& limits, int64_t extent);

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
  int64_t reduction = 0;      // steps of `reduce` before the split; 0: not known
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
//   parallel          at least as many outer iterations as cores, or as there are tiles;
//   whole reduction   with a single inner tile, a reduction that is not short and whose panels fit
//                     is not tiled: tiles would only store and load the accumulators;
//   and those of AddCacheConstraints.
void AddTileConstraints(const TileLimits& limits, const TileDecisions& decisions,
                        const TileShape& shape, std::vector<Constraint>& constraints);

// Adds the constraints on what a contraction keeps in registers and caches:
//   statements  rows · vectors · k_unroll · unrolled window within the limit;
//   short       a short reduction in equal tiles;
//   panels      the two panels of a micro-kernel within limits.panel_bytes, unless they have the
//               minimum size;
//   block       the operand that the inner tile loops stream repeatedly within
//               limits.block_bytes, with the same exception.
void AddCacheConstraints(const TileLimits& limits, const TileDecisions& decisions,
                         const TileShape& shape, std::vector<Constraint>& constraints);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_TILE_LIMITS_H_
