#ifndef HONE_SERVER_SPACE_TILE_LIMITS_H_
#define HONE_SERVER_SPACE_TILE_LIMITS_H_

#include <cstdint>
#include <vector>

#include "common/ir/dtype.h"
#include "common/target/target.h"

namespace hone::space {

// What tiles must keep on a target: the parameters of the rules as data.
struct TileLimits {
  int64_t lanes = 4;  // of the widest vector that pays, for the dtype
  int64_t vector_registers = 16;
  int64_t accumulators = 8;  // that hide the FMA's latency: latency × FMAs per cycle
  int64_t max_vectors = 4;   // of a register tile's row
  std::vector<int64_t> k_unroll = {1, 2, 4, 8};
  // Of a micro-kernel's body: what is longer takes long to compile and gains nothing. A guarded
  // block is compiled several times over (first, interior and last tiles).
  int64_t unrolled_statements = 256;
  int64_t guarded_statements = 112;
  // Where the innermost reduction is so short (the channels of an image) that only an unrolled
  // window makes the body long enough.
  int64_t short_statements = 512;
  int64_t prefetch_steps = 4;  // of the micro-kernel's loop, ahead: L3 answers in less
  int64_t prefetch_rows = 4;   // of a copy, ahead: no prefetcher follows rows to other pages
  int64_t cores = 1;           // parallel iterations wanted, at least
  int64_t panel_bytes =
      0;  // that a micro-kernel's two panels may take: they alternate with the next ones
  int64_t block_bytes = 0;         // of the operand that the inner tile loops read again and again
  int64_t collision_bytes = 4096;  // rows this far apart share the sets of L1
  // Of reductions along rows and over windows.
  std::vector<int64_t> wide = {1, 2, 3, 4};  // vectors that are worked on side by side
  int64_t row_block = 4;                     // rows whose sums over lanes overlap
  int64_t few_rows = 4;               // per core: with fewer a reduction may be cut among threads
  int64_t reduction_parts = 8;        // per core, at most
  int64_t serial_elements = 1 << 17;  // that one thread goes through while others are woken
  int64_t window_accumulators = 8;    // with more, windows are slower: their loads lack registers
  int64_t window_statements = 160;    // of an unrolled window over a tile

  static TileLimits Of(const target::Target& target, ir::DType dtype);
};

// The register tiles that fit: (rows, vectors) row after row, sorted by vectors, then rows. Every
// pair with
//   rows · vectors + vectors + 1 ≤ registers   (accumulators, one row of the vector operand, a
//   broadcast) rows · vectors ≥ accumulators              (or as near as the extents allow)
// and no larger than the extents.
std::vector<int64_t> RegisterTiles(const TileLimits& limits, int64_t row_extent,
                                   int64_t vector_extent);

// Lanes of vectors along a row of `extent` elements: multiples of limits.lanes that divide the row,
// or, where none does, those that are no longer than it, or its length. Never empty.
std::vector<int64_t> RowWidths(const TileLimits& limits, int64_t extent);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_TILE_LIMITS_H_
