#ifndef HONE_SERVER_TUNER_SPACE_GPU_TILE_SAMPLER_H_
#define HONE_SERVER_TUNER_SPACE_GPU_TILE_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/schedule/trace.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/gpu/gpu_limits.h"
#include "server/tuner/space/gpu/tile_size.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

// An operand that a block of threads copies to shared memory, one tile of the reduction at a time.
struct SharedStage {
  // Rows of a copy are rounded up to a multiple of this many elements, or groups of `terms`
  // elements. A decision may lengthen them by half of that, so that the elements of a column lie in
  // different banks.
  static constexpr int64_t kPadding = 8;

  ir::BufferId buffer = -1;
  TileBox box;             // in the order of the operand's dimensions
  std::vector<int> order;  // dimensions of the copy, as positions in the operand
  // If an instruction adds several terms, they are adjacent in the copy: the dimension of the
  // reduction is divided by their number, and the remainder is one more dimension, the last.
  int64_t terms = 1;
  int term_dimension = -1;
  bool padded = true;           // whether rows may be lengthened as kPadding describes
  std::vector<int64_t> widths;  // vector widths among which a decision chooses
  int nest = -1;                // an open nest that computes the operand, instead of a copy
  schedule::Operand block, width;

  // Sets the sizes of the tile. REQUIRES: `block` is the one that FindSharedStages was called with.
  void SetTiles(const ir::Program& program, const ir::Block& block,
                absl::Span<const TileSize> tiles);
  // Makes groups of `count` terms along the reduction with this variable. REQUIRES: `block` as
  // above, and DimensionOf finds a dimension.
  void GroupTerms(const ir::Program& program, const ir::Block& block, ir::AtomId var,
                  int64_t count);
  // The maximum number of bytes of a copy that is made by this many threads.
  int64_t Bytes(int64_t threads, absl::Span<const int64_t> decided) const;
  // The layout of the copy as a map for transform_layout; "" if it is that of the operand.
  std::string Layout() const;
};

// Returns one stage for each load of a contraction that varies with the reduction. Returns nullopt
// if there is none, or one that cannot be copied: its index is not affine, or its buffer is padded
// or read twice.
std::optional<std::vector<SharedStage>> FindSharedStages(const ir::Program& program,
                                                         const ir::Block& block,
                                                         const Contraction& contraction,
                                                         const GpuTileLimits& limits);

// The contraction that gpu_multi_level_tiling tiles, and how.
struct GpuTileRequest {
  const ir::Program& program;
  const ir::Block& block;
  const Contraction& contraction;
  const GpuTileLimits& limits;
  ir::DType dtype;    // of the result
  int height = -1;    // a second axis of rows, along threadIdx.z; -1: none
  bool wide = false;  // each thread computes a large tile, see CanBeWide
  int64_t terms = 1;  // how many terms of the reduction an instruction adds

  int64_t Extent(int axis) const { return block.iters[axis].extent; }
};

// The sampled numbers that determine the tiles of a contraction.
struct GpuTile {
  using Operand = schedule::Operand;
  using Operands = std::vector<Operand>;

  Operands threads;  // outermost first; the last two are those along the rows and the vectors
  Operand vector_outer, vector_lanes, row_outer, row_inner;
  Operand height_inner;  // if there is a height
  Operands window_tiles;
  Operand reduce_steps, reduce_inner;
  Operand padding;  // of the rows of the copies, if one has rows

  const Operand& ThreadsX() const { return threads.back(); }
  const Operand& ThreadsY() const { return threads[threads.size() - 2]; }
};

// Whether each thread can compute a large tile, as in BLAS libraries.
bool CanBeWide(const GpuTileRequest& request);

// Samples a tile, and adds its constraints to the sketch. `stages`: the copies of the operands in
// shared memory, whose vector widths are sampled, too; empty if the operands are read from global
// memory. REQUIRES: CanBeWide if the request is wide.
GpuTile SampleGpuTile(const GpuTileRequest& request, std::vector<SharedStage>& stages,
                      Sketch& sketch, GpuEditor& edit);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GPU_TILE_SAMPLER_H_
