#ifndef HONE_SERVER_TUNER_SPACE_ROW_VECTORS_H_
#define HONE_SERVER_TUNER_SPACE_ROW_VECTORS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "server/tuner/space/sketch_editor.h"
#include "server/tuner/space/tile_limits.h"

namespace hone::space {

// Vectorizes a sketch's stages along their rows, with one sampled width per row length.
// Element-wise stages and reductions have separate widths.
class RowVectors {
 public:
  // Keeps references to both.
  RowVectors(SketchEditor& edit, const TileLimits& limits) : edit_(edit), limits_(limits) {}

  // Splits the columns of a stage without a reduction into vectors.
  void Columns(const schedule::Operand& columns, int64_t extent);
  // Vectorizes the innermost loop of a reduction into partial results, which are combined in
  // halves; `lane` is the position of the combining block's innermost loop.
  void Lanes(const schedule::Operand& block, const schedule::Operand& reduction, int64_t extent,
             int lane);
  // The sampled width of a reduction's lanes.
  schedule::Operand LanesOf(int64_t extent) { return Width(extent, reductions_); }

 private:
  using Widths = std::vector<std::pair<int64_t, schedule::Operand>>;  // by row length
  schedule::Operand Width(int64_t extent, Widths& widths);

  SketchEditor& edit_;
  const TileLimits& limits_;
  Widths columns_, reductions_;
};

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_ROW_VECTORS_H_
