#ifndef HONE_SERVER_TUNER_SPACE_GPU_TILE_SIZE_H_
#define HONE_SERVER_TUNER_SPACE_GPU_TILE_SIZE_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::space {

// The number of an axis's iterations in one tile: a product of decisions.
struct TileSize {
  int64_t extent = 1;                          // of the axis
  int64_t constant = 1;                        // the size is this number times the decisions
  absl::InlinedVector<int, 3> decisions = {};  // positions in the decision vector

  int64_t Of(absl::Span<const int64_t> decided) const {
    int64_t size = constant;
    for (const int decision : decisions) size *= decided[decision];
    return size;
  }
};

// The box of a buffer that a block of threads reads for one tile. Its extents depend on decisions.
// A box may be larger than its buffer, as a tile may be larger than its axis.
struct TileBox {
  struct Dimension {
    // The index is the sum of coefficient × axis.
    std::vector<std::pair<int64_t, TileSize>> axes;
  };
  std::vector<Dimension> dimensions;
  int64_t element_bytes = 4;

  // Returns the extent along each dimension.
  absl::InlinedVector<int64_t, 6> Extents(absl::Span<const int64_t> decided) const;
  int64_t Elements(absl::Span<const int64_t> decided) const;
};

// Returns the box of a load. `tiles` has a size for every iteration variable of the block. Returns
// nullopt if an index is not affine in the variables or is computed.
std::optional<TileBox> TileBoxOf(const ir::Program& program, const ir::Block& block,
                                 const ir::Expr& load, absl::Span<const TileSize> tiles);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_GPU_TILE_SIZE_H_
