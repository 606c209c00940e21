#ifndef HONE_SERVER_TUNER_SPACE_TILE_LIMITS_H_
#define HONE_SERVER_TUNER_SPACE_TILE_LIMITS_H_

#include <cstdint>
#include <vector>

#include "common/ir/dtype.h"
#include "common/target/target.h"

namespace hone::space {

// Limits of tiles on a target: the parameters of the rules.
struct TileLimits {
  int64_t lanes = 4;  // of the widest useful vector, for the dtype
  int64_t vector_registers = 16;
  int64_t accumulators = 8;  // needed to hide the FMA's latency: latency × FMAs per cycle
  int64_t max_vectors = 4;   // in a register tile's row
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
  int64_t prefetch_steps =
      4;  // how far ahead the micro-kernel's loop prefetches; covers the latency of L3
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
//   rows · vectors + vectors + 1 ≤ registers   (accumulators, one row of the vector operand, a
//                                               broadcast)
//   rows · vectors ≥ accumulators              (or as near as the extents allow)
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

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_TILE_LIMITS_H_
